"""Filters that several corruptions share, equal to those of the original code to the last bit.

Weights are computed by Python's ``math``, number by number: numpy's own vector functions may differ
in the last bit from one processor to another, and the original cuts levels off instead of rounding.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage, sparse

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
    rises, runs = zip(*steps, strict=True)
    top, left = max(rises), max(runs)
    pad = [(top, max(0, -min(rises))), (left, max(0, -min(runs))), (0, 0)][: image.ndim]
    padded = np.pad(image, pad, mode="edge").astype(np.float64)
    height, columns = image.shape[:2]
    total, part = np.zeros(image.shape), np.empty(image.shape)
    for weight, (dy, dx) in zip(weights, steps, strict=False):
        moved = padded[top - dy : top - dy + height, left - dx : left - dx + columns]
        total += np.multiply(moved, weight, out=part)
    return total


def _path(width: int, angle: float, size: tuple[int, ...]) -> list[tuple[int, int]]:
    """The steps of a motion, down and to the right, from (0, 0) until it leaves the image."""
    rise, run = width * math.sin(math.radians(angle)), width * math.cos(math.radians(angle))
    length = math.hypot(rise, run)
    steps = []
    for i in range(width):
        dy, dx = -math.ceil(i * rise / length - 0.5), -math.ceil(i * run / length - 0.5)
        if abs(dy) >= size[0] or abs(dx) >= size[1]:
            break
        steps.append((dy, dx))
    return steps


def zooms(image: Floats, factors: Iterable[float]) -> Iterator[Floats]:
    """Enlarge the middle of an image to about its own size, bilinearly.

    Args:
        image: (H, W, C) floats.
        factors: each at least 1.

    Yields:
        For each factor (H, C, W) of the type of *image*, up to rounding of the size.

    Source:
        bethgelab/imagecorruptions, ``clipped_zoom``: ``scipy.ndimage.zoom`` of the middle, order 1.
        Hendrycks' code trims the result around its middle; this one is cut at its end.
    """
    rows, columns, channels = image.shape
    turned = image.transpose(1, 2, 0).reshape(columns, -1).astype(np.float64)
    for factor in factors:
        parts = [math.ceil(side / float(factor)) for side in (rows, columns)]
        height, width = (round(side * factor) for side in parts)
        wide = between(parts[1], width, columns) @ turned
        wide = wide.reshape(width, channels, rows).transpose(2, 1, 0).reshape(rows, -1)
        whole = between(parts[0], height, rows) @ wide
        yield whole.astype(image.dtype).reshape(height, channels, width)


def between(count: int, wanted: int, whole: int) -> Any:
    """Return the sparse matrix that interpolates *wanted* rows of the middle ones, end to end.

    As in scipy, a row that rounding puts beyond the last one is 0.

    Args:
        count: how many rows are the middle.
        wanted: rows of the result.
        whole: rows that there are.
    """
    step = (count - 1) / (wanted - 1) if wanted > 1 else 1.0
    at = np.arange(wanted) * step
    low = np.floor(at).astype(np.intp)
    share = at - low
    inside = at <= count - 1
    weights = np.stack(((1 - share) * inside, share * inside), axis=-1).ravel()
    rows = np.minimum(np.stack((low, low + 1), axis=-1), count - 1).ravel() + (whole - count) // 2
    return sparse.csr_array((weights, rows, np.arange(0, 2 * wanted + 1, 2)), (wanted, whole))
