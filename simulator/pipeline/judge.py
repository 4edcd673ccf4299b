"""Makes the records of one sample from the predictions of all arms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from simulator.tasks.task import Task


@dataclass(frozen=True, slots=True)
class TaskJudge:
    """Compares predictions with the ground truth, and with the first prediction of their group.

    Attributes:
        task: decides what counts as correct and as changed.
        groups: indices of arms that are compared with one another; the first of each group is the
            reference. Every arm is in one group.
    """

    task: Task
    groups: tuple[tuple[int, ...], ...]

    def __call__(self, predictions: Sequence[Any], truth: Any, source: Any) -> list[dict[str, Any]]:
        """Return a record for each prediction; the ground truth is loaded once per sample."""
        known = self.task.opened(truth, source)
        records: dict[int, dict[str, Any]] = {}
        for group in self.groups:
            first = predictions[group[0]]
            for arm in group:
                one = predictions[arm]
                records[arm] = self.task.record(one, known) | self.task.change(first, one, known)
        return [records[arm] for arm in range(len(predictions))]
