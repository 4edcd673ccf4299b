"""Which changes a user sees between two stacks' detections in one image."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from simulator.statistics.bootstrap import Floats
from simulator.tasks.detection.boxes import Detections, iou

Indices = NDArray[np.intp]
Fate = Literal["kept", "lost", "gained", "moved", "relabelled", "rescored"]

PAIR = 0.5
"""Boxes with a smaller IoU are two objects: one is lost, the other gained."""
MOVED = 0.9
"""A pair with a smaller IoU has moved."""
RESCORED = 0.1
"""A pair whose scores differ by more is rescored."""
SAME_CLASS = 0.05
"""The IoU that may be lost to pair boxes of the same class where several classes overlap."""
_SCORE = 1e-6
"""Weight of the scores in a choice between boxes that are otherwise equal."""


@dataclass(frozen=True, slots=True)
class Change:
    """How many objects of an image met each fate; see :func:`fates`.

    Attributes:
        kept: pairs without any of the differences below.
        lost: objects of the first stack without a counterpart.
        gained: objects of the second stack without a counterpart.
        moved: pairs of one class with an IoU under :data:`MOVED`.
        relabelled: pairs of two classes.
        rescored: pairs whose scores differ by more than :data:`RESCORED`, and nothing else.
        mean_iou: of all pairs; None where there is none.
    """

    kept: int
    lost: int
    gained: int
    moved: int
    relabelled: int
    rescored: int
    mean_iou: float | None

    @property
    def changed(self) -> int:
        """Objects that differ for a user; rescored ones do not."""
        return self.lost + self.gained + self.moved + self.relabelled

    @property
    def units(self) -> int:
        """All objects; a pair counts once."""
        return self.changed + self.kept + self.rescored


def change(before: Detections, after: Detections, threshold: float) -> Change:
    """Count the fates of the objects of one image.

    Args:
        before: what the first stack found.
        after: what the second stack found.
        threshold: the operating threshold; see :func:`fates`.
    """
    of_before, of_after, overlaps = _fates(before, after, threshold)
    count = Counter(of_before)
    return Change(
        kept=count["kept"],
        lost=count["lost"],
        gained=of_after.count("gained"),
        moved=count["moved"],
        relabelled=count["relabelled"],
        rescored=count["rescored"],
        mean_iou=float(overlaps.mean()) if len(overlaps) else None,
    )


def fates(before: Detections, after: Detections, threshold: float) -> tuple[list[Fate], list[Fate]]:
    """Return what became of each object.

    Objects are the boxes whose score is above the threshold, as an application shows them. One
    that is found with a lower score is lost as well: the user no longer sees it.

    Objects of the two sides are paired one to one by the Hungarian method, which maximizes the sum
    of IoU (plus :data:`SAME_CLASS` where the classes agree). Only boxes with an IoU of at least
    :data:`PAIR`, or exactly equal ones, can be a pair. A pair is relabelled, else moved, else
    rescored, else kept.

    Args:
        before: what the first stack found.
        after: what the second stack found.
        threshold: only boxes with a larger score are objects.

    Returns:
        The fates of ``before.above(threshold)`` and those of ``after.above(threshold)``, box by
        box; the boxes of a pair have one fate.

    Source:
        Kuhn 1955, "The Hungarian method for the assignment problem";
        scipy.optimize.linear_sum_assignment.
    """
    of_before, of_after, _ = _fates(before, after, threshold)
    return of_before, of_after


def _fates(
    before: Detections, after: Detections, threshold: float
) -> tuple[list[Fate], list[Fate], Floats]:
    """Return both sides' fates, and the IoU of each pair."""
    before, after = before.above(threshold), after.above(threshold)
    of_before: list[Fate] = ["lost"] * len(before)
    of_after: list[Fate] = ["gained"] * len(after)
    rows, columns, overlaps = _pairs(before, after)
    relabelled = before.classes[rows] != after.classes[columns]
    rescored = np.abs(before.scores[rows] - after.scores[columns]) > RESCORED
    words: list[Fate] = np.select(
        [relabelled, overlaps < MOVED, rescored], ["relabelled", "moved", "rescored"], "kept"
    ).tolist()
    for row, column, word in zip(rows.tolist(), columns.tolist(), words, strict=True):
        of_before[row] = of_after[column] = word
    return of_before, of_after, overlaps


def _pairs(before: Detections, after: Detections) -> tuple[Indices, Indices, Floats]:
    """Return the pairs: indices into both sides, and the IoU of each.

    Boxes that cannot be a pair are worth nothing; the assignment may contain them without harm.
    """
    from scipy.optimize import linear_sum_assignment

    # A box without area has no IoU with itself either.
    equal = (before.boxes[:, None] == after.boxes[None]).all(axis=2)
    overlaps = np.where(equal, 1.0, iou(before.boxes, after.boxes))
    same = before.classes[:, None] == after.classes[None]
    near = -np.abs(before.scores[:, None] - after.scores[None])
    worth = np.where(overlaps >= PAIR, overlaps + SAME_CLASS * same + _SCORE * near, 0)
    rows, columns = linear_sum_assignment(worth, maximize=True)
    valid = overlaps[rows, columns] >= PAIR
    rows, columns = rows[valid], columns[valid]
    return rows, columns, overlaps[rows, columns]
