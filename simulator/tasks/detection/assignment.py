"""True, false and missed objects of one image by an optimal assignment, as IVMOD counts them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from simulator.contract.warp import Size
from simulator.data.truth import Boxes
from simulator.tasks.detection.boxes import Detections, areas, iou

Indices = NDArray[np.intp]
Reading = Literal["most_pairs", "most_overlap", "alficore"]

PAIR = 0.5
"""The least IoU of a pair, by default; equality is enough."""
NEAR = 0.1
"""A false box with a smaller IoU is not a missed object in another place (Bolya et al., TIDE)."""


@dataclass(frozen=True, slots=True, eq=False)
class Reference:
    """What is in an image.

    Attributes:
        objects: those that must be found.
        regions: those that are neither found nor missed: crowds and difficult objects.
        crowd: (regions,) bool: a region of many objects.
    """

    objects: Detections
    regions: Detections
    crowd: NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Counts:
    """How the boxes of one image compare with what is in it.

    Attributes:
        found: the objects of the reference that have a partner.
        missed: how many have none.
        false: the boxes without a partner, those in regions excepted.
    """

    found: Indices
    missed: int
    false: Indices

    @property
    def triple(self) -> tuple[int, int, int]:
        """TP, FP and FN."""
        return len(self.found), len(self.false), self.missed


def objects(found: Detections, threshold: float, size: Size) -> Detections:
    """Return the detections that count, with corners in order and within the image.

    A box outside has no area and still counts.

    Args:
        found: of one image.
        threshold: only boxes with a larger score are objects.
        size: rows and columns of the image.
    """
    shown = found.above(threshold)
    return Detections(_inside(shown.boxes, size), shown.scores, shown.classes)


def reference(truth: Boxes | None, golden: Detections, size: Size) -> Reference:
    """Return what people have annotated, or, where nobody has, what was found without a fault."""
    if truth is None:
        return Reference(golden, golden.take(np.zeros(0, np.intp)), np.zeros(0, bool))
    everything = Detections(_inside(truth.corners, size), np.ones(len(truth)), truth.classes)
    aside = truth.crowd | truth.difficult
    return Reference(everything.take(~aside), everything.take(aside), truth.crowd[aside])


def count(
    found: Detections, there: Reference, reading: Reading = "most_pairs", least: float = PAIR
) -> Counts:
    """Assign boxes to the objects of an image.

    A pair needs equal classes and enough IoU; a mismatched pair is a false and a missed object. A
    box without a partner is not false if it could have been a difficult object, or if half of it
    lies in a crowd of its class.

    Args:
        found: the boxes.
        there: what is in the image.
        reading: see :func:`pairs`.
        least: the least IoU of a pair.
    """
    overlaps, same = iou(found.boxes, there.objects.boxes), _alike(found, there.objects)
    rows, columns = pairs(overlaps, same, reading, least)
    alone = np.setdiff1d(np.arange(len(found)), rows)
    false = alone[~_aside(found.take(alone), there)]
    return Counts(np.sort(columns), len(there.objects) - len(columns), false)


def kinds(false: Detections, missed: Detections, least: float = PAIR) -> tuple[int, int, int]:
    """Return how many false boxes are a missed object with another label, one shifted, and ghosts.

    Each missed object explains one box at most: first those with enough IoU and another class, then
    those of its class with an IoU of :data:`NEAR`. Everything else, a second box of an object that
    is found too, is a ghost.

    Args:
        false: the boxes without a partner.
        missed: the objects without one.
        least: the least IoU of a pair.
    """
    overlaps, same = iou(false.boxes, missed.boxes), _alike(false, missed)
    rows, columns = pairs(overlaps, ~same, "most_pairs", least)
    same[rows], same[:, columns] = False, False
    shifted = len(pairs(overlaps, same, "most_pairs", min(NEAR, least))[0])
    return len(rows), shifted, len(false) - len(rows) - shifted


def _alike(found: Detections, objects: Detections) -> NDArray[np.bool_]:
    """(n, m) whether classes agree."""
    same: NDArray[np.bool_] = found.classes[:, None] == objects.classes[None]
    return same


def pairs(
    overlaps: NDArray[np.float64], same: NDArray[np.bool_], reading: Reading, least: float = PAIR
) -> tuple[Indices, Indices]:
    """Return the pairs of an optimal assignment; only valid ones, of one class and enough IoU.

    Args:
        overlaps: (n, m) IoU.
        same: (n, m) whether the classes agree.
        reading: what is optimal, since the paper does not say how large its "maximum cost" of
            invalid pairs is. ``most_pairs``: the most valid pairs, then their IoU (an infinite
            cost). ``most_overlap``: the largest sum of IoU of valid pairs (a cost of 1).
            ``alficore``: the largest sum of IoU of all pairs of one class, of which the invalid
            ones are dropped afterwards, as the authors' published code does.
        least: the least IoU of a pair.

    Returns:
        Indices of the rows and of the columns.

    Source:
        Qutub et al., SAFECOMP 2022, section 4.2; IntelLabs/pytorchalfi,
        ``alficore.evaluation.ivmod_metric``; Kuhn 1955, by scipy.optimize.linear_sum_assignment.
    """
    from scipy.optimize import linear_sum_assignment

    valid = same & (overlaps >= least)
    if reading == "alficore":
        worth = overlaps * same
    else:
        extra = min(overlaps.shape) + 1.0 if reading == "most_pairs" else 0.0
        worth = np.where(valid, overlaps + extra, 0.0)
    rows, columns = linear_sum_assignment(worth, maximize=True)
    kept = valid[rows, columns]
    return rows[kept], columns[kept]


def _inside(boxes: NDArray[np.float64], size: Size) -> NDArray[np.float64]:
    rows, columns = size
    low, high = np.minimum(boxes[:, :2], boxes[:, 2:]), np.maximum(boxes[:, :2], boxes[:, 2:])
    ordered = np.concatenate([low, high], axis=1)
    inside: NDArray[np.float64] = np.clip(ordered, 0, [columns, rows] * 2)
    return inside


def _aside(boxes: Detections, there: Reference) -> NDArray[np.bool_]:
    """Whether each box lies where nothing is counted."""
    regions = there.regions.boxes
    low = np.maximum(boxes.boxes[:, None, :2], regions[None, :, :2])
    high = np.minimum(boxes.boxes[:, None, 2:], regions[None, :, 2:])
    common = np.maximum(high - low, 0).prod(axis=2)
    own = areas(boxes.boxes)[:, None]
    within = np.divide(common, own, out=np.zeros_like(common), where=own > 0)
    share = np.where(there.crowd[None], within, iou(boxes.boxes, regions))
    alike = _alike(boxes, there.regions)
    covered: NDArray[np.bool_] = np.logical_or.reduce(alike & (share >= PAIR), axis=1)
    return covered
