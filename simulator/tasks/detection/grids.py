"""The cells of a dense head and their anchors: how many there are, and where they lie."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from simulator.tasks.detection.declared import (
    AnchorHead,
    Dense,
    GridHead,
    RatioAnchors,
    ShapeAnchors,
)

Size = tuple[int, int]
_ROUND = {"ceil": math.ceil, "floor": math.floor}


@dataclass(frozen=True, slots=True, eq=False)
class Lattice:
    """One row for each box of a dense head, in the order of the head's rows; all float64.

    Attributes:
        cell: (N, 2) column and row of the cell in its own grid.
        stride: (N, 2) network pixels to the next column and to the next row.
        low: (N, 2) left and top side of the anchor, from its center; 0 without anchors.
        high: (N, 2) right and bottom side of it, likewise.
    """

    cell: NDArray[np.float64]
    stride: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]


def strides(head: Dense) -> list[tuple[float, float]]:
    """Return each level's stride as (y, x)."""
    return [s if isinstance(s, tuple) else (s, s) for s in head.strides]


def cells(head: Dense, network: Size) -> list[Size]:
    """Return (rows, columns) of each level's grid, for a network's (rows, columns)."""
    if not isinstance(head.cells, str):
        return list(head.cells)
    count = _ROUND[head.cells]
    return [(count(network[0] / y), count(network[1] / x)) for y, x in strides(head)]


def counts(head: Dense) -> list[int]:
    """Return how many boxes a cell of each level has."""
    return [len(around) for around in _anchors(head)]


@lru_cache(maxsize=8)
def lattice(head: Dense, network: Size) -> Lattice:
    """Return where the cells of all levels lie."""
    parts = []
    for (rows, columns), (y, x), around in zip(
        cells(head, network), strides(head), _anchors(head), strict=True
    ):
        if head.order == "cells_anchors":
            row, column, anchor = np.indices((rows, columns, len(around))).reshape(3, -1)
        else:
            anchor, row, column = np.indices((len(around), rows, columns)).reshape(3, -1)
        place = np.stack([column, row], axis=1)
        step = np.broadcast_to([x, y], place.shape)
        parts.append((place, step, around[anchor, :2], around[anchor, 2:]))
    return Lattice(*(np.concatenate(part).astype(np.float64) for part in zip(*parts, strict=True)))


def _anchors(head: Dense) -> list[NDArray[np.float64]]:
    """The anchors of a cell of each level; a single one without a size where there are none."""
    given = head.anchors if isinstance(head, AnchorHead | GridHead) else None
    return [np.zeros((1, 4))] * len(head.strides) if given is None else sizes(given)


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
