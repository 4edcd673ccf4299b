"""Elastic transforms: every pixel is moved a little, neighbors alike."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import fft

from simulator.conditions.corruptions.corruption import corruption
from simulator.conditions.corruptions.filters import gaussian_weights
from simulator.conditions.corruptions.sampling import mirrored, mirrored_once, sampled
from simulator.conditions.image_condition import F64, cut
from simulator.contract import U8

F32 = NDArray[np.float32]
Point = tuple[float, float]
FULL = 224
"""Below this size, the moves shrink with the image: ours, the original has no smaller."""


@corruption(
    "the image is stretched and bent, as drawn on rubber (Hendrycks')",
    (
        (244 * 2, 244 * 0.7, 244 * 0.1),
        (244 * 2, 244 * 0.08, 244 * 0.2),
        (244 * 0.05, 244 * 0.01, 244 * 0.02),
        (244 * 0.07, 244 * 0.01, 244 * 0.02),
        (244 * 0.12, 244 * 0.01, 244 * 0.02),
    ),
    has_chance=True,
)
def elastic_transform(rgb: U8, level: tuple[float, ...], rng: np.random.Generator) -> U8:
    """Jitter by an affine map, then move smoothly at random; what the published ImageNet-C has.

    A level is the strength of the moves, the sigma that smooths them, and the longest jitter of
    the three points that fix the affine map, in pixels.

    Source:
        ``elastic_transform`` of https://github.com/hendrycks/robustness (its 244 is meant).
    """
    size = rgb.shape[:2]
    alpha, sigma, jitter = (min(1.0, min(size) / FULL) * one for one in level)
    image = rgb.astype(np.float32) / np.float32(255)
    image = _jittered(image, rng.uniform(-jitter, jitter, size=(3, 2)).astype(np.float32))
    return _bent(image, 1, (sigma, sigma), alpha, rng)


@corruption(
    "the image is bent, as drawn on rubber (imagecorruptions')",
    (250 * 0.05, 250 * 0.065, 250 * 0.085, 250 * 0.1, 250 * 0.12),
    has_chance=True,
)
def elastic_bethgelab(rgb: U8, strength: float, rng: np.random.Generator) -> U8:
    """Move smoothly at random, more in larger images; of COCO-C and Cityscapes-C.

    A level is the strength of the moves.

    Source:
        ``elastic_transform`` of bethgelab/imagecorruptions.
    """
    height, width = rgb.shape[:2]
    image = rgb.astype(np.float32) / np.float32(255)
    return _bent(image, height * 0.005, (height * 0.01, width * 0.01), strength, rng)


def _bent(
    image: F32,
    longest: float,
    sigmas: tuple[float, float],
    strength: float,
    rng: np.random.Generator,
) -> U8:
    """Draw the moves to the right, then those down, smooth them, and move."""
    height, width = size = image.shape[:2]
    dx, dy = (
        (smooth(rng.uniform(-longest, longest, size=size), sigmas) * strength).astype(np.float32)
        for _ in range(2)
    )
    rows, columns = np.arange(height)[:, None] + dy, np.arange(width) + dx
    return cut(sampled(image, rows, columns, mirrored))


def smooth(field: F64, sigmas: tuple[float, float]) -> F64:
    """Blur with a Gaussian that ends at 3 sigmas; edges are mirrored, by cosine transforms.

    Args:
        field: (H, W).
        sigmas: down and to the right, in pixels.
    """
    spectrum = fft.dctn(field, norm="ortho")
    spectrum *= _response(field.shape[0], sigmas[0])[:, None]
    spectrum *= _response(field.shape[1], sigmas[1])
    return np.asarray(fft.idctn(spectrum, norm="ortho", overwrite_x=True))


def _response(size: int, sigma: float) -> F64:
    """What a Gaussian leaves of each cosine over *size* pixels."""
    weights = gaussian_weights(sigma, 3)
    half = len(weights) // 2
    wrapped = np.bincount(np.arange(-half, half + 1) % (2 * size), weights, minlength=2 * size)
    return np.asarray(fft.rfft(wrapped).real[:size])


def _jittered(image: F32, jitter: F32) -> F32:
    """Move three points around the middle, and the image with them; tiny images stay."""
    height, width = image.shape[:2]
    reach = min(height, width) // 3
    x, y = height // 2, width // 2  # the original takes rows for x
    corners = np.array(
        [(x + reach, y + reach), (x + reach, y - reach), (x - reach, y - reach)], np.float32
    )
    found = _affine([(float(a), float(b)) for a, b in corners + jitter], corners.tolist())
    if not reach or found is None:
        return image
    (a, b, c), (d, e, f) = found
    right, down = np.arange(width, dtype=np.float64), np.arange(height, dtype=np.float64)[:, None]
    return sampled(image, d * right + e * down + f, a * right + b * down + c, mirrored_once)


def _affine(source: list[Point], target: list[Point]) -> list[tuple[float, float, float]] | None:
    """Return the two rows of the affine map that takes three points to three; None if on a line."""
    (x0, y0), (x1, y1), (x2, y2) = source
    area = (x1 - x0) * (y2 - y0) - (x2 - x0) * (y1 - y0)
    if abs(area) < 1e-6:
        return None
    rows = []
    for one in range(2):
        u0, u1, u2 = (point[one] for point in target)
        a = ((u1 - u0) * (y2 - y0) - (u2 - u0) * (y1 - y0)) / area
        b = ((u2 - u0) * (x1 - x0) - (u1 - u0) * (x2 - x0)) / area
        rows.append((a, b, u0 - a * x0 - b * y0))
    return rows
