"""What a real camera does: noise that depends on intensity, a lens's blur, its distortion.

Kamann and Rother (CVPR 2020) name these three and publish no parameters. All numbers here are ours.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from simulator.conditions.corruptions.corruption import corruption
from simulator.conditions.corruptions.filters import gaussian
from simulator.conditions.corruptions.sampling import mirrored_once, sampled
from simulator.conditions.image_condition import F64, cut, unit
from simulator.contract import U8
from simulator.contract.raw import Raw
from simulator.contract.warp import Size, Warp

Polynomial = tuple[float, float, float]
_LUMA = np.array((0.2126, 0.7152, 0.0722))


def _linear(level: float) -> float:
    """Light of a level in [0, 1] (IEC 61966-2-1, sRGB)."""
    return level / 12.92 if level <= 0.04045 else float(((level + 0.055) / 1.055) ** 2.4)


_LIGHT = np.array([_linear(level / 255) for level in range(256)])
_BETWEEN = np.array([_linear((level + 0.5) / 255) for level in range(255)])


def _at_sites(raw: Raw, level: tuple[float, float], rng: np.random.Generator) -> Raw:
    """Add noise to the light of each site, before any gain; a site has one color, so both add."""
    light = (raw.plane - float(raw.black)) / (raw.white - raw.black)
    noise = rng.normal(size=light.shape, scale=float(np.hypot(*level)))
    light += noise * np.square(1 - np.clip(light, 0, 1))
    levels = np.rint(raw.black + light * (raw.white - raw.black))
    return replace(raw, plane=np.clip(levels, 0, raw.white).astype(np.uint16))


@corruption(
    "a camera's noise: the darker a pixel, the noisier (after Kamann and Rother)",
    ((0.01, 0.005), (0.02, 0.01), (0.04, 0.02)),
    has_chance=True,
    raw=_at_sites,
)
def camera_noise(rgb: U8, level: tuple[float, float], rng: np.random.Generator) -> U8:
    """Add noise to light, not to levels, and encode again, rounded: the darker, the noisier.

    A level is the deviation of the noise that all channels share and that of each channel, both
    in linear light of [0, 1] and times (1 - Y) squared, with Y the pixel's luma in linear light.
    """
    shared, own = level
    light = _LIGHT[rgb]
    luma = sum(light[..., c] * _LUMA[c] for c in range(3))
    noise = rng.normal(size=rgb.shape, scale=own)
    noise += rng.normal(size=(*rgb.shape[:2], 1), scale=shared)
    noise *= np.square(1 - luma)[..., None]
    light += noise
    return np.searchsorted(_BETWEEN, light).astype(np.uint8)


@corruption(
    "a lens that is sharp in the middle only (after Kamann and Rother)",
    ((0.5, 2.0), (0.7, 4.0), (1.0, 6.0)),
)
def psf_blur(rgb: U8, sigmas: tuple[float, float], rng: np.random.Generator) -> U8:
    """Blur more the farther from the middle; a level is sigma in the middle and in the corners.

    Sigma grows with the square of the distance. Each pixel is a mixture of the two nearest of five
    Gaussian blurs.
    """
    middle, corner = sigmas
    image = unit(rgb)
    ring = 4 * np.square(_radius(*rgb.shape[:2]))
    total = np.zeros_like(image)
    for i in range(5):
        share = np.clip(1 - np.abs(ring - i), 0, None)
        total += gaussian(image, middle + (corner - middle) * i / 4) * share[..., None]
    return cut(total)


def _factor(polynomial: Polynomial, r: F64) -> F64:
    """How much farther from the middle a pixel at radius r comes from."""
    a, b, c = polynomial
    return np.asarray(((a * r + b) * r + c) * r + (1 - a - b - c))


def _sources(polynomial: Polynomial, height: int, width: int) -> tuple[F64, F64]:
    """The row and the column from which each pixel comes."""
    factor = _factor(polynomial, _radius(height, width))
    y, x = (height - 1) / 2, (width - 1) / 2
    return (np.arange(height)[:, None] - y) * factor + y, (np.arange(width) - x) * factor + x


def _followed(size: Size, polynomial: Polynomial) -> Warp:
    """Return where pixels go; a point is followed by the inverse of the polynomial."""
    height, width = size
    middle = np.array([width, height]) / 2
    corner = max(float(np.hypot(width - 1, height - 1)) / 2, 1.0)
    new = np.linspace(0, 2, 4001)

    def forward(points: F64) -> F64:
        offset = points - middle
        radius = np.hypot(*offset.T) / corner
        gone = np.interp(radius, new * _factor(polynomial, new), new)
        scale = np.divide(gone, radius, out=np.ones_like(radius), where=radius > 0)
        return np.asarray(middle + offset * scale[:, None])

    sources = np.broadcast_arrays(*_sources(polynomial, height, width))
    return Warp(np.stack(sources, axis=-1), forward)


@corruption(
    "a lens that bends straight lines (after Kamann and Rother)",
    ((0, 0.03, 0.03), (0.05, 0.05, 0.05), (0.1, 0.1, 0.1), (0.2, 0.2, 0.2), (0.1, 0.3, 0.6)),
    follow=_followed,
)
def geometric_distortion(rgb: U8, polynomial: Polynomial, rng: np.random.Generator) -> U8:
    """Move pixels along the radius, bilinearly; a level is A, B and C of a lens's polynomial.

    A pixel at radius r comes from r (A r^3 + B r^2 + C r + 1 - A - B - C), where r is 1 in the
    corners, so that every pixel has a source; boxes and masks follow.

    Source:
        The form is ImageMagick's ``barrel``; the coefficients are those that Hendrycks' code has
        in a comment.
    """
    rows, columns = _sources(polynomial, *rgb.shape[:2])
    image = sampled(rgb.astype(np.float32), rows, columns, mirrored_once)
    return np.rint(image).astype(np.uint8)


def _radius(height: int, width: int) -> F64:
    """Return each pixel's distance from the middle; 1 in the corners."""
    rows, columns = np.arange(height) - (height - 1) / 2, np.arange(width) - (width - 1) / 2
    squares = rows[:, None] ** 2 + columns**2
    return np.asarray(np.sqrt(squares / max(squares[0, 0], 1)))
