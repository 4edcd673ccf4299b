"""Pixels of another color space, taken for RGB: HSV and CIE L*a*b*, as libraries store bytes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from simulator.contract import Array
from simulator.diagnose.curve import LIGHT
from simulator.diagnose.levels import pixels_of

_NEAR = 3.0
"""Levels that are left where tables and integers made the bytes, of nearly all pixels."""
_NEARLY = 0.98


def hsv(rgb: Array, turn: float) -> Array:
    """Return hue, of *turn* levels for 360 degrees, saturation and value of (N, 3) levels."""
    top, low = rgb.max(axis=1), rgb.min(axis=1)
    span = np.maximum(top - low, 1e-9)
    r, g, b = rgb.T
    sector = np.select([top == r, top == g], [(g - b) / span, 2 + (b - r) / span],
                       4 + (r - g) / span)  # fmt: skip
    hue = np.where(top == low, 0, sector / 6 % 1 * turn)
    return np.column_stack([hue, 255 * (top - low) / np.maximum(top, 1e-9), top])


def lab(rgb: Array) -> Array:
    """Return L* of 0-100 as 0-255, and a* and b* with 128 added, of sRGB levels (white: D65)."""
    linear = next(iter(LIGHT.values()))(rgb / 255)
    xyz = linear @ _XYZ.T / _XYZ.sum(axis=1)
    f = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    lightness = np.where(xyz[:, 1] > 0.008856, 116 * f[:, 1] - 16, 903.3 * xyz[:, 1])
    return np.column_stack(
        [lightness * 2.55, 500 * (f[:, 0] - f[:, 1]) + 128, 200 * (f[:, 1] - f[:, 2]) + 128]
    )


_XYZ = np.array([
    [0.412453, 0.357580, 0.180423], [0.212671, 0.715160, 0.072169], [0.019334, 0.119193, 0.950227],
])  # fmt: skip
"""Rec. ITU-R BT.709 primaries to CIE XYZ, as in OpenCV's documentation of cvtColor."""
SPACES: Mapping[str, Callable[[Array], Array]] = {
    "HSV (hue of 180 levels)": lambda rgb: hsv(rgb, 180),
    "HSV (hue of 255 levels)": lambda rgb: hsv(rgb, 255),
    "L*a*b*": lab,
}


def named(right: Sequence[Array], levels: Sequence[Array]) -> tuple[str, float] | None:
    """Return the color space whose bytes were taken for RGB, and the levels that most pixels miss.

    Args:
        right: pixels of the training, each (3, H, W) on 0-255, in the order R, G, B.
        levels: of the deployment, likewise.
    """
    x, y = (one[::7] for one in pixels_of(right, levels))
    for name, made in SPACES.items():
        for step, also in ((1, ""), (-1, ", of BGR")):
            far = np.abs(made(x[:, ::step]) - y).max(axis=1)
            if far.size and float(np.quantile(far, _NEARLY)) < _NEAR:
                return f"{name} taken for RGB{also}", float(np.quantile(far, _NEARLY))
    return None
