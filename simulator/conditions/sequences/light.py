"""Sequences in which nothing moves but light: noise, snow, brightness and motion blur.

Source:
    https://github.com/hendrycks/robustness, ImageNet-P/create_p/make_imagenet_p.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from simulator.conditions.corruptions.color import brightened
from simulator.conditions.corruptions.corruption import cut, unit
from simulator.conditions.corruptions.filters import motion
from simulator.conditions.corruptions.weather import falling, snowed
from simulator.conditions.sequences.sequence import SequenceFrame, Window
from simulator.contract import U8


@dataclass(frozen=True, eq=False)
class GaussianNoise(SequenceFrame):
    """Frame 0 is clean; each other one has noise of its own, whose deviation is the strength."""

    name = "p_gaussian_noise"
    summary = "ImageNet-P: a clean frame, then frames of independent Gaussian noise"
    examples: ClassVar[tuple[str, ...]] = (*SequenceFrame.examples, "3,difficulty=2")
    has_chance: ClassVar[bool] = True
    noise: ClassVar[bool] = True
    strengths: ClassVar[tuple[float, ...]] = (0.03, 0.05, 0.08)

    def apply(self, rgb: U8, window: Window, rng: np.random.Generator) -> U8:
        """Add the noise."""
        shown = window.cut(rgb)
        if self.frame == 0:
            return shown
        image = unit(shown)
        image += rng.normal(size=shown.shape, scale=self.strength)
        return cut(image)


@dataclass(frozen=True, eq=False)
class ShotNoise(SequenceFrame):
    """Frame 0 is clean; in each other one a white sample has as many photons in the mean."""

    name = "p_shot_noise"
    summary = "ImageNet-P: a clean frame, then frames of independent shot noise"
    examples: ClassVar[tuple[str, ...]] = (*SequenceFrame.examples, "3,difficulty=3,crop224")
    has_chance: ClassVar[bool] = True
    noise: ClassVar[bool] = True
    strengths: ClassVar[tuple[float, ...]] = (300, 120, 60)

    def apply(self, rgb: U8, window: Window, rng: np.random.Generator) -> U8:
        """Count the photons."""
        shown = window.cut(rgb)
        white = self.strength
        return cut(rng.poisson(unit(shown) * white) / white) if self.frame else shown


@dataclass(frozen=True, eq=False)
class MotionBlur(SequenceFrame):
    """A blur of radius 10 and sigma 3 whose angle grows by 4 degrees a frame."""

    name = "p_motion_blur"
    summary = "ImageNet-P: a motion blur whose direction turns"

    def apply(self, rgb: U8, window: Window, rng: np.random.Generator) -> U8:
        """Blur; as ImageMagick does, levels are rounded."""
        moved = motion(window.cut(rgb), 10, 3, (self.frame - 30) * 4)
        return np.rint(moved).clip(0, 255).astype(np.uint8)


@dataclass(frozen=True, eq=False)
class Snow(SequenceFrame):
    """The same flakes in all frames; the angle at which they fall grows by 4 degrees a frame."""

    name = "p_snow"
    summary = "ImageNet-P: snow whose direction turns"
    has_chance: ClassVar[bool] = True
    shares: ClassVar[bool] = True

    def apply(self, rgb: U8, window: Window, rng: np.random.Generator) -> U8:
        """Let it snow; the flakes are cut to whole levels before they fall, as in the original."""
        shown = window.cut(rgb)
        layer = np.floor(falling(shown.shape[:2], rng, 0.05, 0.3, 3, 0.5) * 255) / 255
        return snowed(shown, motion(layer, 14, 4, self.frame * 4 - 150), 0.85)


@dataclass(frozen=True, eq=False)
class Brightness(SequenceFrame):
    """V of HSV grows by 0.02 a frame; frame 15 is as it was."""

    name = "p_brightness"
    summary = "ImageNet-P: from darker to brighter"

    def apply(self, rgb: U8, window: Window, rng: np.random.Generator) -> U8:
        """Brighten or darken."""
        return brightened(window.cut(rgb), (self.frame - 15) * 2 / 100)
