"""The allowed values of a profile's fields, described for the author of a profile."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from simulator import registry
from simulator.contract import KeepList
from simulator.contract.stage import STAGES
from simulator.profile.hints import Hint
from simulator.profile.implementations import Choice

_TYPES = {float: "a number", int: "a whole number", str: "words", bool: "true, false"}


def by_stage(stage: str) -> str:
    """Return the names of the backends that implement a stage."""
    return ", ".join(backend.name for backend in registry.backends() if backend.of(stage))


def by_backend(choice: Choice, name: str) -> str:
    """Return the values of a field that any of a backend's offers for a stage supports."""
    offers = choice.backend.of(choice.stage)
    found: dict[str, None] = {}
    for admits in (offer.options[name] for offer in offers if name in offer.options):
        words = map(_word, admits) if isinstance(admits, tuple) else [str(admits)]
        found |= dict.fromkeys(words)
    return f"{choice.backend.name}: {', '.join(found)}"


def by_schema(annotation: Any) -> str:
    """Return the values that the schema allows for a field that does not belong to a backend."""
    words = []
    for option in Hint(annotation).options:
        if option.words:
            words += [_word(word) for word in option.words]
        elif option.origin is list:
            least, most = option.lengths
            number = f"{least} " if least == most else ""
            item = Hint(option.args[0]).bare
            words.append(f"a list of {number}{'numbers' if item is float else 'words'}")
        else:
            words.append(_TYPES.get(option.bare) or f"{{{', '.join(option.keys)}}}")
    return ", ".join(words)


def fields_of(choice: Choice) -> dict[str, Any]:
    """Return the fields that a backend's section can have, each with the value that is implied.

    The value is None if the field must be written, or belongs only to other offers.
    """
    elsewhere = {key[-1] for key in STAGES[choice.stage].shared}
    found: dict[str, Any] = {}
    for offer in choice.backend.of(choice.stage):
        for name, admits in offer.options.items():
            if name not in elsewhere:
                known = choice.options.get(name) if name in choice.facts else None
                silent = isinstance(known, Mapping) or isinstance(admits, KeepList)
                found.setdefault(name, None if silent else known)
    return found


def _word(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
