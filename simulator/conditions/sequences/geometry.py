"""Sequences in which the camera moves: translation, rotation, tilt, scale and zoom blur.

What lies outside of an image is black, as in the original.

Source:
    https://github.com/hendrycks/robustness, ImageNet-P/create_p/make_imagenet_p.py.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from simulator.conditions.image_condition import F64, Window
from simulator.conditions.sequences.sequence import SequenceFrame, moving
from simulator.contract import U8

Whole = NDArray[np.intp]
Matrix = tuple[float, float, float, float, float, float]


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


def turned(size: tuple[int, ...], degrees: float, scale: float) -> Matrix:
    """Return from where an image's pixels come when it is turned and scaled about its middle.

    Args:
        size: rows and columns first.
        degrees: clockwise.
        scale: above 0.

    Returns:
        a to f: a pixel at (x, y) comes from (a x + b y + c, d x + e y + f).

    Source:
        torchvision 0.2, ``functional.affine``, whose middle is half a pixel down and to the right.
    """
    x, y = size[1] * 0.5 + 0.5, size[0] * 0.5 + 0.5
    angle, less = math.radians(degrees), 1.0 / scale
    cosine, sine = math.cos(angle), math.sin(angle)
    less /= cosine * cosine + sine * sine
    a, b, d, e = less * cosine, less * sine, less * -sine, less * cosine
    return a, b, a * -x + b * -y + x, d, e, d * -x + e * -y + y


def affine(rgb: U8, matrix: Matrix, window: Window) -> U8:
    """Transform an image as Pillow does, bilinearly; levels are cut off, not rounded.

    Args:
        rgb: (H, W, 3).
        matrix: as :func:`turned` returns it, between the corners of pixels.
        window: the part that is computed.

    Returns:
        (h, w, 3) uint8.

    Source:
        Pillow, ``Image.transform`` with ``AFFINE`` and ``BILINEAR`` (Geometry.c).
    """
    a, b, c, d, e, f = matrix
    height, width = rgb.shape[:2]
    x = np.arange(window.left, window.left + window.width) + 0.5
    y = np.arange(window.top, window.top + window.height)[:, None] + 0.5
    if b == 0 and d == 0:
        return _stretched(rgb, (a * x + b * y[0]) + c, (d * x[0] + e * y[:, 0]) + f)
    columns, rows = a * x + b * y + c, d * x + e * y + f
    outside = (columns < 0) | (columns >= width) | (rows < 0) | (rows >= height)
    left, right, dx = _neighbors(columns, width)
    above, below, dy = _neighbors(rows, height)
    found = np.empty((window.height, window.width, 3), np.uint8)
    for channel in range(3):
        plane = np.ascontiguousarray(rgb[..., channel]).ravel().astype(np.float64)
        over = _mixed(plane[above * width + left], plane[above * width + right], dx)
        under = _mixed(plane[below * width + left], plane[below * width + right], dx)
        found[..., channel] = _mixed(over, under, dy)
    found[outside] = 0
    return found


def perspective(rgb: U8, matrix: F64, window: Window) -> U8:
    """Transform an image as OpenCV does, bilinearly, but at exact places; levels are rounded.

    Args:
        rgb: (H, W, 3).
        matrix: (3, 3), from a pixel's middle to where it goes.
        window: the part that is computed.

    Returns:
        (h, w, 3) uint8.

    Source:
        OpenCV, ``warpPerspective`` with ``INTER_LINEAR`` and ``BORDER_CONSTANT``; OpenCV 3, with
        which ImageNet-P was made, takes the nearest 1/32 of a pixel.
    """
    back = np.linalg.inv(matrix)
    height, width = rgb.shape[:2]
    x = np.arange(window.left, window.left + window.width, dtype=np.float64)
    y = np.arange(window.top, window.top + window.height, dtype=np.float64)[:, None]
    columns, rows, depth = (one[0] * x + one[1] * y + one[2] for one in back)
    columns, rows = (np.clip(one / depth, -2, max(height, width) + 1) for one in (columns, rows))
    padded = np.pad(rgb.astype(np.float64), ((1, 1), (1, 1), (0, 0)))
    left, right, dx = _neighbors(columns + 1.5, width + 2)
    above, below, dy = _neighbors(rows + 1.5, height + 2)
    found = np.empty((window.height, window.width, 3), np.uint8)
    for channel in range(3):
        plane = padded[..., channel]
        over = _mixed(plane[above, left], plane[above, right], dx)
        under = _mixed(plane[below, left], plane[below, right], dx)
        found[..., channel] = np.rint(_mixed(over, under, dy))
    return found


def _stretched(rgb: U8, columns: F64, rows: F64) -> U8:
    """Do the same for axes that stay: row by row, then column by column."""
    height, width = rgb.shape[:2]
    left, right, dx = _neighbors(columns, width)
    above, below, dy = _neighbors(rows, height)
    first = int(above.min())
    used = rgb[first : int(below.max()) + 1].astype(np.float64)
    flat = _mixed(used[:, left], used[:, right], dx[:, None])
    found = _mixed(flat[above - first], flat[below - first], dy[:, None, None]).astype(np.uint8)
    found[:, (columns < 0) | (columns >= width)] = 0
    found[(rows < 0) | (rows >= height)] = 0
    return found


def _neighbors(at: F64, size: int) -> tuple[Whole, Whole, F64]:
    """Return the pixels before and behind a place, and how far it is from the first one's middle.

    Both are brought into the image.
    """
    at = at - 0.5
    low = np.floor(at)
    whole = low.astype(np.intp)
    return np.clip(whole, 0, size - 1), np.clip(whole + 1, 0, size - 1), at - low


def _mixed(one: F64, other: F64, share: F64) -> F64:
    """Return values between two; where they are equal, exactly that."""
    return np.asarray(one + (other - one) * share)
