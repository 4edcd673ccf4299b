"""Brightness, saturation and contrast.

Source:
    https://github.com/hendrycks/robustness (ImageNet-C); scikit-image, ``color.rgb2hsv`` and
    ``color.hsv2rgb``, step by step.
"""

from __future__ import annotations

import numpy as np

from simulator.conditions.corruptions.corruption import corruption
from simulator.conditions.image_condition import F64, cut, unit
from simulator.contract import U8


@corruption(
    "more light: every pixel is brighter, its hue and saturation are kept",
    (0.1, 0.2, 0.3, 0.4, 0.5),
)
def brightness(rgb: U8, more: float, rng: np.random.Generator) -> U8:
    """Add to V of HSV; a level is how much, in [0, 1]."""
    return brightened(rgb, more)


@corruption(
    "paler (1, 2) or stronger (3 to 5) colors", ((0.3, 0), (0.1, 0), (2, 0), (5, 0.1), (20, 0.2))
)
def saturate(rgb: U8, level: tuple[float, float], rng: np.random.Generator) -> U8:
    """Multiply S of HSV and add to it; a level is both numbers."""
    hue, saturation, value = _hsv(rgb)
    factor, more = level
    saturation *= factor
    saturation += more
    return cut(_rgb(hue, np.minimum(saturation, 1, out=saturation), value))


@corruption("less contrast around the mean color", (0.4, 0.3, 0.2, 0.1, 0.05))
def contrast(rgb: U8, kept: float, rng: np.random.Generator) -> U8:
    """Pull each sample toward its channel's mean; a level is what is left of the distance."""
    image = unit(rgb)
    means = image.mean(axis=(0, 1), keepdims=True)
    image -= means
    image *= kept
    image += means
    return cut(image)


def brightened(rgb: U8, more: float) -> U8:
    """Add to V of HSV; *more* is in [-1, 1]."""
    hue, saturation, value = _hsv(rgb)
    value += more
    return cut(_rgb(hue, saturation, np.clip(value, 0, 1, out=value)))


def _hsv(rgb: U8) -> tuple[F64, F64, F64]:
    """Return hue, saturation and value, each (H, W) in [0, 1]."""
    red, green, blue = unit(np.ascontiguousarray(rgb.transpose(2, 0, 1)))
    value = np.maximum(np.maximum(red, green), blue)
    span = value - np.minimum(np.minimum(red, green), blue)
    gray = span == 0
    bluest = blue == value
    greenest = (green == value) & ~bluest
    hue = green - blue
    np.subtract(blue, red, out=hue, where=greenest)
    np.subtract(red, green, out=hue, where=bluest)
    np.divide(hue, span, out=hue, where=~gray)
    hue += bluest * 4.0 + greenest * 2.0
    hue /= 6.0
    hue += hue < 0
    hue[gray] = 0
    return hue, np.divide(span, value, out=np.zeros_like(span), where=~gray), value


def _rgb(hue: F64, saturation: F64, value: F64) -> F64:
    """Return (H, W, 3) in [0, 1]."""
    hue = hue * 6
    sector = hue.astype(np.int8)
    hue -= sector
    sector %= 6
    np.subtract(1, hue, out=hue, where=(sector & 1) == 0)
    middle = value * (1 - hue * saturation)
    least = value * (1 - saturation)
    of = {"v": value, "m": middle, "p": least}
    planes = [np.choose(sector, [of[one] for one in row]) for row in ("vmppmv", "mvvmpp", "ppmvvm")]
    return np.stack(planes, axis=-1)
