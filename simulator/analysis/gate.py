"""The release gate: rules on the figures of a summary.

A rule states what must not happen: ``flip_rate > 1%`` fails the gate if more than 1 % flip.
"""

from __future__ import annotations

import difflib
import math
import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel

from simulator.errors import UserError
from simulator.typed import Keys, Typed, open_for

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

ALIASES: tuple[tuple[str, str], ...] = (
    (r"flip_rate", r"flips.rate"),
    (r"flip_rate\.low", r"flips.ci95.0"),
    (r"flip_rate\.high", r"flips.ci95.1"),
    (r"delta\.(\w+)\.low", r"delta.\1.ci95.0"),
    (r"delta\.(\w+)\.high", r"delta.\1.ci95.1"),
    (r"delta\.(\w+)", r"delta.\1.value"),
    (r"([\w-]+)\.(quality|tail_quality@.+)", r"tail.\1.\2"),
    (r"([\w-]+)\.qps", r"served.\1.qps"),
    (r"([\w-]+)\.(mFP|mFR)", r"sequences.stacks.\1.\2.value"),
    (r"([\w-]+)\.(FP|FR)\.([\w -]+)", r"sequences.stacks.\1.\2.\3.value"),
    (r"(train|deploy)\.(?!profile$|overrides$|effective$|metric$)([\w ]+)", r"\1.metric.\2"),
    (r"([\w-]+)\.latency\.(p[\d.]+|mean|min|max)", r"latency_ms.\1.total.\2"),
    (r"([\w-]+)\.latency\.(.+)", r"latency_ms.\1.\2"),
)
"""(pattern of a whole name, path in the summary); the first pattern that matches is used."""

_SHORT: tuple[tuple[str, str], ...] = (
    (r"flips\.rate", "flip_rate"),
    (r"flips\.ci95\.0", "flip_rate.low"),
    (r"flips\.ci95\.1", "flip_rate.high"),
    (r"delta\.(\w+)\.value", r"delta.\1"),
    (r"delta\.(\w+)\.ci95\.0", r"delta.\1.low"),
    (r"delta\.(\w+)\.ci95\.1", r"delta.\1.high"),
    (r"tail\.([\w-]+)\.(quality|tail_quality@.+)", r"\1.\2"),
    (r"sequences\.stacks\.([\w-]+)\.(mF[PR]|F[PR]\.[\w -]+)\.value", r"\1.\2"),
    (r"(train|deploy)\.metric\.([\w ]+)", r"\1.\2"),
    (r"latency_ms\.([\w-]+)\.total\.(.+)", r"\1.latency.\2"),
    (r"latency_ms\.([\w-]+)\.(.+)", r"\1.latency.\2"),
)
"""(pattern of a path in the summary, its name in a rule): :data:`ALIASES` the other way round."""
_NOT_RESULTS = ("schema", "seconds", "workers")

_FRACTIONS = (
    r"flips\.(rate|ci95.*|\w+_rates?(\..*)?|mean_iou)|delta\.\w+\.(value|ci95.*)"
    r"|(train|deploy)\.metric\..*|tail\..*|sequences\.stacks\.[\w-]+\.m?FP\..*"
)
_COUNTS = r"flips\.\w+|samples|skipped|labelled"
_TIMES = r"latency_ms\..*|.*[._]ms(\.\d+)?|percentiles\..*\.ci95\.\d+"
_RULE = re.compile(
    r"\s*(?P<name>\w[\w. @-]*?)\s*(?P<op><=|>=|==|!=|<|>)"
    r"\s*(?P<number>[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?)"
    r"\s*(?P<unit>%|points?|us|ms|s|)\s*"
)
_MISSING = object()


@dataclass(frozen=True, slots=True)
class Rule:
    """One condition that fails the gate.

    Attributes:
        text: as the user wrote it.
        path: dotted path of the figure in the summary.
        op: one of ``OPS``.
        limit: in the unit of the summary: a fraction, a count, or milliseconds.
    """

    text: str
    path: str
    op: str
    limit: float


def parse(rule: str) -> Rule:
    """Read one rule, ``NAME OP NUMBER[UNIT]``.

    Args:
        rule: for example ``flip_rate > 1%``, ``delta.top1 < -0.5 points``,
            ``flip_rate.low > 5%`` (the lower end of the 95 % interval),
            ``deploy.latency.p90 > 20ms``.

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
    path = _expand(match["name"])
    measures, size = UNITS[match["unit"]]
    limit = float(Decimal(match["number"]) * size)
    if not math.isfinite(limit):
        raise UserError(f"the number in the rule {rule!r} is too large")
    _check_unit(rule, path, measures, limit)
    return Rule(rule.strip(), path, match["op"], limit)


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
        if rule.path in known:
            continue
        if inside := [path for path in known if path.startswith(f"{rule.path}.")]:
            raise UserError(f"the rule {rule.text!r}: {_not_one(rule.path, inside)}")
        raise UserError(_unknown(rule, known))


def figures(
    shape: type[BaseModel], vocabulary: Mapping[str, Iterable[str]], prefix: str = ""
) -> Iterator[str]:
    """Yield the dotted path of every number that a summary of this shape can have.

    Args:
        shape: a model of results.
        vocabulary: see :func:`check`.
        prefix: put before each path.
    """
    for name, field in shape.model_fields.items():
        path = f"{prefix}{field.alias or name}"
        yield from _numbers(field.annotation, field.metadata, vocabulary, path)
    further = open_for(shape)
    for name in vocabulary.get(further, ()) if further else ():
        yield f"{prefix}{name}"


def _numbers(
    kind: Any, about: Sequence[Any], vocabulary: Mapping[str, Iterable[str]], path: str
) -> Iterator[str]:
    """Yield the paths of numbers below a field of this type; lists of variable length have none."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Annotated:
        yield from _numbers(inner[0], [*about, *inner[1:]], vocabulary, path)
    elif origin in (Union, UnionType):
        for one in inner:
            yield from _numbers(one, about, vocabulary, path)
    elif origin is dict:
        words = [
            word for one in about if isinstance(one, Keys) for word in vocabulary.get(one.of, ())
        ]
        for word in words:
            yield from _numbers(inner[1], (), vocabulary, f"{path}.{word}")
    elif origin is list:
        for at in range(_length(about)):
            yield from _numbers(inner[0], (), vocabulary, f"{path}.{at}")
    elif isinstance(kind, type) and issubclass(kind, BaseModel):
        yield from figures(kind, vocabulary, f"{path}.")
    elif kind in (int, float):
        yield path


def _length(about: Sequence[Any]) -> int:
    """The fixed length of a list; 0 where it varies."""
    limits = [one for field in about for one in getattr(field, "metadata", [field])]
    least = max((one.min_length for one in limits if hasattr(one, "min_length")), default=0)
    most = min((one.max_length for one in limits if hasattr(one, "max_length")), default=-1)
    return least if least == most else 0


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


def names(summary: Mapping[str, Any] | Typed) -> dict[str, tuple[float | None, str]]:
    """Return every figure of a run that a rule can name, with its value and its unit.

    Args:
        summary: as in ``summary.json``.
    """
    found: dict[str, tuple[float | None, str]] = {}
    for path in _leaves(summary, ""):
        value, unit = _find(summary, path.split(".")), _unit(path)
        number = isinstance(value, int | float) and not isinstance(value, bool)
        listed = re.search(r"(?<!ci95)(?<!p\d\d)\.\d+(\.|$)", path)
        if (number or (value is None and unit)) and not listed and path not in _NOT_RESULTS:
            found[_shortest(path)] = value, unit
    return found


def _shortest(path: str) -> str:
    """The name of a figure as people write it in a rule."""
    for pattern, name in _SHORT:
        if match := re.fullmatch(pattern, path):
            return match.expand(name)
    return path


def _apply(rule: Rule, summary: Mapping[str, Any] | Typed) -> dict[str, Any]:
    found = _find(summary, rule.path.split("."))
    outcome = {
        "rule": rule.text, "value": None, "limit": rule.limit, "unit": _unit(rule.path),
        "failed": True, "undecided": False, "chance": None,
    }  # fmt: skip
    if found is _MISSING:
        return {**outcome, "reason": f"this run has no {rule.path}"}
    if found is None:
        why = summary.get("missing", {}).get(rule.path, f"{rule.path} has no value in this run")
        return {**outcome, "undecided": True, "reason": why}
    if isinstance(found, Mapping | list | tuple | Typed):
        return {**outcome, "reason": _not_one(rule.path, list(_leaves(found, f"{rule.path}.")))}
    if isinstance(found, bool | str) or not isinstance(found, int | float):
        return {**outcome, "reason": f"{rule.path} is {found!r}, not a number"}
    if not math.isfinite(found):
        return {**outcome, "reason": f"{rule.path} is {found}, not a finite number"}
    failed, chance = OPS[rule.op](found, rule.limit), _chance(rule, summary)
    return {**outcome, "value": found, "failed": failed, "chance": chance, "reason": None}


def _chance(rule: Rule, summary: Mapping[str, Any] | Typed) -> bool | None:
    """Whether the limit lies in the figure's 95 % interval; None where there is no interval."""
    *parent, last = rule.path.split(".")
    ends = _find(summary, [*parent, "ci95"]) if last in ("rate", "value", "ms") else None
    if not isinstance(ends, list | tuple) or None in ends:
        return None
    return bool(ends[0] <= rule.limit <= ends[1])


def _expand(name: str) -> str:
    for alias, path in ALIASES:
        match = re.fullmatch(alias, name)
        if match:
            return match.expand(path)
    return name


def _check_unit(rule: str, path: str, measures: str, limit: float) -> None:
    time, fraction = _unit(path) == "ms", _unit(path) == "fraction"
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


def _unit(path: str) -> str:
    """The unit of a figure: ``ms``, ``fraction``, or "" for anything else."""
    if re.fullmatch(_TIMES, path):
        return "ms"
    return "fraction" if re.fullmatch(_FRACTIONS, path) else ""


def _find(node: Any, parts: Sequence[str]) -> Any:
    """The value at a path, whose keys may contain dots; None if a part of the path is None."""
    if not parts or node is None:
        return node
    if isinstance(node, list | tuple):
        inside = parts[0].isascii() and parts[0].isdigit() and int(parts[0]) < len(node)
        return _find(node[int(parts[0])], parts[1:]) if inside else _MISSING
    if isinstance(node, Mapping | Typed):
        for length in range(1, len(parts) + 1):
            key = ".".join(parts[:length])
            if key in node:
                found = _find(node[key], parts[length:])
                if found is not _MISSING:
                    return found
    return _MISSING


def _leaves(node: Any, prefix: str) -> Iterator[str]:
    """The paths of all values in *node* that are not mappings or lists."""
    keys = range(len(node)) if isinstance(node, list | tuple) else node.keys()
    for key in keys:
        if isinstance(node[key], Mapping | list | tuple | Typed):
            yield from _leaves(node[key], f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}"


def _not_one(path: str, inside: Iterable[str]) -> str:
    return f"{path} is not one number; name one of: {', '.join(inside)}"


def _unknown(rule: Rule, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(rule.path, [*known, "flip_rate"], n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(near)}?" if near else "see summary.json for the figures"
    return f"the rule {rule.text!r} names {rule.path}, which this run does not have; {hint}"
