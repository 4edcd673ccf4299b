"""IVMOD: how often a fault corrupts an image silently, how often it is detected, how severely.

Source:
    Qutub et al., Hardware Faults that Matter: Understanding and Estimating the Safety Impact of
    Hardware Faults on Object Detection DNNs, SAFECOMP 2022, equation 1 and table 1.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from simulator.analysis.faults import Mean, Rate, mean, rate
from simulator.tasks.impact import Due
from simulator.tasks.score import Record
from simulator.tasks.task import Task

Row = Mapping[str, Any]
"""What :meth:`simulator.tasks.impact.Impact.row` returned."""


@dataclass(frozen=True, slots=True)
class Ivmod:
    """The rates of a campaign; of all inferences with a fault, whatever became of it.

    Attributes:
        sdc: silent data corruption.
        due: detected: NaN or an infinity between layers or in the outputs.
        refused: finite outputs that are not what the model card promises; the paper has no such
            class, and they are in neither of the others.
        masked: nothing changed.
        strict: silent, by a stricter reading than counts; None where the task has none.
    """

    sdc: Rate
    due: Rate
    refused: Rate
    masked: Rate
    strict: Rate | None


def ivmod(rows: Sequence[Row]) -> Ivmod:
    """Return the rates of a campaign's rows.

    Raises:
        ValueError: there is none.
    """
    trials = len(rows)
    sdc = sum(row["sdc"] for row in rows)
    refused = sum(row["why"] == Due.REFUSED for row in rows)
    due = sum(row["due"] for row in rows) - refused
    strict = None
    if any("strict" in row for row in rows):
        strict = rate(sum(bool(row["strict"]) for row in rows), trials)
    return Ivmod(
        sdc=rate(sdc, trials),
        due=rate(due, trials),
        refused=rate(refused, trials),
        masked=rate(trials - sdc - due - refused, trials),
        strict=strict,
    )


def severity(
    rows: Sequence[Row], columns: Sequence[str], clusters: Sequence[Hashable] | None = None
) -> dict[str, Mean]:
    """Return the mean of each column over the silent corruptions, as the paper's table 1.

    Args:
        rows: of a campaign.
        columns: numbers, or booleans.
        clusters: what each row depends on, for the bootstrap; each row by itself where None.
    """
    silent = [at for at, row in enumerate(rows) if row["sdc"]]
    keys = None if clusters is None else [clusters[at] for at in silent]
    return {name: mean([rows[at][name] for at in silent], keys) for name in columns}


def metrics(
    task: Task,
    golden: Sequence[Record],
    faulty: Sequence[Record | None],
    truths: Sequence[Any],
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
    answered = [
        task.late(was) if now is None else now for was, now in zip(golden, faulty, strict=True)
    ]
    before, after = (dict(task.score(list(some), truths).metrics) for some in (golden, answered))
    return before, after
