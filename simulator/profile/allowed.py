"""The allowed values of a profile's fields, described for the author of a profile."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from simulator import registry
from simulator.contract import Admits, KeepList, Options
from simulator.contract.stage import STAGES
from simulator.profile.fit import listed
from simulator.profile.hints import Hint
from simulator.profile.implementations import Choice

_TYPES = {float: "a number", int: "a whole number", str: "words", bool: "true, false"}


def by_stage(stage: str) -> str:
    """Return the names of the backends that implement a stage."""
    return ", ".join(backend.name for backend in registry.backends() if backend.of(stage))


def by_backend(choice: Choice, name: str) -> str:
    """Return the values of a field that any of a backend's offers for a stage supports."""
    every = choice.backend.admitted(choice.stage).get(name, [])
    words = dict.fromkeys(word for admits in every for word in listed(admits))
    return f"{choice.backend.name}: {', '.join(words)}"


def by_schema(annotation: Any) -> str:
    """Return the values that the schema allows for a field that does not belong to a backend."""
    words = []
    for option in Hint(annotation).options:
        if option.words:
            words += listed(option.words)
        elif option.origin is list:
            least, most = option.lengths
            number = f"{least} " if least == most else ""
            item = Hint(option.args[0]).bare
            words.append(f"a list of {number}{'numbers' if item is float else 'words'}")
        else:
            words.append(_TYPES.get(option.bare) or f"{{{', '.join(option.keys)}}}")
    return ", ".join(words)


def fields_of(choice: Choice) -> Options:
    """Return the fields that a backend's section can have, each with the value that is implied.

    The value is None if the field must be written, or belongs only to other offers.
    """
    every = choice.backend.admitted(choice.stage).items()
    shared = STAGES[choice.stage].shared_fields
    return {name: _implied(choice, name, admits[0]) for name, admits in every if name not in shared}


def _implied(choice: Choice, name: str, admits: Admits) -> object:
    known = choice.options.get(name) if name in choice.facts else None
    return None if isinstance(known, Mapping) or isinstance(admits, KeepList) else known
