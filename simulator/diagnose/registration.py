"""Where in an image a network's input lies: registered, whatever made the input.

Rows and columns of the input are affine in those of the image. All scales are tried on small
pictures, each at all places at once by masked normalized cross-correlation (D. Padfield, 2012);
Gauss and Newton find the rest of the way (Lucas and Kanade, 1981).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np
from scipy.fft import next_fast_len
from scipy.sparse import csr_array

from simulator.contract import Array

_SMALL = 48
"""Rows or columns, about, of the pictures on which all scales are tried."""
_STEP = 1.04
"""Between two scales that are tried: half a pixel of the small picture at its edge."""
_SCALES = 0.4, 5.0
"""The least and the largest scale, of that at which the image has the input's size."""
_OVERLAP = 0.2
"""Share of the input that the image must cover, at least."""
_PYRAMID = (4, 2, 1)
_STEPS = 12
_FOUND = 0.85
"""The correlation of image and input where a place is found, at least."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where an image lies in the network's input, in pixels of the input.

    Attributes:
        rows: to which the image is scaled.
        columns: likewise.
        top: the input's row where it begins; below 0 where rows are cut off.
        left: the input's column, likewise.
        correlation: of the image, so placed, and the input.
    """

    rows: float
    columns: float
    top: float
    left: float
    correlation: float = 1.0


def gray(pixels: Array) -> Array:
    """Return the mean of the channels, (H, W) float64, of (H, W, 3): swapped ones are alike."""
    return np.asarray(pixels.mean(axis=2, dtype=np.float64))


def placed(image: Array, tensor: Array) -> Place | None:
    """Return where an image lies in a tensor; None where it is not found.

    Args:
        image: (H, W), gray.
        tensor: (h, w), likewise, in any unit.
    """
    if not np.ptp(tensor) or not np.isfinite(tensor).all():
        return None
    by = max(1, min(image.shape) // (2 * max(tensor.shape)))
    small = shrunk(image, by)
    size = tuple(side * by for side in small.shape)  # what is cut off at the end moves nothing
    found = _refined(small, tensor, _coarse(small, tensor))
    if found is None or found.correlation < _FOUND:
        return None
    rows, columns = (
        scaled * side / whole
        for scaled, side, whole in zip((found.rows, found.columns), image.shape, size, strict=True)
    )
    return Place(rows, columns, found.top, found.left, found.correlation)


def shrunk(plane: Array, by: int) -> Array:
    """Return the means of squares of pixels."""
    if by == 1:
        return plane
    rows, columns = (side // by for side in plane.shape)
    cut = plane[: rows * by, : columns * by].reshape(rows, by, columns, by)
    return np.asarray(cut.mean(axis=(1, 3)))


def _coarse(image: Array, tensor: Array) -> Place:
    """The best of all scales, with and without the ratio of the sides, at any place."""
    (height, width), (rows, columns) = image.shape, tensor.shape
    by = max(1, min(tensor.shape) // _SMALL)
    small = shrunk(tensor, by)
    fit = min(rows / height, columns / width)
    count = int(np.log(_SCALES[1] / _SCALES[0]) / np.log(_STEP))
    squashed = (columns / width) / (rows / height)
    best = Place(rows, columns, 0.0, 0.0, -1.0)
    for ratio, at in product(sorted({1.0, squashed}), range(count)):
        scale = fit * _SCALES[0] * _STEP**at
        down, right = (
            (scale, scale)
            if ratio == 1
            else (scale * (rows / height) / fit, scale * (columns / width) / fit)
        )
        size = max(2, round(height * down / by)), max(2, round(width * right / by))
        if max(size) > 4 * max(small.shape):
            continue
        made = _resampled(
            image,
            *(
                _weights(side, new, side / new, 0.0)
                for side, new in zip(image.shape, size, strict=True)
            ),
        )
        top, left, peak = _correlated(small, made)
        if peak > best.correlation:
            best = Place(size[0] * by, size[1] * by, top * by, left * by, peak)
    return best


def _correlated(tensor: Array, image: Array) -> tuple[int, int, float]:
    """The place of an image in a tensor where they correlate best over what they share."""
    shape = [int(next_fast_len(a + b - 1)) for a, b in zip(tensor.shape, image.shape, strict=True)]
    a, b = tensor - tensor.mean(), image - image.mean()
    own, other = (
        np.fft.rfft2([np.ones_like(a), a, a * a], shape),
        np.fft.rfft2([np.ones_like(b), b, b * b], shape),
    )

    def cross(one: int, two: int) -> Array:
        return np.asarray(np.fft.irfft2(own[one] * np.conj(other[two]), shape))

    count = np.maximum(np.rint(cross(0, 0)), 1)
    means = cross(1, 0) / count, cross(0, 1) / count
    spread = (cross(2, 0) / count - means[0] ** 2), (cross(0, 2) / count - means[1] ** 2)
    both = cross(1, 1) / count - means[0] * means[1]
    floor = 1e-3 * a.var() * b.var()
    found = both / np.sqrt(np.maximum(spread[0] * spread[1], floor))
    found[count < _OVERLAP * tensor.size] = -1
    at = np.unravel_index(int(found.argmax()), found.shape)
    top, left = (
        int(n) - size if n >= own_side else int(n)
        for n, size, own_side in zip(at, shape, tensor.shape, strict=True)
    )
    return top, left, float(found[at])


def _weights(size: int, wanted: int, step: float, start: float) -> Array:
    """The (wanted, size) matrix of a triangle kernel; rows of 0 outside of the image.

    Pixel i of what is wanted lies at start + (i + 0.5) step of the image's edge.
    """
    centers = start + (np.arange(wanted) + 0.5) * step
    far = np.abs(np.arange(size) + 0.5 - centers[:, None]) / max(1.0, step)
    found = np.clip(1 - far, 0, None)
    found[(centers < 0) | (centers > size)] = 0
    return np.asarray(found / np.maximum(found.sum(axis=1, keepdims=True), 1e-12))


def _resampled(image: Array, rows: Array, columns: Array) -> Array:
    """Weights are bands of a few pixels: sparse, a product is a tenth of the work."""
    return np.asarray((csr_array(columns) @ (csr_array(rows) @ image).T).T)


def _refined(image: Array, tensor: Array, coarse: Place) -> Place | None:
    """The place to a small part of a pixel, by least squares from coarse pictures to fine ones."""
    steps = np.array([image.shape[0] / coarse.rows, image.shape[1] / coarse.columns])
    starts = -np.array([coarse.top, coarse.left]) * steps
    correlation = coarse.correlation
    for by in _PYRAMID:
        if min(tensor.shape) // by < 16:
            continue
        target = shrunk(tensor, by)
        for _ in range(_STEPS):
            change, correlation = _newton(image, target, steps * by, starts)
            if change is None:
                return None
            change = change / np.array([by, 1, by, 1])
            steps, starts = steps + change[::2], starts + change[1::2]
            if (steps <= 0).any():
                return None
            moved = np.abs(change * np.array([tensor.shape[0], 1, tensor.shape[1], 1]))
            if moved.max() < 1e-3 * steps.min():
                break
    size = np.array(image.shape) / steps
    top, left = -starts / steps
    return Place(float(size[0]), float(size[1]), float(top), float(left), correlation)


def _newton(image: Array, target: Array, steps: Array, starts: Array) -> tuple[Array | None, float]:
    """One step: the change of (step, start) of rows and of columns, and the correlation so far."""
    sides = list(zip(image.shape, target.shape, steps, starts, strict=True))
    rows, columns = (_weights(*side) for side in sides)
    inside = (rows.sum(axis=1) > 0)[:, None] & (columns.sum(axis=1) > 0)
    if inside.sum() < 64:
        return None, 0.0
    made = _resampled(image, rows, columns)
    slopes = []
    for at, (size, wanted, step, start) in enumerate(sides):
        half = 0.25 * step
        ends = [_weights(size, wanted, step, start + by) for by in (-half, half)]
        down = (ends[1] - ends[0]) / (2 * half)
        slope = _resampled(image, *((down, columns) if at == 0 else (rows, down)))
        index = np.arange(wanted) + 0.5
        slopes += [slope * (index[:, None] if at == 0 else index), slope]
    design = np.column_stack([one[inside] for one in (*slopes, made, np.ones_like(made))])
    values = target[inside]
    design /= (scale := np.maximum(np.abs(design).max(axis=0), 1e-12))
    found = np.linalg.lstsq(design.T @ design, design.T @ values, rcond=1e-12)[0] / scale
    gain = found[4] or 1e-12
    with np.errstate(invalid="ignore", divide="ignore"):
        correlation = float(np.corrcoef(made[inside], values)[0, 1])
    return found[:4] / gain, correlation if np.isfinite(correlation) else 0.0
