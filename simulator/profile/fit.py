"""Hold the fields of a section against an offer: whether they fit it, and what does not."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from typing import Any

from simulator.contract import Admits, Backend, Implied, KeepList, Offer, Options, Pairs
from simulator.contract.stage import STAGES
from simulator.errors import unknown


def fits(offer: Offer, fields: Options) -> bool:
    """Whether all fields fit an offer."""
    return next(_misfits(offer, fields), None) is None


def mismatches(backend: Backend, offer: Offer, fields: Options) -> list[str]:
    """Return one line for each field that does not fit: the field, a tab, and the problem."""
    return [f"{name}\t{_told(backend, offer, fields, name)}" for name in _misfits(offer, fields)]


def _misfits(offer: Offer, fields: Options) -> Iterator[str]:
    """Yield the names of fields that are unknown, have another value, or are missing."""
    words = STAGES[offer.stage].words
    for name, value in fields.items():
        explained = isinstance(value, str) and value in words
        if name not in offer.options or not (explained or admitted(value, offer.options[name])):
            yield name
    for name, admits in offer.options.items():
        if name not in fields and _needed(name, admits):
            yield name


def _needed(name: str, admits: Admits) -> bool:
    """Whether a profile must have a field: it has several values, or its only device is no CPU."""
    implied = only(admits)
    return implied is None or (name == "device" and implied != "cpu")


def _told(backend: Backend, offer: Offer, fields: Options, name: str) -> str:
    """Return what is wrong with a field."""
    if name not in offer.options:
        return _no_such_field(backend, offer, name)
    admits = offer.options[name]
    if name not in fields:
        return f"required by {backend.name}: {told(admits)}"
    value, known = fields[name], admits if isinstance(admits, tuple) else ()
    near = difflib.get_close_matches(str(value), map(str, known), n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    return f"{backend.name} offers {told(admits)} here, got {shown(value)}{hint}"


def _no_such_field(backend: Backend, offer: Offer, name: str) -> str:
    """Return a message that suggests a similar field, or another backend with this field."""
    spec = STAGES[offer.stage]
    has = {"backend", *spec.own, *backend.admitted(offer.stage)} - spec.shared_fields
    if name not in has and difflib.get_close_matches(name, has, n=1):
        return unknown("key", name, has)
    here = " here" * (name in has)
    return f"{backend.name} has no such field{here}; leave it out; null drops an inherited one"


def admitted(value: Any, admits: Admits) -> bool:
    """Whether a value is supported; true and 1 are different values."""
    alike = [admit for admit in admits if admit == value] if isinstance(admits, tuple) else []
    kinds = {isinstance(one, bool) for one in alike}
    return value in admits and (not kinds or isinstance(value, bool) in kinds)


def only(admits: Admits) -> Any:
    """Return the only value of a field, which a profile may omit; None if it has several."""
    if isinstance(admits, Implied):
        return admits.value
    if isinstance(admits, Pairs):
        return {}
    if isinstance(admits, KeepList):
        return {"op_types": [], "nodes": [], "reason": ""}
    return admits[0] if isinstance(admits, tuple) and len(admits) == 1 else None


def shown(value: object) -> str:
    """Return a value as a profile writes it, in one line."""
    word = str(value).lower() if isinstance(value, bool) else str(value)
    return word if word.isprintable() else repr(word)


def told(admits: Admits) -> str:
    """Return what a field admits: its values, or what its range says of itself."""
    return ", ".join(listed(admits))


def listed(admits: Admits) -> list[str]:
    """Return the values that a field admits; of a range, what it says of itself."""
    return [shown(value) for value in admits] if isinstance(admits, tuple) else [str(admits)]
