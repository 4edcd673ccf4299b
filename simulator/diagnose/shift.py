"""Pixels that were moved by whole pixels: found by correlation, undone, and solved again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from simulator.contract import Array
from simulator.diagnose.finding import Difference
from simulator.identify.affine import affine
from simulator.identify.solve import ORDERS, Solution


@dataclass(frozen=True, slots=True)
class Moved:
    """Tensors whose pixels were moved back.

    Attributes:
        solution: what then relates them to the training's pixels.
        tensors: each (3, H, W), NaN at the edges.
        named: the move.
    """

    solution: Solution
    tensors: list[Array]
    named: Difference


def moved_back(after: Sequence[Array], levels: Sequence[Array], found: Solution) -> Moved | None:
    """Find a shift by whole pixels, the same in all images; None where there is none.

    Args:
        after: the deployment's tensors, each (3, H, W).
        levels: the training's pixels.
        found: what relates them as they are.
    """
    if found.stride is not None or found.order != next(iter(ORDERS)):
        return None
    peak = sum(_correlated(a, b) for a, b in zip(after, levels, strict=True))
    down, right = np.unravel_index(int(np.argmax(peak)), np.shape(peak))
    height, width = np.shape(peak)
    dy, dx = (int((n + s // 2) % s - s // 2) for n, s in ((down, height), (right, width)))
    if (dy, dx) == (0, 0) or abs(dy) > height // 4 or abs(dx) > width // 4:
        return None
    back = [_shifted(one, -dy, -dx) for one in after]
    fit = affine(back, levels)
    if fit.share > 0.5 * found.fit.share:
        return None
    parts = [
        f"{abs(by)} pixel{'s' * (abs(by) > 1)} {way[by > 0]}"
        for by, way in ((dy, ("up", "down")), (dx, ("left", "right")))
        if by
    ]
    named = Difference(
        f"shifted by {' and '.join(parts)}", "round the crop's offset as in training"
    )
    return Moved(Solution("in order", fit), back, named)


def _correlated(tensor: Array, pixels: Array) -> Array:
    """The cross-correlation of two gray images, by shift."""
    a, b = (np.nan_to_num(one.mean(axis=0, dtype=np.float64)) for one in (tensor, pixels))
    a, b = a - a.mean(), b - b.mean()
    product = np.fft.rfft2(a) * np.conj(np.fft.rfft2(b))
    return np.abs(np.fft.irfft2(product / np.maximum(np.abs(product), 1e-12), a.shape))


def _shifted(planes: Array, down: int, right: int) -> Array:
    """Planes moved by whole pixels; NaN where nothing came."""
    moved = np.full(planes.shape, np.nan)
    height, width = planes.shape[1:]
    to = [slice(max(0, by), size + min(0, by)) for by, size in ((down, height), (right, width))]
    of = [slice(max(0, -by), size + min(0, -by)) for by, size in ((down, height), (right, width))]
    moved[:, to[0], to[1]] = planes[:, of[0], of[1]]
    return moved
