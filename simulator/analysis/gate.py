"""The release gate: rules on the figures of a summary.

A rule states what must not happen: ``flip_rate > 1%`` fails the gate if more than 1 % flip.
"""

from __future__ import annotations

import difflib
import math
import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from pydantic import BaseModel

from simulator.analysis.figures import (
    MISSING,
    figures,
    find,
    leaves,
    name_of,
    path_of,
    unit_of,
)
from simulator.errors import UserError
from simulator.typed import Typed

OPS: dict[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}

UNITS: dict[str, tuple[str, Decimal]] = {
    "": ("", Decimal(1)),
    "%": ("fraction", Decimal("0.01")),
    "point": ("fraction", Decimal("0.01")),
    "points": ("fraction", Decimal("0.01")),
    "us": ("time", Decimal("0.001")),
    "ms": ("time", Decimal(1)),
    "s": ("time", Decimal(1000)),
}
"""What a unit measures, and its factor to the unit of the summary (fractions, milliseconds)."""

_COUNTS = r"flips\.\w+|samples|skipped|labelled"
_RULE = re.compile(
    r"\s*(?P<name>\w[\w. @-]*?)\s*(?P<op><=|>=|==|!=|<|>)"
    r"\s*(?P<number>[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?)"
    r"(?:\s*\*\s*(?P<times>\w[\w. @-]*?)|\s*(?P<unit>%|points?|us|ms|s|))\s*"
)


@dataclass(frozen=True, slots=True)
class Rule:
    """One condition that fails the gate.

    Attributes:
        text: as the user wrote it.
        path: dotted path of the figure in the summary.
        op: one of ``OPS``.
        limit: in the unit of the summary: a fraction, a count, or milliseconds; with *times* the
            factor of that figure.
        times: dotted path of the figure that the limit is a multiple of; None for a number.
    """

    text: str
    path: str
    op: str
    limit: float
    times: str | None = None


def parse(rule: str) -> Rule:
    """Read one rule, ``NAME OP NUMBER[UNIT]`` or ``NAME OP NUMBER * NAME``.

    Args:
        rule: for example ``flip_rate > 1%``, ``delta.top1 < -0.5 points``,
            ``flip_rate.low > 5%`` (the lower end of the 95 % interval),
            ``deploy.latency.p90 > 20ms``, ``deploy.mCE > 1.1 * train.mCE``.

    Raises:
        UserError: it is not a rule, the unit does not fit the figure, or a share is compared with
            a bare number other than 0 (``delta.top1 < -0.5`` may mean half a point or 50).
    """
    match = _RULE.fullmatch(rule)
    if match is None:
        raise UserError(
            f"cannot read the rule {rule!r}; write NAME {'|'.join(OPS)} NUMBER with %, points, us,"
            " ms, s or no unit, for example 'flip_rate > 1%'"
        )
    path = path_of(match["name"])
    measures, size = UNITS[match["unit"] or ""]
    limit = float(Decimal(match["number"]) * size)
    if not math.isfinite(limit):
        raise UserError(f"the number in the rule {rule!r} is too large")
    if match["times"] is None:
        _check_unit(rule, path, measures, limit)
        return Rule(rule.strip(), path, match["op"], limit)
    times = path_of(match["times"])
    if unit_of(times) != unit_of(path):
        raise UserError(f"the rule {rule!r} compares {path} with {times}, which has another unit")
    return Rule(rule.strip(), path, match["op"], limit, times)


def check(
    rules: Sequence[Rule], shape: type[BaseModel], vocabulary: Mapping[str, Iterable[str]]
) -> None:
    """Check, before a run begins, that it will have the figures that rules name.

    Args:
        rules: any number.
        shape: the model of the summary that the run will write.
        vocabulary: the keys that dictionaries in the summary will have, by the kind of key; see
            :class:`simulator.typed.Keys`.

    Raises:
        UserError: a rule names a figure that the run will not have.
    """
    known = dict.fromkeys(figures(shape, vocabulary)) if rules else {}
    for rule in rules:
        for named in filter(None, (rule.path, rule.times)):
            if named in known:
                continue
            if inside := [path for path in known if path.startswith(f"{named}.")]:
                raise UserError(f"the rule {rule.text!r}: {_not_one(named, inside)}")
            raise UserError(_unknown(rule, named, known))


def evaluate(
    rules: Sequence[Rule], summary: Mapping[str, Any] | Typed, undecided: str = "fail"
) -> dict[str, Any]:
    """Apply rules to a summary; a rule that names no figure fails.

    Args:
        rules: any number; without rules the gate passes.
        summary: as in ``summary.json``.
        undecided: ``pass`` or ``fail``, for a rule on a figure that the samples do not give.

    Returns:
        The fields of :class:`simulator.results.shared.Gate`.
    """
    outcomes = [_apply(rule, summary) for rule in rules]
    if undecided == "pass":
        outcomes = [one | {"failed": one["failed"] and not one["undecided"]} for one in outcomes]
    return {"passed": not any(one["failed"] for one in outcomes), "rules": outcomes}


def _apply(rule: Rule, summary: Mapping[str, Any] | Typed) -> dict[str, Any]:
    outcome = {
        "rule": rule.text, "value": None, "limit": rule.limit, "unit": unit_of(rule.path),
        "failed": True, "undecided": False, "chance": None, "reason": None,
    }  # fmt: skip
    value, problem = _number(rule.path, summary)
    limit = rule.limit
    if rule.times is not None and not problem:
        other, problem = _number(rule.times, summary)
        limit *= other
    if problem:
        return outcome | problem
    failed, chance = OPS[rule.op](value, limit), _chance(rule.path, limit, summary)
    return outcome | {"value": value, "limit": limit, "failed": failed, "chance": chance}


def _number(path: str, summary: Mapping[str, Any] | Typed) -> tuple[float, dict[str, Any]]:
    """A figure of a run; or why there is none, as fields of an outcome."""
    parts = path.split(".")
    for side, why in summary.get("nc", {}).items():
        if side in parts:
            return 0, {"reason": f"{side} did not converge (NC): {why}"}
    found = find(summary, parts)
    if found is MISSING:
        return 0, {"reason": f"this run has no {path}"}
    if found is None:
        why = summary.get("missing", {}).get(path, f"{path} has no value in this run")
        return 0, {"undecided": True, "reason": why}
    if isinstance(found, Mapping | list | tuple | Typed):
        return 0, {"reason": _not_one(path, list(leaves(found, f"{path}.")))}
    if isinstance(found, bool | str) or not isinstance(found, int | float):
        what = f"{found!r}, not a number"
    elif math.isfinite(found):
        return found, {}
    else:
        what = f"{found}, not a finite number"
    return 0, {"reason": f"{path} is {what}"}


def _chance(path: str, limit: float, summary: Mapping[str, Any] | Typed) -> bool | None:
    """Whether the limit lies in the figure's 95 % interval; None where there is no interval."""
    *parent, last = path.split(".")
    ends = find(summary, [*parent, "ci95"]) if last in ("rate", "value", "ms") else None
    if not isinstance(ends, list | tuple) or None in ends:
        return None
    return bool(ends[0] <= limit <= ends[1])


def _check_unit(rule: str, path: str, measures: str, limit: float) -> None:
    time, fraction = unit_of(path) == "ms", unit_of(path) == "fraction"
    if (measures == "time" and not time) or (measures == "fraction" and time):
        is_a = "a time: use us, ms or s" if time else "not a time"
        raise UserError(f"the unit in the rule {rule!r} does not fit: {path} is {is_a}")
    if measures == "fraction" and not fraction and re.fullmatch(_COUNTS, path):
        raise UserError(f"the unit in the rule {rule!r} does not fit: {path} is a count")
    if fraction and not measures and limit:
        raise UserError(
            f"the rule {rule!r} compares a share with a bare number; write {limit:g}% or "
            f"{limit * 100:g}%"
        )


def _not_one(path: str, inside: Iterable[str]) -> str:
    return f"{path} is not one number; name one of: {', '.join(inside)}"


def _unknown(rule: Rule, named: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(named, [*known, "flip_rate"], n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(map(name_of, near))}?" if near else "see summary.json"
    return f"the rule {rule.text!r} names {named}, which this run does not have; {hint}"
