"""Bilinear demosaicing in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import convolve

_WEIGHTS = np.array(((1, 2, 1), (2, 4, 2), (1, 2, 1)), np.float64)


def bilinear(levels: NDArray[Any], sites: NDArray[np.intp]) -> NDArray[np.float64]:
    """Return (H, W, 3): each color where it was measured, else the mean of its nearest sites.

    Args:
        levels: (H, W) samples.
        sites: (H, W) the channel of each.
    """
    planes = []
    for channel in range(3):
        there = (sites == channel).astype(np.float64)
        weights = np.where(there, 1.0, convolve(there, _kernel(channel), mode="constant"))
        total = convolve(levels * there, _kernel(channel), mode="constant")
        mean = np.divide(total, weights, out=np.zeros_like(total), where=weights > 0)
        planes.append(np.where(there, levels, mean))
    return np.stack(planes, axis=-1)


def _kernel(channel: int) -> NDArray[np.float64]:
    """Green has four neighbors beside, red and blue two or four beside or at the corners."""
    if channel == 1:
        return np.array(((0, 1, 0), (1, 0, 1), (0, 1, 0)), np.float64)
    return _WEIGHTS
