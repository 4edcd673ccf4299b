"""Sequences in which the camera moves: translation, rotation, tilt, scale and zoom blur.

What lies outside of an image is black, as in the original.

Source:
    https://github.com/hendrycks/robustness, ImageNet-P/create_p/make_imagenet_p.py.
"""

from __future__ import annotations

import math

import numpy as np

from simulator.conditions.image_condition import Window
from simulator.conditions.sequences.sequence import SequenceFrame, moving
from simulator.conditions.sequences.transform import affine, perspective, turned
from simulator.contract import U8


@moving("the image moves to the right, a pixel a frame", frames=41)
def p_translate(at: SequenceFrame, rgb: U8, window: Window) -> U8:
    """Move by one pixel to the right a frame; frame 20 is as it was."""
    by, moved = at.frame - 20, np.zeros_like(rgb)
    kept = max(rgb.shape[1] - abs(by), 0)
    start = max(by, 0)
    moved[:, start : start + kept] = rgb[:, max(-by, 0) :][:, :kept]
    return window.cut(moved)


@moving("the image turns, a degree a frame")
def p_rotate(at: SequenceFrame, rgb: U8, window: Window) -> U8:
    """Turn by one degree a frame; frame 15 is as it was."""
    return affine(rgb, turned(rgb.shape, at.frame - 15, 1.0), window)


@moving("the image grows from 40 % to 115 % of its size")
def p_scale(at: SequenceFrame, rgb: U8, window: Window) -> U8:
    """Scale from 40 % to 115 % of its size, 2.5 points a frame."""
    return affine(rgb, turned(rgb.shape, 0, (at.frame * 2.5 + 40) / 100), window)


@moving("the image tilts about both of its axes, a degree a frame")
def p_tilt(at: SequenceFrame, rgb: U8, window: Window) -> U8:
    """Tilt by one degree a frame about both axes of the image.

    The original's plane lies one pixel behind its focus: at 0 degrees, too, the image is smaller by
    1 part in 1 + its diagonal.
    """
    height, width = rgb.shape[:2]
    angle = math.radians(at.frame - 15)
    c, s, f = math.cos(angle), math.sin(angle), math.hypot(width, height)
    onto = np.array([[1, 0, -width / 2], [0, 1, -height / 2], [0, 0, 1], [0, 0, 1]])
    about_x = np.array([[1, 0, 0, 0], [0, c, -s, 0], [0, s, c, 0], [0, 0, 0, 1]])
    about_y = np.array([[c, 0, -s, 0], [0, 1, 0, 0], [s, 0, c, 0], [0, 0, 0, 1]])
    away = np.array([[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, f], [0, 0, 0, 1]])
    back = np.array([[f, 0, width / 2, 0], [0, f, height / 2, 0], [0, 0, 1, 0]])
    return perspective(rgb, back @ away @ about_x @ about_y @ onto, window)


@moving("a zoom blur that grows")
def p_zoom_blur(at: SequenceFrame, rgb: U8, window: Window) -> U8:
    """Average this frame's zoom and all before it, in float32; a zoom grows by 0.4 points."""
    total = window.cut(rgb).astype(np.float32) / np.float32(255)
    for one in range(1, at.frame + 1):
        zoomed = affine(rgb, turned(rgb.shape, 0, 1 + 0.004 * one), window)
        total += zoomed.astype(np.float32) / np.float32(255)
    total /= np.float32(at.frame + 1)
    return (total * np.float32(255)).astype(np.uint8)
