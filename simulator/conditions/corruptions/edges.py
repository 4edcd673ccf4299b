"""Five functions of OpenCV that spatter is made of, in numpy, equal to the last bit.

Source:
    OpenCV 5.0, modules/imgproc/src: canny.cpp, distransf.cpp, histogram.cpp, box_filter, filter2D;
    images are mirrored at their edges without repeating the edge (``BORDER_REFLECT_101``).
"""

from __future__ import annotations

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray
from scipy import ndimage

from simulator.conditions.corruptions.filters import Floats
from simulator.contract import U8

I32 = NDArray[np.int32]
_SHIFT = 15
_TANGENT = round(0.4142135623730950488016887242097 * (1 << _SHIFT))
_FAR, _ONE = 1 << 28, 1 << 16
_STEP, _DIAGONAL, _LONG = (round(one * _ONE) for one in (1, 1.4, 2.1969))
_ABOVE = np.array(
    [[_FAR, _LONG, _FAR, _LONG, _FAR], [_LONG, _DIAGONAL, _STEP, _DIAGONAL, _LONG]], np.int32
)[..., None]


def edges(image: U8, low: int, high: int) -> NDArray[np.bool_]:
    """Find edges as ``cv2.Canny`` with an aperture of 3 and the L1 norm.

    Args:
        image: (H, W) uint8.
        low: an edge goes on where the gradient is above.
        high: an edge starts where the gradient is above.

    Returns:
        (H, W) bool.
    """
    padded = np.pad(image.astype(np.int32), 1, mode="edge")
    across = padded[:, 2:] - padded[:, :-2]
    down = padded[2:] - padded[:-2]
    dx = across[:-2] + 2 * across[1:-1] + across[2:]
    dy = down[:, :-2] + 2 * down[:, 1:-1] + down[:, 2:]
    size = np.abs(dx) + np.abs(dy)
    around = np.pad(size, 1)

    def beside(y: int, x: int) -> I32:
        return around[1 + y : 1 + y + size.shape[0], 1 + x : 1 + x + size.shape[1]]

    x, y = np.abs(dx).astype(np.int64), np.abs(dy).astype(np.int64) << _SHIFT
    flat = y < x * _TANGENT
    steep = y > x * _TANGENT + (x << (_SHIFT + 1))
    falling = (dx ^ dy) < 0
    before = np.where(falling, beside(-1, 1), beside(-1, -1))
    after = np.where(falling, beside(1, -1), beside(1, 1))
    top = (size > before) & (size > after)
    top = np.where(steep, (size > beside(-1, 0)) & (size >= beside(1, 0)), top)
    top = np.where(flat, (size > beside(0, -1)) & (size >= beside(0, 1)), top)
    weak = top & (size > low)
    labels, count = ndimage.label(weak, structure=np.ones((3, 3)))
    strong = np.zeros(count + 1, bool)
    strong[labels[weak & (size > high)]] = True
    strong[0] = False
    return np.asarray(strong[labels])


def chamfer(zero: NDArray[np.bool_]) -> NDArray[np.float32]:
    """Return the distance to the nearest true pixel, as ``cv2.distanceTransform(DIST_L2, 5)``."""
    height, width = zero.shape
    found = np.full((height + 4, width + 4), _FAR, np.int32)
    found[2:-2, 2:-2] = np.where(zero, 0, _FAR)
    ramp = np.arange(width, dtype=np.int32) * _STEP
    for turned in (found, found[::-1, ::-1]):
        windows = sliding_window_view(turned, (2, 5)).transpose(0, 2, 3, 1)
        for row in range(height):
            near = (windows[row] + _ABOVE).reshape(10, -1).min(axis=0)
            line = turned[row + 2, 2:-2]
            np.minimum(line, near, out=near)
            near -= ramp
            np.minimum.accumulate(near, out=near)
            near += ramp
            np.minimum(near, _FAR, out=line)
    return (found[2:-2, 2:-2] * (1.0 / _ONE)).astype(np.float32)


def blurred(image: Floats) -> NDArray[np.float32]:
    """Return the mean of each 3x3 pixels in float32, as ``cv2.blur``."""
    around = np.pad(image.astype(np.float64), 1, mode="reflect")
    rows = around[:-2] + around[1:-1] + around[2:]
    total = rows[:, :-2] + rows[:, 1:-1] + rows[:, 2:]
    return (total * (1 / 9)).astype(np.float32)


def equalized(image: U8) -> U8:
    """Spread levels so that each is about as frequent, as ``cv2.equalizeHist``."""
    counts = np.bincount(image.ravel(), minlength=256)
    first = int(np.flatnonzero(counts)[0])
    left = image.size - int(counts[first])
    if not left:
        return image
    counts[: first + 1] = 0
    scale = np.float32(255) / np.float32(left)
    table = np.rint(np.cumsum(counts).astype(np.float32) * scale)
    return np.asarray(np.clip(table, 0, 255).astype(np.uint8)[image])


def filtered(image: U8, kernel: NDArray[np.int64]) -> U8:
    """Correlate with whole numbers, and clip to 0-255, as ``cv2.filter2D``."""
    around = np.pad(image.astype(np.int32), 1, mode="reflect")
    height, width = image.shape
    total = np.zeros((height, width), np.int32)
    for (y, x), weight in np.ndenumerate(kernel):
        if weight:
            total += around[y : y + height, x : x + width] * np.int32(weight)
    return np.clip(total, 0, 255).astype(np.uint8)
