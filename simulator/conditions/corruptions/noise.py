"""Noise: Gaussian, shot, impulse and speckle.

Source:
    https://github.com/hendrycks/robustness (ImageNet-C), as in bethgelab/imagecorruptions.
"""

from __future__ import annotations

import numpy as np

from simulator.conditions.corruptions.corruption import corruption
from simulator.conditions.image_condition import cut, unit
from simulator.contract import U8


@corruption(
    "Gaussian noise of equal strength everywhere, as in low light",
    (0.08, 0.12, 0.18, 0.26, 0.38),
    has_chance=True,
)
def gaussian_noise(rgb: U8, deviation: float, rng: np.random.Generator) -> U8:
    """Add a normal number to each sample; a level is its standard deviation in [0, 1]."""
    image = unit(rgb)
    image += rng.normal(size=rgb.shape, scale=deviation)
    return cut(image)


@corruption("shot noise: light comes in single photons", (60, 25, 12, 5, 3), has_chance=True)
def shot_noise(rgb: U8, photons: int, rng: np.random.Generator) -> U8:
    """Count photons; a level is the mean count of a white sample."""
    image = unit(rgb)
    image *= photons
    return cut(rng.poisson(image) / float(photons))


@corruption(
    "impulse noise: single samples are black or white, as of broken cells",
    (0.03, 0.06, 0.09, 0.17, 0.27),
    has_chance=True,
)
def impulse_noise(rgb: U8, share: float, rng: np.random.Generator) -> U8:
    """Set samples to 0 or 255; a level is their share.

    Source:
        scikit-image, ``util.random_noise(mode="s&p")``.
    """
    flipped = rng.random(rgb.shape) <= share
    salted = rng.random(rgb.shape) <= 0.5
    out = rgb.copy()
    out[flipped & salted] = 255
    out[flipped & ~salted] = 0
    return out


@corruption(
    "speckle noise: the brighter a sample, the more noise",
    (0.15, 0.2, 0.35, 0.45, 0.6),
    has_chance=True,
)
def speckle_noise(rgb: U8, deviation: float, rng: np.random.Generator) -> U8:
    """Add a normal number times the sample; a level is its standard deviation."""
    image = unit(rgb)
    noise = rng.normal(size=rgb.shape, scale=deviation)
    noise *= image
    image += noise
    return cut(image)
