"""What comes of the rules of a gate."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from pydantic import BaseModel

from simulator.analysis.figures import (
    MISSING,
    AnySummary,
    Figure,
    by_name,
    figures,
    find,
    leaves,
    of_run,
)
from simulator.analysis.gate import OPS, TIMES, Borne, Rule, not_one
from simulator.notices import Kind, Notice
from simulator.results.shared import Gate, RuleOutcome
from simulator.statistics import planning
from simulator.statistics.paired import clopper_pearson
from simulator.typed import ResultModel, Unit


class _NoFigureError(Exception):
    """A rule has no figure; the message says why."""

    undecided = False


class _UndecidedError(_NoFigureError):
    """The run has the figure, and too few samples to give it a value."""

    undecided = True


def evaluate(
    rules: Sequence[Rule],
    summary: AnySummary,
    undecided: str = "fail",
    shape: type[BaseModel] | None = None,
) -> Gate:
    """Apply rules to a summary; a rule that names no figure fails.

    Where the training stack is no better than guessing, no rule is judged, and each fails; but see
    :func:`unjudged`.

    Args:
        rules: any number; without rules the gate passes.
        summary: as in ``summary.json``.
        undecided: ``pass`` or ``fail``, for a rule on a figure that the samples do not give.
        shape: the model of a summary that is a mapping.
    """
    asked = [for_stack for rule in rules for for_stack in for_stacks(rule, summary)]
    known = by_name(_figures(summary, shape)) if asked else {}
    outcomes = [_apply(one, summary, known) for one in asked]
    if at_chance(summary.get("warnings", ())):
        outcomes = unjudged(outcomes)
    if undecided == "pass":
        outcomes = [
            outcome.model_copy(update={"failed": False}) if outcome.undecided else outcome
            for outcome in outcomes
        ]
    return Gate.of(outcomes)


def at_chance(notices: Iterable[Notice]) -> list[Notice]:
    """Return those of some notices that say that nothing can be judged by the training stack."""
    return [notice for notice in notices if notice.kind is Kind.AT_CHANCE]


def unjudged(outcomes: Sequence[RuleOutcome]) -> list[RuleOutcome]:
    """Return outcomes where the training stack is not better than guessing: none is judged.

    Rules on samples that are not answered keep theirs. What a rule is on may stand before it, with
    a colon.
    """
    told = {
        "value": None, "failed": True, "undecided": False, "judged": False, "chance": None,
        "ci95": None, "more": None,
        "reason": "the training stack is not shown to be better than guessing",
    }  # fmt: skip
    return [
        outcome
        if outcome.rule.rpartition(": ")[2].startswith("failed.")
        else outcome.model_copy(update=told)
        for outcome in outcomes
    ]


def for_stacks(rule: Rule, summary: AnySummary) -> list[Rule]:
    """Return a rule; in place of :class:`Borne` one for each stack that it is about."""
    if not isinstance(rule, Borne):
        return [rule]
    failed = summary.get("failed") or {}
    return [
        rule.of(stack)
        for stack, one in failed.items()
        if (one["count"] or rule.limit) and not one["reference"]
    ]


def _figures(summary: AnySummary, shape: type[BaseModel] | None) -> Sequence[Figure]:
    if isinstance(summary, ResultModel):
        return of_run(summary)
    if shape is None:
        raise TypeError("a mapping has figures of a shape")
    return figures(shape, value=summary)


def _apply(rule: Rule, summary: AnySummary, known: Mapping[str, Figure]) -> RuleOutcome:
    figure = known.get(rule.name)
    path, unit = (figure.path, figure.about.unit) if figure else (rule.name, Unit.NUMBER)
    outcome = RuleOutcome(
        rule=rule.text, value=None, limit=rule.limit, unit=unit, failed=True, reason=None
    )
    try:
        value, limit = _number(path, summary), rule.limit
        if rule.times is not None:
            times = known.get(rule.times)
            limit *= _number(times.path if times else rule.times, summary)
        else:
            limit /= TIMES.get(unit, 1)
    except _NoFigureError as error:
        told = {"reason": str(error), "undecided": error.undecided}
        return outcome.model_copy(update=told)
    judged = {"value": value, "limit": limit, "failed": OPS[rule.op](value, limit)}
    return outcome.model_copy(update=judged | sure(path, limit, summary))


def _number(path: str, summary: AnySummary) -> float:
    """A figure of a run.

    Raises:
        _NoFigureError: there is none.
    """
    parts = path.split(".")
    for side, why in summary.get("nc", {}).items():
        if side in parts:
            raise _NoFigureError(f"{side} did not converge (NC): {why}")
    found = find(summary, parts)
    if found is MISSING:
        raise _NoFigureError(f"this run has no {path}")
    if found is None:
        why = summary.get("missing", {}).get(path, f"{path} has no value in this run")
        raise _UndecidedError(why)
    if isinstance(found, Mapping | list | tuple | ResultModel):
        raise _NoFigureError(not_one(path, list(leaves(found, f"{path}."))))
    if isinstance(found, bool | str) or not isinstance(found, int | float):
        raise _NoFigureError(f"{path} is {found!r}, not a number")
    if not math.isfinite(found):
        raise _NoFigureError(f"{path} is {found}, not a finite number")
    return found


def sure(path: str, limit: float, summary: AnySummary) -> dict[str, object]:
    """Return ``chance``, ``ci95``, ``more`` and ``more_of`` of an outcome, as far as known.

    Args:
        path: of the figure in the summary; one without an interval has none of them.
        limit: that the figure is held against.
        summary: as in ``summary.json``.
    """
    *parent, last = path.split(".")
    if last not in ("rate", "value", "ms"):
        return {}
    ends = find(summary, [*parent, "ci95"])
    if not isinstance(ends, list | tuple) or None in ends:
        return {}
    chance = bool(ends[0] <= limit <= ends[1])
    found = {"chance": chance, "ci95": list(ends)}
    if not chance or last == "ms":
        return found
    return found | _more(parent, (ends[0], ends[1]), limit, summary)


def _more(
    path: Sequence[str], ends: tuple[float, float], limit: float, summary: AnySummary
) -> dict[str, object]:
    """How many more samples would decide a rule, if its figure stays; and what they are."""
    node = find(summary, path)
    samples, of = summary.get("samples") or 0, summary.get("sample_unit", "sample")
    value = node["rate"] if "rate" in node else node["value"]
    seen = summary.get("labelled") or samples
    if "of" in node:
        seen, of = node["of"], "fault" if path[0] == "stacks" else of
    elif "units" in node:
        seen = samples
    if not seen:
        return {}
    counted = "units" in node and (node["units"] == seen or not value)
    if counted or ("of" in node and math.isclose(ends[1], clopper_pearson(node["count"], seen)[1])):
        more = planning.for_rate(value * seen, seen, limit)
    elif node.get("method") == "Bonett-Price":
        more = planning.for_difference(value, ends, seen, limit)
    else:
        more = planning.by_root(value, ends, seen, limit)
    return {"more": more, "more_of": of}
