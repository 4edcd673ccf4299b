"""From the answers of all arms to one sample to their records."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from simulator.tasks.task import Task


@dataclass(frozen=True, slots=True)
class TaskJudge:
    """Holds answers against the truth, and against the first answer of their group.

    Attributes:
        task: what the answers mean.
        groups: indices of arms that are compared with one another; the first of each is the
            measure. Every arm is in one group.
    """

    task: Task
    groups: tuple[tuple[int, ...], ...]

    def __call__(self, predictions: Sequence[Any], truth: Any, source: Any) -> list[dict[str, Any]]:
        """Return a record for each prediction; the truth is opened once a sample."""
        known = self.task.opened(truth, source)
        records: dict[int, dict[str, Any]] = {}
        for group in self.groups:
            first = predictions[group[0]]
            for arm in group:
                one = predictions[arm]
                records[arm] = self.task.record(one, known) | self.task.change(first, one, known)
        return [records[arm] for arm in range(len(predictions))]
