"""A filter: each of the deployment's pixels is a weighted sum of the training's around it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from simulator.contract import Array
from simulator.diagnose.finding import Difference

_SIDE = 7
_POINTS = 40_000
_EXPLAINS = 0.35
"""A filter leaves less than this share of the difference, or it is none."""
_ROUNDED = 1.6
_SMALL = 0.02
"""Weights below which there is none."""


def named(levels: Sequence[Array], other: Sequence[Array]) -> tuple[Difference, float] | None:
    """Name a filter, and say how many levels it leaves at most.

    Args:
        levels: of the training, each (3, H, W).
        other: the deployment's, on the scale of the training's numbers, in the same order.
    """
    rows = [_rows(one, two) for one, two in zip(levels, other, strict=True)]
    design, values = (np.concatenate(some) for some in zip(*rows, strict=True))
    if len(values) < 10 * _SIDE**2:
        return None
    step = max(1, len(values) // _POINTS)
    found = np.linalg.lstsq(design[::step], values[::step], rcond=1e-9)[0]
    left = np.abs(values - design @ found)
    before = np.abs(values - design[:, _SIDE**2 // 2])
    most = float(np.quantile(left, 0.999))
    if left.mean() > _EXPLAINS * before.mean():
        return None
    kernel = found[:-1].reshape(_SIDE, _SIDE)
    if kernel.max() > 1 - _SMALL and kernel.argmax() != _SIDE**2 // 2:
        return None  # whole pixels
    name, code = _called(kernel)
    if name.startswith("shifted") and most > _ROUNDED:
        return None  # another geometry
    shown = "; ".join(" ".join(f"{one:.2f}" for one in row[2:5]) for row in kernel[2:5])
    told = f"a pixel is a weighted sum of those around it, the middle of the weights {shown}"
    return Difference(name, code, {}, (told,)), most if most <= _ROUNDED else float(left.max())


def _rows(levels: Array, other: Array) -> tuple[Array, Array]:
    """A row of surrounding levels and a 1 for each pixel inside, and what it became."""
    seen = np.lib.stride_tricks.sliding_window_view(levels, (_SIDE, _SIDE), axis=(1, 2))
    edge = _SIDE // 2
    values = other[:, edge:-edge, edge:-edge].ravel()
    design = seen.reshape(-1, _SIDE**2)
    step = max(1, len(values) // _POINTS) | 1
    design, values = design[::step], values[::step]
    inside = (values > 0.5) & (values < 254.5) & np.isfinite(design).all(axis=1)
    design = design[inside]
    return np.column_stack([design, np.ones(len(design))]), values[inside]


def _called(kernel: Array) -> tuple[str, str]:
    at = np.arange(_SIDE) - _SIDE // 2
    total = kernel.sum()
    y, x = (float((kernel * one).sum() / total) for one in (at[:, None], at))
    middle = kernel[_SIDE // 2, _SIDE // 2]
    if max(abs(x), abs(y)) > 0.1:
        parts = [
            f"{abs(by):.2g} pixels {way[by > 0]}"
            for by, way in ((-y, ("up", "down")), (-x, ("left", "right")))
            if abs(by) > 0.1
        ]
        return f"shifted by {' and '.join(parts)}", "place and round the crop as in training"
    if middle > 1 + _SMALL:
        return "sharpened", "leave the filter out"
    some = kernel[np.abs(kernel) > _SMALL]
    side = round(np.sqrt(some.size))
    if side > 1 and side**2 == some.size and np.ptp(some) < 0.01:
        return f"blurred by a box of {side} x {side}", "leave the filter out"
    wide = max(0.0, float((kernel * (at[:, None] ** 2 + at**2)).sum() / total) / 2)
    return f"blurred, as by a Gaussian of sigma {np.sqrt(wide):.2g}", "leave the filter out"
