"""The cells of a dense head: how many there are, and where they lie."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from simulator.tasks.detection.anchors import per_cell, sizes
from simulator.tasks.detection.declared import AnchorHead, Dense, GridHead

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
    if isinstance(head, AnchorHead | GridHead) and head.anchors is not None:
        return per_cell(head.anchors)
    return [1] * len(head.strides)


@lru_cache(maxsize=32)
def lattice(head: Dense, network: Size) -> Lattice:
    """Return where the cells of all levels lie."""
    given = head.anchors if isinstance(head, AnchorHead | GridHead) else None
    levels = len(head.strides)
    corners = sizes(given) if given is not None else [np.zeros((1, 4))] * levels
    parts = []
    for (rows, columns), (y, x), around in zip(
        cells(head, network), strides(head), corners, strict=True
    ):
        if head.order == "cells_anchors":
            row, column, anchor = np.indices((rows, columns, len(around))).reshape(3, -1)
        else:
            anchor, row, column = np.indices((len(around), rows, columns)).reshape(3, -1)
        place = np.stack([column, row], axis=1)
        step = np.broadcast_to([x, y], place.shape)
        parts.append((place, step, around[anchor, :2], around[anchor, 2:]))
    return Lattice(*(np.concatenate(part).astype(np.float64) for part in zip(*parts, strict=True)))
