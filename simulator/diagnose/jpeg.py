"""Pixels that went through JPEG once more, at the network's size: seen in their cosines."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.fft import dctn

from simulator.contract import Array
from simulator.diagnose.finding import Difference

_LUMINANCE = np.array([
    [16, 11, 10, 16, 24, 40, 51, 61], [12, 12, 14, 19, 26, 58, 60, 55],
    [14, 13, 16, 24, 40, 57, 69, 56], [14, 17, 22, 29, 51, 87, 80, 62],
    [18, 22, 37, 56, 68, 109, 103, 77], [24, 35, 55, 64, 81, 104, 113, 92],
    [49, 64, 78, 87, 103, 121, 120, 101], [72, 92, 95, 98, 112, 100, 103, 99],
])  # fmt: skip
"""ITU-T T.81, table K.1; libjpeg scales it by the quality."""
_GRAY = np.array([0.299, 0.587, 0.114])[:, None, None]
_ON_GRID = 0.6
_QUALITIES = range(10, 97)
_WITHIN = 0.95


def named(rgb: Sequence[Array], other: Sequence[Array]) -> tuple[Difference, float] | None:
    """Name a compression, and say by how many levels it moved a pixel at most.

    Args:
        rgb: levels of the training, each (3, H, W), in the order R, G, B.
        other: the deployment's, likewise.
    """
    if any(not np.isfinite(one).all() for one in (*rgb, *other)):
        return None
    before, after = (np.concatenate([_cosines(one) for one in some]) for some in (rgb, other))
    tables = {quality: table(quality) for quality in _QUALITIES}
    scores = {quality: _on_grid(after, one) for quality, one in tables.items()}
    quality = max(scores, key=lambda one: scores[one])
    if scores[quality] < max(_ON_GRID, _on_grid(before, tables[quality]) + 0.3):
        return None
    near = np.abs(after - before) <= tables[quality] / 2 + 4
    if near.mean() < _WITHIN:
        return None
    told = (
        f"of the blocks of 8 x 8 pixels, {100 * near.mean():.0f} % of the cosines are the "
        f"training's, rounded to the steps of quality {quality}"
    )
    left = max(float(np.abs(a - b).max()) for a, b in zip(rgb, other, strict=True))
    text = f"compressed as JPEG once more, at the network's size (quality {quality})"
    return Difference(text, "keep the pixels; do not store them as JPEG", {}, (told,)), left


def table(quality: int) -> Array:
    """Return libjpeg's steps of luminance for a quality."""
    scale = 5000 // quality if quality < 50 else 200 - 2 * quality
    return np.asarray(np.clip((_LUMINANCE * scale + 50) // 100, 1, 255))


def _cosines(rgb: Array) -> Array:
    """The cosines of the luma of all blocks, (n, 8, 8)."""
    luma = (rgb * _GRAY).sum(axis=0) - 128
    rows, columns = (side // 8 for side in luma.shape)
    blocks = luma[: rows * 8, : columns * 8].reshape(rows, 8, columns, 8).swapaxes(1, 2)
    return np.asarray(dctn(blocks.reshape(-1, 8, 8), axes=(1, 2), norm="ortho"))


def _on_grid(cosines: Array, steps: Array) -> float:
    """How well values that are no zeros lie on multiples of their steps: 1 all, 0 by chance."""
    far = np.abs(cosines) > 0.6 * steps
    far[:, 0, 0] = False
    far &= steps >= 3
    if far.sum() < 200:
        return 0.0
    return float(np.cos(2 * np.pi * (cosines / steps)[far]).mean())
