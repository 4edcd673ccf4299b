"""What comes of the rules of a gate."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pydantic import BaseModel

from simulator.analysis.figures import MISSING, Figure, by_name, figures, find, leaves, of_run
from simulator.analysis.gate import OPS, TIMES, Borne, Rule, not_one
from simulator.analysis.sure import sure
from simulator.notices import Kind, Notice
from simulator.typed import ResultModel, Unit

NOT_JUDGED: dict[str, Any] = {
    "value": None, "failed": True, "undecided": False, "judged": False, "chance": None,
    "ci95": None, "more": None,
    "reason": "the training stack is not shown to be better than guessing",
}  # fmt: skip
"""Of the outcome of a rule that cannot be judged by such a training stack."""


def evaluate(
    rules: Sequence[Rule],
    summary: Mapping[str, Any] | ResultModel,
    undecided: str = "fail",
    shape: type[BaseModel] | None = None,
) -> dict[str, Any]:
    """Apply rules to a summary; a rule that names no figure fails.

    Args:
        rules: any number; without rules the gate passes.
        summary: as in ``summary.json``.
        undecided: ``pass`` or ``fail``, for a rule on a figure that the samples do not give.
        shape: the model of a summary that is a mapping.

    Returns:
        The fields of :class:`simulator.results.shared.Gate`. Where the training stack is no better
        than guessing, no rule is judged, and each fails; but see :func:`holds_at_chance`.
    """
    asked = [one for rule in rules for one in for_stacks(rule, summary)]
    known = by_name(_figures(summary, shape)) if asked else {}
    outcomes = [_apply(one, summary, known) for one in asked]
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
    return rule.rpartition(": ")[2].startswith("failed.")


def for_stacks(rule: Rule, summary: Mapping[str, Any] | ResultModel) -> list[Rule]:
    """Return a rule; in place of :class:`Borne` one for each stack that it is about."""
    if not isinstance(rule, Borne):
        return [rule]
    failed = summary.get("failed") or {}
    return [
        rule.of(stack)
        for stack, one in failed.items()
        if (one["count"] or rule.limit) and not one["reference"]
    ]


def _figures(
    summary: Mapping[str, Any] | ResultModel, shape: type[BaseModel] | None
) -> Sequence[Figure]:
    if isinstance(summary, ResultModel):
        return of_run(summary)
    if shape is None:
        raise TypeError("a mapping has figures of a shape")
    return figures(shape, value=summary)


def _apply(
    rule: Rule, summary: Mapping[str, Any] | ResultModel, known: Mapping[str, Figure]
) -> dict[str, Any]:
    figure = known.get(rule.name)
    path = figure.path if figure else rule.name
    outcome = {
        "rule": rule.text, "value": None, "limit": rule.limit, "unit": _written(figure),
        "failed": True, "undecided": False, "judged": True, "chance": None,
        "reason": None,
    }  # fmt: skip
    value, problem = _number(path, summary)
    limit = rule.limit
    if rule.times is not None and not problem:
        times = known.get(rule.times)
        other, problem = _number(times.path if times else rule.times, summary)
        limit *= other
    elif figure and figure.about.unit in TIMES:
        limit /= TIMES[figure.about.unit]
    if problem:
        return outcome | problem
    judged = {"value": value, "limit": limit, "failed": OPS[rule.op](value, limit)}
    return outcome | judged | sure(path, limit, summary)


def _written(figure: Figure | None) -> str:
    """The unit of an outcome."""
    unit = figure.about.unit if figure else Unit.NUMBER
    return "fraction" if unit in (Unit.SHARE, Unit.POINTS) else "ms" if unit is Unit.MS else ""


def _number(path: str, summary: Mapping[str, Any] | ResultModel) -> tuple[float, dict[str, Any]]:
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
    if isinstance(found, Mapping | list | tuple | ResultModel):
        return 0, {"reason": not_one(path, list(leaves(found, f"{path}.")))}
    if isinstance(found, bool | str) or not isinstance(found, int | float):
        what = f"{found!r}, not a number"
    elif math.isfinite(found):
        return found, {}
    else:
        what = f"{found}, not a finite number"
    return 0, {"reason": f"{path} is {what}"}
