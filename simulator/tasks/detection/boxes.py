"""Boxes in an image, and how much they overlap."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simulator.tasks.score import Record


@dataclass(frozen=True, slots=True, eq=False)
class Detections:
    """What a detector found in one image; n may be 0.

    Attributes:
        boxes: (n, 4) float64: x1, y1, x2, y2 in pixels of the image, not necessarily inside it.
        scores: (n,) float64, not increasing.
        classes: (n,) int64, indices into the model's labels.
    """

    boxes: NDArray[np.float64]
    scores: NDArray[np.float64]
    classes: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.scores)

    def take(self, rows: NDArray[Any]) -> Detections:
        """Return some of them, by their indices or by a mask."""
        return Detections(self.boxes[rows], self.scores[rows], self.classes[rows])

    def above(self, threshold: float) -> Detections:
        """Return the detections with a larger score."""
        return self.take(self.scores > threshold)


def xywh(boxes: NDArray[np.float64]) -> NDArray[np.float64]:
    """Left, top, width and height of (n, 4) x1, y1, x2, y2: the COCO form, without +1."""
    return np.concatenate([boxes[:, :2], boxes[:, 2:] - boxes[:, :2]], axis=1)


def areas(boxes: NDArray[np.float64], offset: float = 0) -> NDArray[np.float64]:
    """Areas of (n, 4) x1, y1, x2, y2, at least 0, where a width is x2 - x1 + *offset*."""
    sides = np.maximum(boxes[:, 2:] - boxes[:, :2] + offset, 0)
    product: NDArray[np.float64] = sides[:, 0] * sides[:, 1]
    return product


def iou(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    """Intersection over union of every box of *a* with every box of *b*.

    Args:
        a: (n, 4) x1, y1, x2, y2.
        b: (m, 4) likewise.

    Returns:
        (n, m) float64 in [0, 1]; 0 with a box that has no area.
    """
    a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
    both = common(a, b)
    union = areas(a)[:, None] + areas(b)[None, :] - both
    share: NDArray[np.float64] = np.divide(both, union, out=np.zeros_like(both), where=union > 0)
    return share


def common(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return (n, m) the area that every box of *a* has in common with every box of *b*."""
    low = np.maximum(a[:, None, :2], b[None, :, :2])
    high = np.minimum(a[:, None, 2:], b[None, :, 2:])
    sides = np.maximum(high - low, 0)
    product: NDArray[np.float64] = sides[..., 0] * sides[..., 1]
    return product


def overlaps(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return :func:`iou`, and 1 for equal boxes: one without area has no IoU with itself either."""
    equal = (a[:, None] == b[None]).all(axis=2)
    return np.where(equal, 1.0, iou(a, b))


def detections(record: Record) -> Detections:
    """Read a record's detections back."""
    return Detections(
        np.array(record["boxes"], np.float64).reshape(-1, 4),
        np.array(record["scores"], np.float64),
        np.array(record["classes"], np.int64),
    )
