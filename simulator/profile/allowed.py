"""What can be written in a field of a profile, in words for the person who fills it in."""

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
    """Return the names of the backends that fill a stage."""
    return ", ".join(backend.name for backend in registry.backends() if backend.of(stage))


def by_backend(choice: Choice, name: str) -> str:
    """Return what any of a backend's offers for a stage admits for a field."""
    offers = choice.backend.of(choice.stage)
    found: dict[str, None] = {}
    for admits in (offer.options[name] for offer in offers if name in offer.options):
        words = map(_word, admits) if isinstance(admits, tuple) else [str(admits)]
        found |= dict.fromkeys(words)
    return f"{choice.backend.name}: {', '.join(found)}"


def by_schema(annotation: Any) -> str:
    """Return what the vocabulary allows for a field that is no backend's."""
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
    """Return the fields of a backend's offers that its section can hold, each with its value.

    That is what the chosen offer implies, or None where it needs to be written or is another's.
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
