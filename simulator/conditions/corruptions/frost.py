"""A texture of ice: ridged noise at many scales, with the colors of the published photographs.

The pattern is ours. The mean and the deviation of each color are those of the five files that
Hendrycks' code draws from (frost1 to frost5; it never draws its sixth), measured once.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from simulator.conditions.corruptions.filters import between

F64 = NDArray[np.float64]
PLATES = (
    ((78, 149, 166), (27, 16, 15)),
    ((201, 205, 214), (21, 22, 23)),
    ((201, 205, 214), (21, 22, 23)),
    ((138, 153, 165), (28, 28, 30)),
    ((112, 123, 135), (44, 43, 42)),
)
"""R, G, B of each file: means and standard deviations."""
_CELLS = (64, 32, 16, 8, 4, 2)
_NEEDLES = 16
"""Cells up to this size, in pixels, have ridges: thin bright lines."""


def frosted(height: int, width: int, rng: np.random.Generator) -> F64:
    """Grow ice for an image.

    Args:
        height: of the image, in pixels.
        width: likewise.
        rng: draws the colors, then the pattern.

    Returns:
        (height, width, 3) float64, 0 to 255.
    """
    means, deviations = PLATES[int(rng.integers(len(PLATES)))]
    pattern = np.zeros((height, width))
    for cell in _CELLS:
        grid = rng.normal(size=(height // cell + 2, width // cell + 2))
        down, across = (between(side, (side - 1) * cell + 1, side) for side in grid.shape)
        fine = (across @ (down @ grid)[:height].T)[:width].T
        pattern += 1 - 2 * np.abs(fine) if cell <= _NEEDLES else fine
    pattern -= pattern.mean()
    pattern /= pattern.std() or 1
    ice = pattern[..., None] * np.array(deviations, float) + np.array(means, float)
    return np.asarray(np.clip(ice, 0, 255, out=ice))
