"""A curve between levels: the deployment's pixel is a function of the training's, not affine."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from simulator.contract import Array

_SHOWN = (32, 64, 128, 192, 224)
_POWER = 0.05
"""A power may be so far from the curve, as a share of 255 levels."""


def named(levels: Sequence[Array], other: Sequence[Array]) -> tuple[str, float] | None:
    """Name a curve, and say how many levels it leaves at most.

    Args:
        levels: of the training, each (3, H, W), whole levels of 0-255.
        other: what they became, on the scale of the training's numbers.

    Returns:
        None where the levels are not whole, or a level becomes different ones.
    """
    x, y = (np.concatenate([one.reshape(3, -1).T for one in some]) for some in (levels, other))
    there = np.isfinite(x).all(axis=1) & np.isfinite(y).all(axis=1)
    x, y = x[there], y[there]
    if not len(x) or (x != np.rint(x)).any() or x.min() < 0 or x.max() > 255:
        return None
    at = x.astype(np.intp) + 256 * np.arange(3)
    low, high = np.full(768, 1e9), np.full(768, -1e9)
    np.minimum.at(low, at, y)
    np.maximum.at(high, at, y)
    seen = low < 1e9
    spread = float((high - low)[seen].max())
    if spread > 1:
        return None
    table, means = np.tile(np.arange(256.0), 3), (low + high) / 2
    inner = seen & (table > 8) & (table < 248) & (means > 0.5) & (means < 254.5)
    if inner.sum() < 16:
        return None
    across, up = np.log(table[inner] / 255), np.log(means[inner] / 255)
    power = float((across * up).sum() / (across * across).sum())
    gap = np.abs(255 * (table[inner] / 255) ** power - means[inner]).max()
    if gap < _POWER * 255 and abs(power - 1) > 0.02:
        return f"gamma: levels to the power of {power:.3g}", float(max(gap, spread))
    shown = [n for n in _SHOWN if seen[256 + n]]
    text = ", ".join(f"{n} becomes {means[256 + n]:.3g}" for n in shown)
    return f"levels go through a curve: {text}", spread
