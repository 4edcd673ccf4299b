"""A task's own metrics beside the verdicts on single answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from simulator.results.faults import Curve
from simulator.tasks.score import Record
from simulator.tasks.task import Task

DRAWN = 5
"""So many curves are kept: the mean, and those of the classes that change most."""


def metrics(
    task: Task, golden: Sequence[Record], faulty: Sequence[Record | None], truths: Sequence[Any]
) -> tuple[dict[str, float | None], dict[str, float | None]]:
    """Return a task's metrics without and with faults, for example AP50 and mAP.

    They stand beside IVMOD to show where they mislead: they are of objects, not of images, and a
    fault that a user would never see can move them, or the reverse.

    Args:
        task: of the model.
        golden: ``Task.record`` of the prediction without a fault, one an inference; that of an
            image with several faults several times.
        faulty: with the fault; None where it was detected, which counts as no answer.
        truths: what ``Task.opened`` returned, of the same inferences.
    """
    if not golden:
        return dict.fromkeys(task.metrics), dict.fromkeys(task.metrics)
    answered = _answered(task, golden, faulty)
    scored = (task.score(list(some), truths).metrics for some in (golden, answered))
    before, after = ({name: found[name] for name in task.metrics} for found in scored)
    return before, after


def curves(
    task: Task, golden: Sequence[Record], faulty: Sequence[Record | None], truths: Sequence[Any]
) -> dict[str, Curve]:
    """Return precision over recall without and with faults; the arguments are those above."""
    if not golden:
        return {}
    answered = _answered(task, golden, faulty)
    before, after = (task.curves(list(some), truths) for some in (golden, answered))
    changed = {name: abs(sum(before[name]) - sum(after[name])) for name in before}
    mean, others = list(before)[:1], list(before)[1:]
    chosen = [*mean, *sorted(others, key=lambda name: -changed[name])][:DRAWN]
    return {name: Curve(clean=list(before[name]), faulty=list(after[name])) for name in chosen}


def _answered(
    task: Task, golden: Sequence[Record], faulty: Sequence[Record | None]
) -> list[Record]:
    both = zip(golden, faulty, strict=True)
    return [task.late(was) if now is None else now for was, now in both]
