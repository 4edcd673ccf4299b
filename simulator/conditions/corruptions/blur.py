"""Blur: defocus, Gaussian, motion and zoom.

Source:
    https://github.com/hendrycks/robustness (ImageNet-C), as in bethgelab/imagecorruptions; radii
    and sigmas are in pixels, whatever the image's size.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy import fft

from simulator.conditions.corruptions.corruption import corruption
from simulator.conditions.corruptions.filters import gaussian, motion, zooms
from simulator.conditions.image_condition import cut, unit
from simulator.contract import U8

F32 = NDArray[np.float32]


@corruption("a Gaussian blur", (1, 2, 3, 4, 6))
def gaussian_blur(rgb: U8, sigma: float, rng: np.random.Generator) -> U8:
    """Convolve with a Gaussian; a level is its sigma."""
    return cut(gaussian(unit(rgb), sigma))


@corruption(
    "the lens is out of focus: every point is a disk",
    ((3, 0.1), (4, 0.5), (6, 0.5), (8, 0.5), (10, 0.5)),
)
def defocus_blur(rgb: U8, level: tuple[int, float], rng: np.random.Generator) -> U8:
    """Convolve with a disk; a level is its radius and the sigma that softens its edge.

    By Fourier transforms; the image is mirrored at its edges.
    """
    disk = _disk(*level)
    edge = len(disk) // 2
    padded = np.pad(unit(rgb), ((edge, edge), (edge, edge), (0, 0)), mode="reflect")
    size = [fft.next_fast_len(side, real=True) for side in padded.shape[:2]]
    spectrum = fft.rfft2(padded.transpose(2, 0, 1), size)
    spectrum *= fft.rfft2(disk.astype(np.float64), size)
    whole = fft.irfft2(spectrum, size, overwrite_x=True)
    height, width = rgb.shape[:2]
    found = whole[:, 2 * edge : 2 * edge + height, 2 * edge : 2 * edge + width]
    return cut(np.ascontiguousarray(found.transpose(1, 2, 0)))


@corruption(
    "the camera moves while the shutter is open",
    ((10, 3), (15, 5), (15, 8), (15, 12), (20, 15)),
    has_chance=True,
)
def motion_blur(rgb: U8, level: tuple[int, float], rng: np.random.Generator) -> U8:
    """Blur along a line whose angle is drawn from -45 to 45 degrees.

    A level is half the path and the sigma along it.
    """
    radius, sigma = level
    moved = motion(rgb, radius, sigma, rng.uniform(-45, 45))
    return np.clip(moved, 0, 255, out=moved).astype(np.uint8)


@corruption(
    "the camera moves toward the scene while the shutter is open",
    ((1.11, 0.01), (1.16, 0.01), (1.21, 0.02), (1.26, 0.02), (1.31, 0.03)),
)
def zoom_blur(rgb: U8, end_and_step: tuple[float, float], rng: np.random.Generator) -> U8:
    """Average the image and enlargements of its middle; a level is their end and step.

    What an enlargement lacks by rounding counts as black, as in the original.
    """
    image = unit(rgb).astype(np.float32)
    height, width, channels = image.shape
    total = np.zeros((height, channels, width), np.float32)
    factors = np.arange(1, *end_and_step)
    for layer in zooms(image, factors):
        part = layer[:height, :, :width]
        total[: part.shape[0], :, : part.shape[2]] += part
    image += total.transpose(0, 2, 1)
    image /= len(factors) + 1
    return cut(image)


@cache
def _disk(radius: int, sigma: float) -> F32:
    """A disk of unit sum whose edge is softened by a Gaussian of 3 or 5 weights.

    Source:
        ``disk`` of the original: numpy, then ``cv2.GaussianBlur`` in float32.
    """
    half, count = (8, 3) if radius <= 8 else (radius, 5)
    side = np.arange(-half, half + 1)
    flat = (side[:, None] ** 2 + side**2 <= radius**2).astype(np.float32)
    flat /= flat.sum()
    soft = np.array([math.exp(-((i - count // 2) ** 2) / (2 * sigma**2)) for i in range(count)])
    weights = (soft / soft.sum()).astype(np.float32)
    inner = range(count // 2 + 1)
    return _softened(_softened(flat, weights, inner[::-1]).T, weights, inner).T


def _softened(rows: F32, weights: F32, order: Sequence[int]) -> F32:
    """Add the pairs of neighbors of each distance in *order*, each step rounded once to float32."""
    half, width = len(weights) // 2, rows.shape[1]
    padded = np.pad(rows, ((0, 0), (half, half)), mode="reflect")
    total = np.zeros_like(rows)
    for i in order:
        value = padded[:, half + i : half + i + width]
        if i:
            value = value + padded[:, half - i : half - i + width]
        product = value.astype(np.float64) * float(weights[half + i])
        total = (total + product).astype(np.float32)
    return total
