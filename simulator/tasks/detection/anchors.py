"""The anchors of one cell, from their sizes and ratios or from a list."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from simulator.tasks.detection.declared import RatioAnchors, ShapeAnchors


def per_cell(anchors: RatioAnchors | ShapeAnchors) -> list[int]:
    """Return how many anchors a cell of each level has."""
    if isinstance(anchors, ShapeAnchors):
        return [len(shapes) for shapes in anchors.shapes]
    each = len(anchors.scales) * len(anchors.ratios)
    return [len(sizes) * each for sizes in anchors.sizes]


def sizes(anchors: RatioAnchors | ShapeAnchors) -> list[NDArray[np.float64]]:
    """Return, for each level, (A, 4) x1, y1, x2, y2 of its anchors around a center of 0.

    An anchor of size s and ratio r (height / width) is s / sqrt(r) wide and s * sqrt(r) high
    (torchvision ``AnchorGenerator.generate_anchors``).
    """
    if isinstance(anchors, ShapeAnchors):
        return [_around(np.array(shapes, np.float64)) for shapes in anchors.shapes]
    root = np.sqrt(np.array(anchors.ratios, np.float64))
    levels = []
    for level in anchors.sizes:
        size = np.outer(level, anchors.scales).reshape(-1)
        wide, high = np.divide.outer(size, root), np.multiply.outer(size, root)
        shapes = np.stack([wide, high], axis=-1)
        if anchors.outer == "ratios":
            shapes = shapes.swapaxes(0, 1)
        around = _around(shapes.reshape(-1, 2))
        levels.append(np.rint(around) if anchors.rounding == "nearest" else around)
    return levels


def _around(shapes: NDArray[np.float64]) -> NDArray[np.float64]:
    """(A, 4) corners from (A, 2) width and height."""
    half = shapes / 2
    return np.concatenate([-half, half], axis=1)
