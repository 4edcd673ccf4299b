"""The options of one column of a space, enumerated from what the backends offer here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from itertools import chain, combinations, product
from typing import Any

from simulator import registry
from simulator.contract import Admits, Backend, KeepList, Pairs, Subset
from simulator.contract.stage import STAGES
from simulator.errors import SimulatorError
from simulator.profile.implementations import implementation
from simulator.profile.modality import at
from simulator.profile.profile import Profile
from simulator.profile.suite import Option

Fields = dict[str, Any]
"""Fields of a profile, or of a section of one, with their values."""
Column = dict[str, Fields]
"""Options by name; each is a mapping of dotted profile keys to values, as in a suite."""


def section(stage: str, key: str, slow: bool = True) -> Column:
    """Return every implementation of a stage that runs here, each as one whole section.

    Fields that other backends have are set to null, so that an option leaves nothing of the
    section that it replaces.

    Args:
        stage: of the stage table.
        key: of the section in a profile, for example ``color.convert``.
        slow: with those whose library takes seconds to import and is not there yet.
    """
    shared = {place[-1] for place in STAGES[stage].shared}
    fields = {
        name
        for one in registry.backends()
        for offer in one.of(stage)
        for name in offer.options
        if name not in shared
    }
    gone = dict.fromkeys(sorted(fields))
    found: Column = {}
    for backend in registry.backends():
        if not slow and any(one.slow and not one.loaded for one in backend.libraries):
            continue
        made = list(_combinations(backend, stage, shared))
        for values in made:
            whole = {"backend": backend.name, **gone, **values}
            found.setdefault(_name(backend.name, made, values), {key: whole})
    return found


def with_base(column: Column, key: str, base: Profile) -> Column:
    """Return a section's options, after the base's own section where none of them equals it."""
    own = at(base.spec, tuple(key.split(".")))
    if own is None:
        return column
    gone = dict.fromkeys(name for option in column.values() for name in option[key])
    written = {name: v for name, v in own.model_dump(exclude_none=True).items() if name in gone}
    for option in column.values():
        if all(_plain(option[key].get(name)) == _plain(v) for name, v in written.items()):
            return column
    return {base.name: {key: {**gone, **_listed(written)}}, **column}


def _plain(value: Any) -> Any:
    return sorted(value) if isinstance(value, (list, tuple)) else value


def _listed(values: Option) -> Fields:
    return {k: list(v) if isinstance(v, tuple) else v for k, v in values.items()}


def _combinations(backend: Backend, stage: str, shared: set[str]) -> Iterator[Fields]:
    """Yield the values of every combination of fields that a backend admits and can make here."""
    first: Fields = {}
    for offer in backend.of(stage):
        for name in backend.may_be_left_out:
            if name in offer.options:
                first.setdefault(name, next(iter(values_of(offer.options[name])), None))
        admits = {name: values_of(option) for name, option in offer.options.items()}
        own = {name: values for name, values in admits.items() if name not in shared}
        rest = {name: values for name, values in admits.items() if name in shared}
        for values in _rows(own):
            if any(values.get(name, one) != one for name, one in first.items()):
                continue
            if any(_runs(backend.name, stage, _frozen({**values, **more})) for more in _rows(rest)):
                yield values


def _rows(fields: Mapping[str, Sequence[Any]]) -> Iterator[Fields]:
    for row in product(*fields.values()):
        yield dict(zip(fields, row, strict=True))


def values_of(admits: Admits) -> Sequence[Any]:
    """Return the values of a field that are tried; none for words that only a user can give.

    Of a list of switches: each alone, and each two of them.
    """
    if isinstance(admits, tuple):
        return admits
    if isinstance(admits, Subset):
        sizes = (combinations(admits.names, size) for size in (1, 2))
        return [list(names) for names in chain(*sizes)]
    if isinstance(admits, Pairs):
        return ({},)
    if isinstance(admits, KeepList):
        return (None,)
    low = getattr(admits, "low", None)
    return () if low is None else (low,)


def _frozen(values: Option) -> tuple[tuple[str, Any], ...]:
    return tuple(
        (name, tuple(value) if isinstance(value, list) else value)
        for name, value in values.items()
        if not isinstance(value, Mapping) and value is not None
    )


@cache
def _runs(name: str, stage: str, frozen: tuple[tuple[str, Any], ...]) -> bool:
    """Whether an implementation can be made here: its library, its device and its options."""
    values = {key: list(one) if isinstance(one, tuple) else one for key, one in frozen}
    with suppress(SimulatorError):
        backend = registry.backend(name)
        registry.require(backend)
        implementation(stage, backend, values).make()
        return True
    return False


def _name(backend: str, made: Sequence[Option], values: Option) -> str:
    """Return the backend's name and the fields in which its options differ."""
    varies = [name for name in values if len({str(one.get(name)) for one in made}) > 1]
    return " ".join([backend, *(f"{name}={_word(values[name])}" for name in varies)])


def _word(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return "+".join(map(str, value))
    return str(value).lower() if isinstance(value, bool) else str(value)
