"""Undoes the EXIF orientation, from the image as displayed to the image as stored.

Ground truth and predictions are in pixel coordinates of the stored image: the predictions of a
stack that applies the EXIF orientation are turned back, so that all stacks can be compared.
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

Pixels = TypeVar("Pixels", bound=np.generic)

UPRIGHT = 1


def undoing(orientation: int) -> int:
    """Return the orientation that undoes another one: most undo themselves."""
    return {6: 8, 8: 6}.get(orientation, orientation)


def stored(turned: NDArray[Pixels], orientation: int) -> NDArray[Pixels]:
    """Return (H, W, …) pixels of the image as stored.

    Args:
        turned: the pixels of the image as displayed, (H, W, …) or, for orientations 5 to 8, (W, H,
            …).
        orientation: the EXIF orientation that was applied, 1 to 8.

    Source:
        EXIF 2.32, 4.6.4, tag 0x0112: where the stored row 0 and column 0 are displayed.
    """
    swapped = turned.swapaxes(0, 1) if orientation >= 5 else turned
    rows = slice(None, None, -1) if orientation in (3, 4, 6, 7) else slice(None)
    columns = slice(None, None, -1) if orientation in (2, 3, 7, 8) else slice(None)
    return np.ascontiguousarray(swapped[rows, columns])


def stored_boxes(
    turned: NDArray[np.float64], orientation: int, size: tuple[int, int]
) -> NDArray[np.float64]:
    """Return (n, 4) boxes x1, y1, x2, y2 in pixels of the image as stored.

    Args:
        turned: (n, 4) boxes in pixels of the image as displayed.
        orientation: the EXIF orientation that was applied, 1 to 8.
        size: (rows, columns) of the image as displayed.
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
