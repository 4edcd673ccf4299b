"""Sequences in which nothing moves but light: noise, snow, brightness and motion blur.

Source:
    https://github.com/hendrycks/robustness, ImageNet-P/create_p/make_imagenet_p.py.
"""

from __future__ import annotations

import numpy as np

from simulator.conditions.corruptions.color import brightened
from simulator.conditions.corruptions.filters import motion
from simulator.conditions.corruptions.weather import falling, snowed
from simulator.conditions.image_condition import cut, unit
from simulator.conditions.sequences.sequence import SequenceFrame, still
from simulator.contract import U8


@still(
    "a clean frame, then frames of independent Gaussian noise",
    has_chance=True, noise=True, strengths=(0.03, 0.05, 0.08),
    examples=("1", "3", "30", "3,crop224", "3,difficulty=2"),
)  # fmt: skip
def p_gaussian_noise(at: SequenceFrame, rgb: U8, rng: np.random.Generator) -> U8:
    """Add noise of its own to each frame but 0; its deviation is the strength."""
    if at.frame == 0:
        return rgb
    image = unit(rgb)
    image += rng.normal(size=rgb.shape, scale=at.strength)
    return cut(image)


@still(
    "a clean frame, then frames of independent shot noise",
    has_chance=True, noise=True, strengths=(300, 120, 60),
    examples=("1", "3", "30", "3,crop224", "3,difficulty=3,crop224"),
)  # fmt: skip
def p_shot_noise(at: SequenceFrame, rgb: U8, rng: np.random.Generator) -> U8:
    """Count photons in each frame but 0; of a white sample the strength in the mean."""
    white = at.strength
    return cut(rng.poisson(unit(rgb) * white) / white) if at.frame else rgb


@still("a motion blur whose direction turns")
def p_motion_blur(at: SequenceFrame, rgb: U8, rng: np.random.Generator) -> U8:
    """Blur with radius 10 and sigma 3 at an angle that grows by 4 degrees a frame.

    As ImageMagick does, levels are rounded.
    """
    moved = motion(rgb, 10, 3, (at.frame - 30) * 4)
    return np.rint(moved).clip(0, 255).astype(np.uint8)


@still("snow whose direction turns", has_chance=True, shares=True)
def p_snow(at: SequenceFrame, rgb: U8, rng: np.random.Generator) -> U8:
    """Let the same flakes fall in all frames at an angle that grows by 4 degrees a frame.

    They are cut to whole levels before they fall, as in the original.
    """
    layer = np.floor(falling(rgb.shape[:2], rng, 0.05, 0.3, 3, 0.5) * 255) / 255
    return snowed(rgb, motion(layer, 14, 4, at.frame * 4 - 150), 0.85)


@still("from darker to brighter")
def p_brightness(at: SequenceFrame, rgb: U8, rng: np.random.Generator) -> U8:
    """Add 0.02 a frame to V of HSV; frame 15 is as it was."""
    return brightened(rgb, (at.frame - 15) * 2 / 100)
