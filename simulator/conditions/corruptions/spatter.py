"""Spatter: drops of water, or mud, on the lens, with OpenCV's part in numpy, equal to the last bit.

Source:
    OpenCV 5.0, modules/imgproc/src: canny.cpp, distransf.cpp, histogram.cpp, box_filter, filter2D;
    images are mirrored at their edges without repeating the edge (``BORDER_REFLECT_101``).
"""

from __future__ import annotations

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray
from scipy import ndimage

from simulator.conditions.corruptions.corruption import corruption
from simulator.conditions.corruptions.filters import Floats, gaussian
from simulator.conditions.image_condition import cut
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


WATER, MUD = (175, 238, 238), (63, 42, 20)
_EMBOSS = np.array([[-2, -1, 0], [-1, 1, 1], [0, 1, 2]])


@corruption(
    "drops of water (1 to 3) or mud (4, 5) on the lens",
    (
        (0.65, 0.3, 4, 0.69, 0.6, 0),
        (0.65, 0.3, 3, 0.68, 0.6, 0),
        (0.65, 0.3, 2, 0.68, 0.5, 0),
        (0.65, 0.3, 1, 0.65, 1.5, 1),
        (0.67, 0.4, 1, 0.65, 1.5, 1),
    ),
    has_chance=True,
)
def spatter(rgb: U8, level: tuple[float, ...], rng: np.random.Generator) -> U8:
    """Draw drops of water or mud; an image on which none falls stays as it is.

    A level is what the original calls ``c``: mean and deviation of the noise, the sigma that makes
    drops of it, the least value of a drop, the water's strength or the sigma of the mud's edge, and
    whether it is mud.

    Source:
        ``spatter`` of https://github.com/hendrycks/robustness.
    """
    mean, deviation, sigma, least, strength, mud = level
    image = rgb.astype(np.float32) / np.float32(255)
    drops = gaussian(rng.normal(size=rgb.shape[:2], loc=mean, scale=deviation), sigma)
    drops[drops < least] = 0
    if mud:
        cover = gaussian((drops > least).astype(np.float32), strength)
        cover[cover < 0.8] = 0
        image *= 1 - cover[..., None]
        return cut(image + cover[..., None] * _of(MUD))
    wet = _wet(np.minimum(drops * 255, 255).astype(np.uint8))
    if not wet.max():
        return rgb.copy()
    wet /= wet.max()
    wet *= np.float32(strength)
    return cut(image + wet[..., None] * _of(WATER).astype(np.float32))


def _wet(drops: U8) -> Floats:
    """Return (H, W) float32: how a drop shines, most at its edges."""
    near = np.minimum(chamfer(edges(drops, 50, 150)), np.float32(20))
    shine = filtered(equalized(blurred(near).astype(np.uint8)), _EMBOSS)
    return np.asarray(drops * np.rint(blurred(shine)))


def _of(color: tuple[int, int, int]) -> Floats:
    return np.array([one / 255.0 for one in color])
