"""The rules of a release gate, on the figures of a summary.

A rule states what must not happen: ``flip_rate > 1%`` fails the gate if more than 1 % flip.
"""

from __future__ import annotations

import difflib
import math
import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

from pydantic import BaseModel

from simulator.analysis.figures import Figure, by_name, figures
from simulator.errors import UserError
from simulator.typed import Unit

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
    "%": ("share", Decimal("0.01")),
    "point": ("share", Decimal("0.01")),
    "points": ("share", Decimal("0.01")),
    "us": ("time", Decimal("0.001")),
    "ms": ("time", Decimal(1)),
    "s": ("time", Decimal(1000)),
}
"""What a unit measures, and its factor to that of a limit: a fraction, or milliseconds."""
_SHARES = (Unit.SHARE, Unit.POINTS)
TIMES = {Unit.MS: 1, Unit.SECONDS: 1000}
"""Milliseconds of each."""
_ANY = (Unit.RATIO, Unit.NUMBER)
"""May be held against a share and against a bare number."""
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
        name: of the figure, as the user wrote it, or its path in the summary.
        op: one of ``OPS``.
        limit: a fraction, a count, or milliseconds; with *times* the factor of that figure.
        measures: what the unit of the limit measures: ``share``, ``time``, or "" without a unit.
        times: name of the figure that the limit is a multiple of; None for a number.
    """

    text: str
    name: str
    op: str
    limit: float
    measures: str = ""
    times: str | None = None


@dataclass(frozen=True, slots=True)
class Borne(Rule):
    """What every gate has besides its rules: how many samples the deployment alone may fail on.

    Its outcome is one for each stack but the reference; where none is borne, for each that failed.
    """

    def of(self, stack: str) -> Rule:
        """Return the rule on one stack."""
        return Rule(
            f"failed.{stack} > {self.text}", f"failed.{stack}.rate", self.op, self.limit, "share"
        )


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
    share = rule.measures == "share" or (not rule.measures and not rule.limit)
    if not share or not 0 <= rule.limit <= 1 or rule.times is not None:
        raise UserError(_no_share(allow_failed))
    return Borne(written, "failed", ">", rule.limit)


def _no_share(allow_failed: str | None) -> str:
    return f"--allow-failed {allow_failed}: a share expected, from 0% to 100%, for example 0.1%"


def parse(rule: str) -> Rule:
    """Read one rule, ``NAME OP NUMBER[UNIT]`` or ``NAME OP NUMBER * NAME``.

    Args:
        rule: for example ``flip_rate > 1%``, ``delta.top1 < -0.5 points``,
            ``flip_rate.low > 5%`` (the lower end of the 95 % interval),
            ``deploy.latency.p90 > 20ms``, ``deploy.mCE > 1.1 * train.mCE``. Whether there is such
            a figure, and in that unit, is told by :func:`check`.

    Raises:
        UserError: it is not a rule.
    """
    match = _RULE.fullmatch(rule)
    if match is None:
        raise UserError(
            f"cannot read the rule {rule!r}; write NAME {'|'.join(OPS)} NUMBER with %, points, us,"
            " ms, s or no unit, for example 'flip_rate > 1%'"
        )
    measures, size = UNITS[match["unit"] or ""]
    limit = float(Decimal(match["number"]) * size)
    if not math.isfinite(limit):
        raise UserError(f"the number in the rule {rule!r} is too large")
    return Rule(rule.strip(), match["name"], match["op"], limit, measures, match["times"])


def check(
    rules: Sequence[Rule], shape: type[BaseModel], vocabulary: Mapping[str, Iterable[str]]
) -> list[Rule]:
    """Hold rules against what a run will have, before it is run.

    Args:
        rules: any number.
        shape: the model of the summary that the run will write.
        vocabulary: the keys that dictionaries in the summary will have, by the kind of key; see
            :class:`simulator.typed.Keys`.

    Returns:
        The rules, each with the paths of its figures as names.

    Raises:
        UserError: a rule names a figure that the run will not have, the unit does not fit the
            figure, or a share or a time is compared with a bare number other than 0
            (``delta.top1 < -0.5`` may mean half a point or 50).
    """
    if not rules:
        return []
    known = by_name(figures(shape, vocabulary))
    for rule in rules:
        for name in () if isinstance(rule, Borne) else filter(None, (rule.name, rule.times)):
            _require(rule, name, known)
    return resolved(rules, known)


def resolved(rules: Sequence[Rule], known: Mapping[str, Figure]) -> list[Rule]:
    """Return rules with the paths of their figures as names.

    Args:
        rules: any number; one on a figure that is not known stays as it is.
        known: figures by all their names, see :func:`simulator.analysis.figures.by_name`.

    Raises:
        UserError: a unit does not fit; see :func:`check`.
    """
    return [
        rule if {rule.name, rule.times or rule.name} - {*known} else _resolved(rule, known)
        for rule in rules
    ]


def _resolved(rule: Rule, known: Mapping[str, Figure]) -> Rule:
    figure = known[rule.name]
    if rule.times is None:
        _check_unit(rule, figure)
        return replace(rule, name=figure.path)
    other = known[rule.times]
    if other.about.unit is not figure.about.unit:
        raise UserError(
            f"the rule {rule.text!r} compares {figure.path} with {other.path}, which has another "
            "unit"
        )
    return replace(rule, name=figure.path, times=other.path)


def _require(rule: Rule, name: str, known: Mapping[str, Figure]) -> None:
    """Refuse a name that no figure has."""
    if name in known:
        return
    paths = dict.fromkeys(figure.path for figure in known.values())
    if inside := [path for path in paths if path.startswith(f"{name}.")]:
        raise UserError(f"the rule {rule.text!r}: {not_one(name, inside)}")
    near = [known[match] for match in difflib.get_close_matches(name, known, n=9, cutoff=0.5)]
    whole = sorted(near, key=lambda figure: len(figure.names) == 1)  # a figure before its p-value
    names = [*dict.fromkeys(figure.names[0] for figure in whole)][:3]
    hint = f"did you mean {' or '.join(names)}?" if near else "see summary.json"
    raise UserError(f"the rule {rule.text!r} names {name}, which this run does not have; {hint}")


def not_one(path: str, inside: Iterable[str]) -> str:
    """Return why a part is no figure: it has several."""
    return f"{path} is not one number; name one of: {', '.join(inside)}"


def _check_unit(rule: Rule, figure: Figure) -> None:
    unit, text, limit = figure.about.unit, rule.text, rule.limit
    is_time, is_share = unit in TIMES, unit in _SHARES
    if rule.measures == "time" and not is_time:
        raise _does_not_fit(text, f"{figure.path} is not a time")
    if rule.measures == "share" and is_time:
        raise _does_not_fit(text, f"{figure.path} is a time: use us, ms or s")
    if rule.measures == "share" and not is_share and unit not in _ANY:
        what = "a count" if unit is Unit.COUNT else f"in {unit.value}"
        raise _does_not_fit(text, f"{figure.path} is {what}")
    if rule.measures or not limit:
        return
    if is_share:
        raise UserError(
            f"the rule {text!r} compares a share with a bare number; write {limit:g}% or "
            f"{limit * 100:g}%"
        )
    if is_time:
        raise UserError(
            f"the rule {text!r} compares a time with a bare number; write {limit:g}ms, or us or s"
        )


def _does_not_fit(rule: str, why: str) -> UserError:
    return UserError(f"the unit in the rule {rule!r} does not fit: {why}")
