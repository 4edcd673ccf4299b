"""Back from an image that was turned as its EXIF says to the image as it is stored.

Truth, and the answers of every stack, are in the pixels of the stored image: a stack that turned
the image turns its answers back, so that they are about the same pixels.
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

Pixels = TypeVar("Pixels", bound=np.generic)

UPRIGHT = 1


def stored(turned: NDArray[Pixels], orientation: int) -> NDArray[Pixels]:
    """Return (H, W, …) pixels as they are stored.

    Args:
        turned: the pixels of the image as it is to be seen.
        orientation: EXIF's, 1 to 8, by which they were turned.

    Source:
        EXIF 2.32, 4.6.4, tag 0x0112: where the stored row 0 and column 0 are seen.
    """
    swapped = turned.swapaxes(0, 1) if orientation >= 5 else turned
    rows = slice(None, None, -1) if orientation in (3, 4, 6, 7) else slice(None)
    columns = slice(None, None, -1) if orientation in (2, 3, 7, 8) else slice(None)
    return np.ascontiguousarray(swapped[rows, columns])


def stored_boxes(
    turned: NDArray[np.float64], orientation: int, size: tuple[int, int]
) -> NDArray[np.float64]:
    """Return (n, 4) boxes x1, y1, x2, y2 in the pixels of the stored image.

    Args:
        turned: boxes in the image as it is to be seen.
        orientation: EXIF's, 1 to 8, by which that was turned.
        size: (rows, columns) of the image as it is to be seen.
    """
    if orientation == UPRIGHT:
        return turned
    height, width = size
    x, y = turned[:, 0::2], turned[:, 1::2]
    if orientation >= 5:
        x, y, height, width = y, x, width, height
    if orientation in (2, 3, 7, 8):
        x = width - x[:, ::-1]
    if orientation in (3, 4, 6, 7):
        y = height - y[:, ::-1]
    boxes: NDArray[np.float64] = np.stack([x[:, 0], y[:, 0], x[:, 1], y[:, 1]], axis=1)
    return boxes
