"""Makes the records of one sample from the predictions of all arms."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from simulator.contract.warp import WarpOf
from simulator.tasks.task import Task


@dataclass(frozen=True, slots=True)
class TaskJudge:
    """Compares predictions with the ground truth, and with the first prediction of their group.

    Attributes:
        task: decides what counts as correct and as changed.
        groups: indices of arms that are compared with one another; the first of each group is the
            reference. Every arm is in one group.
        warps: for each group where a condition moves the pixels of an image, and truth with them;
            empty where none does.
    """

    task: Task
    groups: tuple[tuple[int, ...], ...]
    warps: tuple[WarpOf | None, ...] = ()

    def __call__(
        self, predictions: Mapping[int, Any], truth: Any, source: Any
    ) -> dict[int, dict[str, Any]]:
        """Return a record for each prediction; the ground truth is loaded once per sample."""
        known = self.task.opened(truth, source)
        records: dict[int, dict[str, Any]] = {}
        for group, warp in zip_longest(self.groups, self.warps):
            answered = [arm for arm in group if arm in predictions]
            if group[0] not in answered:
                continue
            first, own = predictions[group[0]], known
            if warp is not None and truth is not None and self.task.in_pixels:
                moved = self.task.moved(truth, warp, lambda: (source.height, source.width))
                own = self.task.opened(moved, source)
            for arm in answered:
                one = predictions[arm]
                records[arm] = self.task.record(one, own) | self.task.change(first, one, own)
        return records
