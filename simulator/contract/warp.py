"""Where the pixels of an image go when something moves them, so that truth can follow."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Points = NDArray[np.float64]
Size = tuple[int, int]


@dataclass(frozen=True, slots=True, eq=False)
class Warp:
    """A movement of the pixels of an image that keeps its size.

    Attributes:
        sources: (H, W, 2) float64: the row and the column from which each pixel comes, where whole
            numbers are the middles of pixels; outside the image the pixel is a new one.
        forward: from (n, 2) points x, y, where (0, 0) is the corner of the first pixel, to where
            they go.
    """

    sources: Points
    forward: Callable[[Points], Points]


WarpOf = Callable[[Size], Warp]
"""The movement of an image of so many rows and columns."""
