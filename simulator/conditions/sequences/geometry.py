"""Sequences in which the camera moves: translation, rotation, tilt, scale and zoom blur.

What lies outside of an image is black, as in the original.

Source:
    https://github.com/hendrycks/robustness, ImageNet-P/create_p/make_imagenet_p.py.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from simulator.conditions.sequences.sequence import SequenceFrame, Window
from simulator.conditions.sequences.transform import affine, perspective, turned
from simulator.contract import U8


@dataclass(frozen=True, eq=False)
class Translate(SequenceFrame):
    """One pixel to the right a frame; frame 20 is as it was."""

    name = "p_translate"
    summary = "ImageNet-P: the image moves to the right, a pixel a frame"
    frames: ClassVar[int] = 41
    shifts: ClassVar[bool] = True

    def apply(self, rgb: U8, window: Window, rng: np.random.Generator) -> U8:
        """Move."""
        by, moved = self.frame - 20, np.zeros_like(rgb)
        kept = max(rgb.shape[1] - abs(by), 0)
        start = max(by, 0)
        moved[:, start : start + kept] = rgb[:, max(-by, 0) :][:, :kept]
        return window.cut(moved)


@dataclass(frozen=True, eq=False)
class Rotate(SequenceFrame):
    """One degree a frame; frame 15 is as it was."""

    name = "p_rotate"
    summary = "ImageNet-P: the image turns, a degree a frame"
    shifts: ClassVar[bool] = True

    def apply(self, rgb: U8, window: Window, rng: np.random.Generator) -> U8:
        """Turn."""
        return affine(rgb, turned(rgb.shape, self.frame - 15, 1.0), window)


@dataclass(frozen=True, eq=False)
class Scale(SequenceFrame):
    """From 40 % to 115 % of its size, 2.5 points a frame."""

    name = "p_scale"
    summary = "ImageNet-P: the image grows from 40 % to 115 % of its size"
    shifts: ClassVar[bool] = True

    def apply(self, rgb: U8, window: Window, rng: np.random.Generator) -> U8:
        """Scale."""
        return affine(rgb, turned(rgb.shape, 0, (self.frame * 2.5 + 40) / 100), window)


@dataclass(frozen=True, eq=False)
class Tilt(SequenceFrame):
    """One degree a frame about both axes of the image.

    The original's plane lies one pixel behind its focus: at 0 degrees, too, the image is smaller by
    1 part in 1 + its diagonal.
    """

    name = "p_tilt"
    summary = "ImageNet-P: the image tilts about both of its axes, a degree a frame"
    shifts: ClassVar[bool] = True

    def apply(self, rgb: U8, window: Window, rng: np.random.Generator) -> U8:
        """Tilt."""
        height, width = rgb.shape[:2]
        angle = math.radians(self.frame - 15)
        c, s, f = math.cos(angle), math.sin(angle), math.hypot(width, height)
        onto = np.array([[1, 0, -width / 2], [0, 1, -height / 2], [0, 0, 1], [0, 0, 1]])
        about_x = np.array([[1, 0, 0, 0], [0, c, -s, 0], [0, s, c, 0], [0, 0, 0, 1]])
        about_y = np.array([[c, 0, -s, 0], [0, 1, 0, 0], [s, 0, c, 0], [0, 0, 0, 1]])
        away = np.array([[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, f], [0, 0, 0, 1]])
        back = np.array([[f, 0, width / 2, 0], [0, f, height / 2, 0], [0, 0, 1, 0]])
        return perspective(rgb, back @ away @ about_x @ about_y @ onto, window)


@dataclass(frozen=True, eq=False)
class ZoomBlur(SequenceFrame):
    """The mean of this frame's zoom and of all before it; a zoom grows by 0.4 points a frame."""

    name = "p_zoom_blur"
    summary = "ImageNet-P: a zoom blur that grows"
    shifts: ClassVar[bool] = True

    def apply(self, rgb: U8, window: Window, rng: np.random.Generator) -> U8:
        """Add up the zooms in float32, as the original does."""
        total = window.cut(rgb).astype(np.float32) / np.float32(255)
        for one in range(1, self.frame + 1):
            zoomed = affine(rgb, turned(rgb.shape, 0, 1 + 0.004 * one), window)
            total += zoomed.astype(np.float32) / np.float32(255)
        total /= np.float32(self.frame + 1)
        return (total * np.float32(255)).astype(np.uint8)
