"""Images at other places than their pixels'."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

F32 = NDArray[np.float32]
Floating = NDArray[np.floating]
Index = Callable[[NDArray[np.intp], int], NDArray[np.intp]]


def sampled(image: F32, rows: Floating, columns: Floating, index: Index) -> F32:
    """Take an image at other places, bilinearly.

    Args:
        image: (H, W, C) float32.
        rows: (H, W) where each pixel comes from, in pixels.
        columns: likewise.
        index: a function of integers and a size that brings them into the image.

    Returns:
        (H, W, C) float32.
    """
    height, width = image.shape[:2]
    planes = image.transpose(2, 0, 1).reshape(-1, height * width).astype(np.float64)
    y, x = np.floor(rows), np.floor(columns)
    down, right = (rows - y).ravel(), (columns - x).ravel()
    ys = [neighbor * width for neighbor in _neighbors(y, height, index)]
    xs = _neighbors(x, width, index)
    places = [(at + xs[0], at + xs[1]) for at in ys]
    out = np.empty(image.shape, np.float32)
    for channel, plane in enumerate(planes):
        above, below = (plane[a] * (1 - right) + plane[b] * right for a, b in places)
        above *= 1 - down
        below *= down
        out[..., channel] = (above + below).reshape(height, width)
    return out


def _neighbors(low: Floating, size: int, index: Index) -> list[NDArray[np.intp]]:
    """Return each index and the next one, brought into the image."""
    whole = low.astype(np.intp).ravel()
    first = int(whole.min())
    whole -= first
    table = index(np.arange(first, first + int(whole.max()) + 2), size)
    return [table[:-1][whole], table[1:][whole]]


def mirrored(at: NDArray[np.intp], size: int) -> NDArray[np.intp]:
    """Mirror indices at the edges, which are repeated (scipy's ``reflect``)."""
    at = at % (2 * size)
    return np.where(at < size, at, 2 * size - 1 - at)


def mirrored_once(at: NDArray[np.intp], size: int) -> NDArray[np.intp]:
    """Mirror indices at the edges, which are not repeated (OpenCV's ``BORDER_REFLECT_101``)."""
    period = max(1, 2 * size - 2)
    at = at % period
    return np.minimum(at, period - at)
