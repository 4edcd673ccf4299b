"""Noise: Gaussian, shot, impulse and speckle.

Source:
    https://github.com/hendrycks/robustness (ImageNet-C), as in bethgelab/imagecorruptions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from simulator.conditions.corruptions.corruption import Corruption, cut, unit
from simulator.contract import U8


@dataclass(frozen=True, eq=False)
class GaussianNoise(Corruption):
    """Adds a normal number to each sample; a level is its standard deviation in [0, 1]."""

    name = "gaussian_noise"
    summary = "Gaussian noise of equal strength everywhere, as in low light"
    has_chance: ClassVar[bool] = True
    levels: ClassVar[tuple[Any, ...]] = (0.08, 0.12, 0.18, 0.26, 0.38)

    def apply(self, rgb: U8, rng: np.random.Generator) -> U8:
        """Add the noise."""
        image = unit(rgb)
        image += rng.normal(size=rgb.shape, scale=self.level)
        return cut(image)


@dataclass(frozen=True, eq=False)
class ShotNoise(Corruption):
    """Counts photons; a level is the mean count of a white sample."""

    name = "shot_noise"
    summary = "shot noise: light comes in single photons"
    has_chance: ClassVar[bool] = True
    levels: ClassVar[tuple[Any, ...]] = (60, 25, 12, 5, 3)

    def apply(self, rgb: U8, rng: np.random.Generator) -> U8:
        """Draw the counts."""
        image = unit(rgb)
        image *= self.level
        return cut(rng.poisson(image) / float(self.level))


@dataclass(frozen=True, eq=False)
class ImpulseNoise(Corruption):
    """Sets samples to 0 or 255; a level is their share.

    Source:
        scikit-image, ``util.random_noise(mode="s&p")``.
    """

    name = "impulse_noise"
    summary = "impulse noise: single samples are black or white, as of broken cells"
    has_chance: ClassVar[bool] = True
    levels: ClassVar[tuple[Any, ...]] = (0.03, 0.06, 0.09, 0.17, 0.27)

    def apply(self, rgb: U8, rng: np.random.Generator) -> U8:
        """Draw which samples flip, then which of them become white."""
        flipped = rng.random(rgb.shape) <= self.level
        salted = rng.random(rgb.shape) <= 0.5
        out = rgb.copy()
        out[flipped & salted] = 255
        out[flipped & ~salted] = 0
        return out


@dataclass(frozen=True, eq=False)
class SpeckleNoise(Corruption):
    """Adds a normal number times the sample; a level is its standard deviation."""

    name = "speckle_noise"
    summary = "speckle noise: the brighter a sample, the more noise"
    has_chance: ClassVar[bool] = True
    levels: ClassVar[tuple[Any, ...]] = (0.15, 0.2, 0.35, 0.45, 0.6)

    def apply(self, rgb: U8, rng: np.random.Generator) -> U8:
        """Add the noise."""
        image = unit(rgb)
        noise = rng.normal(size=rgb.shape, scale=self.level)
        noise *= image
        image += noise
        return cut(image)
