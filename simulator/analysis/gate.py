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
from simulator.analysis.sure import sure
from simulator.errors import UserError
from simulator.notices import Kind, Notice
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

_COUNTS = r"flips\.\w+|samples|skipped|labelled|failed\..*\.(count|of)"
_RULE = re.compile(
    r"\s*(?P<name>\w[\w. @-]*?)\s*(?P<op><=|>=|==|!=|<|>)"
    r"\s*(?P<number>[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?)"
    r"(?:\s*\*\s*(?P<times>\w[\w. @-]*?)|\s*(?P<unit>%|points?|us|ms|s|))\s*"
)


NOT_JUDGED: dict[str, Any] = {
    "value": None, "failed": True, "undecided": False, "judged": False, "chance": None,
    "ci95": None, "more": None,
    "reason": "the training stack is not shown to be better than guessing",
}  # fmt: skip
"""Of the outcome of a rule that cannot be judged by such a training stack."""
_ON_FAILURES = re.compile(r"(?:.*: )?failed\.")


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


@dataclass(frozen=True, slots=True)
class Borne(Rule):
    """What every gate has besides its rules: how many samples the deployment alone may fail on.

    Its outcome is one for each stack but the reference; where none is borne, for each that failed.
    """

    def of(self, stack: str) -> Rule:
        """Return the rule on one stack."""
        return Rule(f"failed.{stack} > {self.text}", f"failed.{stack}.rate", self.op, self.limit)


def read(fail_on: Sequence[str], allow_failed: str | None = None) -> list[Rule]:
    """Read the rules of a gate.

    Args:
        fail_on: the rules; without any there is no gate.
        allow_failed: the share of samples on which the deployment alone may fail, ``0.1%``; none
            by default.

    Raises:
        UserError: one is no rule, or the share is none.
    """
    rules = [parse(rule) for rule in fail_on]
    return [*rules, borne(allow_failed)] if rules else []


def borne(allow_failed: str | None) -> Borne:
    """Return the rule on samples on which the deployment alone fails; see :func:`read`.

    Raises:
        UserError: the share is none.
    """
    written = "0%" if allow_failed is None else str(allow_failed).strip()
    try:
        rule = parse(f"failed.deploy > {written}")
    except UserError as error:
        raise UserError(_no_share(allow_failed)) from error
    if not 0 <= rule.limit <= 1 or rule.times is not None:
        raise UserError(_no_share(allow_failed))
    return Borne(written, "failed", ">", rule.limit)


def _no_share(allow_failed: str | None) -> str:
    return f"--allow-failed {allow_failed}: a share expected, from 0% to 100%, for example 0.1%"


def parse(rule: str) -> Rule:
    """Read one rule, ``NAME OP NUMBER[UNIT]`` or ``NAME OP NUMBER * NAME``.

    Args:
        rule: for example ``flip_rate > 1%``, ``delta.top1 < -0.5 points``,
            ``flip_rate.low > 5%`` (the lower end of the 95 % interval),
            ``deploy.latency.p90 > 20ms``, ``deploy.mCE > 1.1 * train.mCE``.

    Raises:
        UserError: it is not a rule, the unit does not fit the figure, or a share or a time is
            compared with a bare number other than 0 (``delta.top1 < -0.5`` may mean half a point
            or 50).
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
        if isinstance(rule, Borne):
            continue
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
        The fields of :class:`simulator.results.shared.Gate`. Where the training stack is no better
        than guessing, no rule is judged, and each fails; but see :func:`holds_at_chance`.
    """
    outcomes = [_apply(one, summary) for rule in rules for one in for_stacks(rule, summary)]
    if at_chance(summary.get("warnings", ())):
        outcomes = [one if holds_at_chance(one["rule"]) else one | NOT_JUDGED for one in outcomes]
    if undecided == "pass":
        outcomes = [one | {"failed": one["failed"] and not one["undecided"]} for one in outcomes]
    return {"passed": not any(one["failed"] for one in outcomes), "rules": outcomes}


def at_chance(notices: Iterable[Notice]) -> list[Notice]:
    """Return those of some notices that say that nothing can be judged by the training stack."""
    return [one for one in notices if one.kind is Kind.AT_CHANCE]


def holds_at_chance(rule: str) -> bool:
    """Whether a rule is judged by any training stack: one on samples that are not answered.

    Args:
        rule: its text; what it is on may stand before it, with a colon.
    """
    return _ON_FAILURES.match(rule) is not None


def for_stacks(rule: Rule, summary: Mapping[str, Any] | Typed) -> list[Rule]:
    """Return a rule; in place of :class:`Borne` one for each stack that it is about."""
    if not isinstance(rule, Borne):
        return [rule]
    failed = summary.get("failed") or {}
    return [
        rule.of(stack)
        for stack, one in failed.items()
        if (one["count"] or rule.limit) and not one["reference"]
    ]


def _apply(rule: Rule, summary: Mapping[str, Any] | Typed) -> dict[str, Any]:
    outcome = {
        "rule": rule.text, "value": None, "limit": rule.limit, "unit": unit_of(rule.path),
        "failed": True, "undecided": False, "judged": True, "chance": None,
        "reason": None,
    }  # fmt: skip
    value, problem = _number(rule.path, summary)
    limit = rule.limit
    if rule.times is not None and not problem:
        other, problem = _number(rule.times, summary)
        limit *= other
    if problem:
        return outcome | problem
    judged = {"value": value, "limit": limit, "failed": OPS[rule.op](value, limit)}
    return outcome | judged | sure(rule.path, limit, summary)


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
    if time and not measures and limit:
        raise UserError(
            f"the rule {rule!r} compares a time with a bare number; write {limit:g}ms, or us or s"
        )


def _not_one(path: str, inside: Iterable[str]) -> str:
    return f"{path} is not one number; name one of: {', '.join(inside)}"


def _unknown(rule: Rule, named: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(named, [*known, "flip_rate"], n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(map(name_of, near))}?" if near else "see summary.json"
    return f"the rule {rule.text!r} names {named}, which this run does not have; {hint}"
