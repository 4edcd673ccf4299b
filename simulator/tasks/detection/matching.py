"""Which changes a user sees between two stacks' detections in one image."""

from __future__ import annotations

from collections import Counter
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from simulator.statistics.bootstrap import Floats
from simulator.tasks.detection.boxes import Detections, overlaps
from simulator.tasks.figures import Flips
from simulator.tasks.score import Values
from simulator.typed import Share

Indices = NDArray[np.intp]
Fate = Literal["kept", "lost", "gained", "moved", "relabelled", "rescored"]
CHANGED: tuple[Fate, ...] = ("lost", "gained", "moved", "relabelled")
"""The fates that a user sees."""
FATES: tuple[Fate, ...] = ("kept", *CHANGED, "rescored")

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


class DetectionFlips(Flips):
    """Objects that differ."""

    lost: int = Field(description="found by the training stack only")
    gained: int = Field(description="found by the deployment stack only")
    moved: int = Field(description="in another place")
    relabelled: int = Field(description="of another class")

    mean_iou: Share | None = Field(
        description="mean overlap of paired boxes; None where there are no pairs"
    )
    rescored: int = Field(description="pairs whose scores differ by more than 0.1")


def change(before: Detections, after: Detections, threshold: float) -> Values:
    """Count what became of the objects of one image.

    Args:
        before: what the first stack found.
        after: what the second stack found.
        threshold: the operating threshold; see :func:`fates`.

    Returns:
        How many objects met each fate; a pair counts once. ``changed``: those that differ for a
        user, as rescored ones do not; ``units``: all; ``mean_iou``: of all pairs, None of none.
    """
    of_before, of_after, shares = _fates(before, after, threshold)
    counts = Counter(of_before) + Counter(fate for fate in of_after if fate == "gained")
    return {
        **{fate: counts[fate] for fate in FATES},
        "changed": sum(counts[fate] for fate in CHANGED),
        "units": counts.total(),
        "mean_iou": float(shares.mean()) if len(shares) else None,
    }


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
    rows, columns, shares = _pairs(before, after)
    relabelled = before.classes[rows] != after.classes[columns]
    rescored = np.abs(before.scores[rows] - after.scores[columns]) > RESCORED
    words: list[Fate] = np.select(
        [relabelled, shares < MOVED, rescored], ["relabelled", "moved", "rescored"], "kept"
    ).tolist()
    for row, column, word in zip(rows.tolist(), columns.tolist(), words, strict=True):
        of_before[row] = of_after[column] = word
    return of_before, of_after, shares


def _pairs(before: Detections, after: Detections) -> tuple[Indices, Indices, Floats]:
    """Return the pairs: indices into both sides, and the IoU of each.

    Boxes that cannot be a pair are worth nothing; the assignment may contain them without harm.
    """
    from scipy.optimize import linear_sum_assignment

    shares = overlaps(before.boxes, after.boxes)
    same = before.classes[:, None] == after.classes[None]
    near = -np.abs(before.scores[:, None] - after.scores[None])
    worth = np.where(shares >= PAIR, shares + SAME_CLASS * same + _SCORE * near, 0)
    rows, columns = linear_sum_assignment(worth, maximize=True)
    valid = shares[rows, columns] >= PAIR
    rows, columns = rows[valid], columns[valid]
    return rows, columns, shares[rows, columns]
