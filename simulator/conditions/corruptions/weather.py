"""Weather: snow, frost and fog.

Source:
    https://github.com/hendrycks/robustness (ImageNet-C), as in bethgelab/imagecorruptions.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from simulator.conditions.corruptions.corruption import corruption
from simulator.conditions.corruptions.filters import between, motion, zooms
from simulator.conditions.image_condition import F64, cut, unit
from simulator.contract import U8

F32 = NDArray[np.float32]
PLATES = (
    ((78, 149, 166), (27, 16, 15)),
    ((201, 205, 214), (21, 22, 23)),
    ((201, 205, 214), (21, 22, 23)),
    ((138, 153, 165), (28, 28, 30)),
    ((112, 123, 135), (44, 43, 42)),
)
"""R, G, B of the ice: means and standard deviations of the five files that Hendrycks' code draws
from (frost1 to frost5; it never draws its sixth), measured once."""
_CELLS = (64, 32, 16, 8, 4, 2)
_NEEDLES = 16
"""Cells up to this size, in pixels, have ridges: thin bright lines."""


@corruption(
    "fog lies over the scene, thicker here and thinner there",
    ((1.5, 2), (2.0, 2), (2.5, 1.7), (2.5, 1.5), (3.0, 1.4)),
    has_chance=True,
)
def fog(rgb: U8, level: tuple[float, float], rng: np.random.Generator) -> U8:
    """Mix with a fractal map; a level is how much of it, and how fast its detail fades."""
    image = unit(rgb)
    brightest = image.max()
    amount, decay = level
    height, width = rgb.shape[:2]
    side = 1 << (max(rgb.shape) - 1).bit_length()
    image += (amount * plasma(side, decay, rng)[:height, :width])[..., None]
    image *= brightest
    image /= brightest + amount
    return cut(image)


@corruption(
    "ice on the lens; its texture is ours, not the published photographs",
    ((1, 0.4), (0.8, 0.6), (0.7, 0.7), (0.65, 0.7), (0.6, 0.75)),
    has_chance=True,
)
def frost(rgb: U8, level: tuple[float, float], rng: np.random.Generator) -> U8:
    """Mix with a texture of ice; a level is the share of the image and that of the ice.

    The original cuts its ice from six photographs, which do not come with this package. This one
    grows it, see :func:`frosted`; the shares are the original's.
    """
    kept, ice = level
    total = frosted(rgb.shape[0], rgb.shape[1], rng)
    total *= ice
    total += kept * rgb
    return np.clip(total, 0, 255, out=total).astype(np.uint8)


@corruption(
    "snow falls, and what it falls on gets whiter",
    (
        (0.1, 0.3, 3, 0.5, 10, 4, 0.8),
        (0.2, 0.3, 2, 0.5, 12, 4, 0.7),
        (0.55, 0.3, 4, 0.9, 12, 8, 0.7),
        (0.55, 0.3, 4.5, 0.85, 12, 8, 0.65),
        (0.55, 0.3, 2.5, 0.85, 12, 12, 0.55),
    ),
    has_chance=True,
)
def snow(rgb: U8, level: tuple[float, ...], rng: np.random.Generator) -> U8:
    """Whiten, and add flakes that fall; a level is what the original calls ``c``.

    Its numbers are mean and deviation of the noise, its enlargement, the least value of a flake,
    half the path and the sigma of the fall, and how much of the image's color is kept.
    """
    mean, deviation, zoom, least, radius, sigma, kept = level
    layer = falling(rgb.shape[:2], rng, mean, deviation, zoom, least)
    return snowed(rgb, motion(layer, int(radius), sigma, rng.uniform(-135, -45)), kept)


def falling(
    size: tuple[int, ...],
    rng: np.random.Generator,
    mean: float,
    deviation: float,
    zoom: float,
    least: float,
) -> NDArray[np.float64]:
    """Return (H, W) float64, about *size*: the flakes before they fall, in [0, 1].

    Args:
        size: rows and columns.
        rng: draws normal noise.
        mean: of the noise.
        deviation: likewise.
        zoom: its enlargement.
        least: smaller values are no flake.
    """
    noise = rng.normal(size=(*size, 1), loc=mean, scale=deviation)
    layer = next(zooms(noise, (zoom,)))[:, 0]
    layer[layer < least] = 0
    return np.clip(layer, 0, 1)


def snowed(rgb: U8, fallen: NDArray[np.float64], kept: float) -> U8:
    """Whiten an image, and add flakes; once as they are and once turned by 180 degrees.

    Args:
        rgb: (H, W, 3).
        fallen: the flakes in [0, 1], about (H, W).
        kept: how much of the color is kept.
    """
    height, width = rgb.shape[:2]
    flakes = np.round(fallen[:height, :width] * 255).astype(np.uint8) / 255.0
    whole = np.zeros((height, width, 1))
    whole[: flakes.shape[0], : flakes.shape[1], 0] = flakes
    image = rgb.astype(np.float32) / np.float32(255)
    white = np.maximum(image, _gray(image) * np.float32(1.5) + np.float32(0.5))
    image = np.float32(kept) * image + np.float32(1 - kept) * white
    return cut(image + whole + whole[::-1, ::-1])


def frosted(height: int, width: int, rng: np.random.Generator) -> F64:
    """Grow ice for an image: ridged noise at many scales, in the colors of the published files.

    The pattern is ours.

    Args:
        height: of the image, in pixels.
        width: likewise.
        rng: draws the colors, then the pattern.

    Returns:
        (height, width, 3) float64, 0 to 255.
    """
    means, deviations = PLATES[int(rng.integers(len(PLATES)))]
    pattern = np.zeros((height, width))
    for cell in _CELLS:
        grid = rng.normal(size=(height // cell + 2, width // cell + 2))
        down, across = (between(side, (side - 1) * cell + 1, side) for side in grid.shape)
        fine = (across @ (down @ grid)[:height].T)[:width].T
        pattern += 1 - 2 * np.abs(fine) if cell <= _NEEDLES else fine
    pattern -= pattern.mean()
    pattern /= pattern.std() or 1
    ice = pattern[..., None] * np.array(deviations, float) + np.array(means, float)
    return np.asarray(np.clip(ice, 0, 255, out=ice))


def plasma(side: int, decay: float, rng: np.random.Generator) -> F32:
    """Grow a map of [0, 1] by the diamond-square algorithm.

    Args:
        side: a power of two.
        decay: by how much each finer step is weaker.
        rng: draws the numbers, in the original's order.

    Returns:
        (side, side) float32.

    Source:
        ``plasma_fractal`` of the original, from https://github.com/FLHerne/mapgen.
    """
    found = np.empty((side, side), np.float32)
    found[0, 0] = 0
    step, wobble = side, 100.0

    def mean(total: F32) -> NDArray[np.float64]:
        return total / 4 + wobble * rng.uniform(-wobble, wobble, total.shape)

    while step >= 2:
        half = step // 2
        corners = found[::step, ::step]
        pairs = corners + np.roll(corners, -1, axis=0)
        pairs += np.roll(pairs, -1, axis=1)
        found[half::step, half::step] = mean(pairs)
        middles = found[half::step, half::step]
        across = middles + np.roll(middles, 1, axis=0)
        found[::step, half::step] = mean(across + (corners + np.roll(corners, -1, axis=1)))
        down = middles + np.roll(middles, 1, axis=1)
        found[half::step, ::step] = mean(down + (corners + np.roll(corners, -1, axis=0)))
        step, wobble = half, wobble / decay
    found -= found.min()
    top = found.max()
    return found / top if top else found


def _gray(image: F32) -> F32:
    """Return (H, W, 1) luma, rounded as OpenCV's fused multiply-add rounds it."""
    red, green, blue = (image[..., c : c + 1].astype(np.float64) for c in range(3))
    weights = [float(np.float32(one)) for one in (0.299, 0.587, 0.114)]
    total = (green * weights[1]).astype(np.float32)
    total = (red * weights[0] + total).astype(np.float32)
    return (blue * weights[2] + total).astype(np.float32)
