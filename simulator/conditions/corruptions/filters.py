"""Filters that several corruptions share, equal to those of the original code to the last bit.

Weights are computed by Python's ``math``, number by number: numpy's own vector functions may differ
in the last bit from one processor to another, and the original cuts levels off instead of rounding.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

F64 = NDArray[np.float64]
Floats = NDArray[Any]


def gaussian(image: Floats, sigma: float, truncate: float = 4.0) -> Floats:
    """Blur the first two axes with a Gaussian; edges are repeated.

    Args:
        image: (H, W) or (H, W, C) float32 or float64; the result has the same type.
        sigma: in pixels.
        truncate: where the kernel ends, in sigmas.

    Source:
        scikit-image, ``filters.gaussian``, which is ``scipy.ndimage.gaussian_filter``.
    """
    weights = gaussian_weights(sigma, truncate)
    rows = ndimage.correlate1d(image, weights, axis=0, mode="nearest")
    return np.asarray(ndimage.correlate1d(rows, weights, axis=1, mode="nearest"))


def gaussian_weights(sigma: float, truncate: float) -> F64:
    """Return the weights of a Gaussian of unit sum, of ``2 * int(truncate * sigma + 0.5) + 1``."""
    radius = int(truncate * sigma + 0.5)
    factor = -0.5 / (sigma * sigma)
    found = np.array([math.exp(factor * x**2) for x in range(-radius, radius + 1)])
    return np.asarray(found / found.sum())


def motion(image: Floats, radius: int, sigma: float, angle: float) -> F64:
    """Blur along a line that starts at the pixel; edges are repeated.

    A path longer than the image ends at its edge, and the image gets darker, as in the original.

    Args:
        image: (H, W) or (H, W, C).
        radius: half the path, in pixels.
        sigma: of the Gaussian that fades along it, in pixels.
        angle: in degrees.

    Source:
        bethgelab/imagecorruptions, ``_motion_blur``; a numpy form of ImageMagick's.
    """
    width = 2 * radius + 1
    weights = np.array([math.exp(-(i**2) / (2 * sigma**2)) for i in range(width)])
    weights /= math.sqrt(2 * math.pi) * sigma
    weights /= weights.sum()
    steps = _path(width, angle, image.shape[:2])
    below, above = (max(0, -min(dy for dy, _ in steps)), max(dy for dy, _ in steps))
    right = -min(dx for _, dx in steps)
    pad = [(above, below), (0, right), (0, 0)][: image.ndim]
    padded = np.pad(image, pad, mode="edge").astype(np.float64)
    height, columns = image.shape[:2]
    total = np.zeros(image.shape)
    part = np.empty(image.shape)
    for weight, (dy, dx) in zip(weights, steps, strict=False):
        top = above - dy
        np.multiply(padded[top : top + height, -dx : columns - dx], weight, out=part)
        total += part
    return total


def _path(width: int, angle: float, size: tuple[int, ...]) -> list[tuple[int, int]]:
    """The steps of a motion down and to the right: rows and columns, until it leaves the image."""
    rise, run = width * math.sin(math.radians(angle)), width * math.cos(math.radians(angle))
    length = math.hypot(rise, run)
    steps = []
    for i in range(width):
        dy, dx = -math.ceil(i * rise / length - 0.5), -math.ceil(i * run / length - 0.5)
        if abs(dy) >= size[0] or abs(dx) >= size[1]:
            break
        steps.append((dy, dx))
    return steps


def zoomed(image: Floats, factor: float) -> Floats:
    """Enlarge the middle of an image to about its own size, bilinearly.

    Args:
        image: (H, W, C) floats.
        factor: at least 1.

    Returns:
        The type of *image*; at least (H, W, C) up to rounding.

    Source:
        bethgelab/imagecorruptions, ``clipped_zoom``: ``scipy.ndimage.zoom`` of the middle, order 1.
        Hendrycks' code trims the result around its middle; this one is cut at its end.
    """
    sides = [math.ceil(side / float(factor)) for side in image.shape[:2]]
    top, left = ((side - part) // 2 for side, part in zip(image.shape, sides, strict=False))
    part = image[top : top + sides[0], left : left + sides[1]]
    height, width = (round(side * factor) for side in sides)
    rows = _between(part.astype(np.float64).reshape(sides[0], -1), height)
    turned = np.ascontiguousarray(rows.reshape(height, sides[1], -1).swapaxes(0, 1))
    columns = _between(turned.reshape(sides[1], -1), width)
    return columns.reshape(width, height, -1).swapaxes(0, 1).astype(image.dtype)


def _between(rows: F64, wanted: int) -> F64:
    """Interpolate *wanted* rows from first to last, as scipy does: 0 where rounding goes beyond."""
    count = len(rows)
    step = (count - 1) / (wanted - 1) if wanted > 1 else 1.0
    at = np.arange(wanted) * step
    low = np.floor(at).astype(np.intp)
    share = (at - low)[:, None]
    inside = (at <= count - 1)[:, None]
    above: F64 = rows[low.clip(0, count - 1)]
    below = rows[(low + 1).clip(0, count - 1)]
    above *= (1 - share) * inside
    below *= share * inside
    above += below
    return above
