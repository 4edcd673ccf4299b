"""What a conversion of colors between the pixels of two stacks is called."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product

import numpy as np

from simulator.contract import Array, Matrix, Range
from simulator.diagnose.curve import LIGHT
from simulator.diagnose.levels import pixels_of
from simulator.reference.color import rgb_to_yuv, yuv_to_rgb

_TITLES = {Matrix.BT601: "BT.601", Matrix.BT709: "BT.709"}
_NEAR = 1.25
"""A matrix with a name may leave so many times what the free fit leaves, in levels rms."""
_SLACK = 0.35
"""And so many levels: two roundings to bytes."""
_MIXED = 0.03
"""By how much an entry of a matrix may miss one with a name."""


@dataclass(frozen=True, slots=True, eq=False)
class ColorSlip:
    """A conversion of colors in place of the right one.

    Attributes:
        name: what it is called.
        matrix: (3, 3): from the right levels of R, G and B to those that came out.
        offset: (3,) in levels.
        change: fields of a profile that undo it.
        code: the same in words.
    """

    name: str
    matrix: Array
    offset: Array
    change: dict[str, object] = field(default_factory=dict)
    code: str = ""


def slips() -> Iterator[ColorSlip]:
    """Yield conversions that are taken for others."""
    kinds = list(product(Matrix, Range))
    for right, wrong in product(kinds, kinds):
        if right == wrong:
            continue
        matrix, offset = _affine(lambda rgb, a=right, b=wrong: yuv_to_rgb(rgb_to_yuv(rgb, *a), *b))
        names = []
        if right[0] != wrong[0]:
            names.append(f"{_TITLES[wrong[0]]} for {_TITLES[right[0]]}")
        if right[1] != wrong[1]:
            names.append(f"{right[1]} range taken for {wrong[1]}")
        change: dict[str, object] = {
            "color.convert.matrix": str(right[0]), "color.convert.range": str(right[1]),
        }  # fmt: skip
        code = f"convert YUV to RGB as {_TITLES[right[0]]}, {right[1]} range"
        yield ColorSlip(" and ".join(names), matrix, offset, change, code)
    one, low, span = np.eye(3), 16 * np.ones(3), 219 / 255
    text = "scale the pixels once, from 16-235 to 0-255"
    yield ColorSlip("limited range taken for full", one * span, low, {}, text)
    yield ColorSlip("full range taken for limited", one / span, -low / span, {}, text)
    for kind in kinds:
        title = f"{_TITLES[kind[0]]}, {kind[1]} range"
        matrix, offset = _affine(lambda rgb, a=kind: rgb_to_yuv(rgb, *a))
        for name, order in (("YUV", [0, 1, 2]), ("YVU (YCrCb)", [0, 2, 1])):
            text, way = f"{name} taken for RGB ({title})", f"convert {name} to RGB"
            yield ColorSlip(text, matrix[order], offset[order], {}, way)
            text = f"{name} of swapped channels taken for RGB ({title})"
            yield ColorSlip(text, matrix[order][:, ::-1], offset[order], {}, way)
        gray = np.repeat(matrix[:1] * 255 / (219 if kind[1] == Range.LIMITED else 255), 3, axis=0)
        if kind[1] == Range.FULL:
            name = f"colors lost: gray ({_TITLES[kind[0]]})"
            yield ColorSlip(name, gray, np.zeros(3), {}, "read images in color")
            name = f"colors lost: gray ({_TITLES[kind[0]]}), of swapped channels"
            yield ColorSlip(name, gray[:, ::-1], np.zeros(3), {}, "read images in color")
        matrix, offset = _affine(
            lambda rgb, a=kind: yuv_to_rgb(rgb_to_yuv(rgb, *a)[..., [0, 2, 1]], *a)
        )
        text = f"U and V exchanged (NV21 taken for NV12; {title})"
        yield ColorSlip(text, matrix, offset, {}, "exchange the two planes of chroma")
    luma = np.array([0.299, 0.587, 0.114])
    analog = np.array([luma, 0.492 * (one[2] - luma), 0.877 * (one[0] - luma)])
    text = "YUV taken for RGB (analog scales of U and V, as OpenCV's COLOR_RGB2YUV)"
    yield ColorSlip(text, analog, np.array([0, 128, 128]), {}, "convert YUV to RGB")
    yield ColorSlip("colors lost: gray (mean of the channels)", np.full((3, 3), 1 / 3),
                    np.zeros(3), {}, "read images in color")  # fmt: skip


def _affine(convert: object) -> tuple[Array, Array]:
    """Return matrix and offset of an affine conversion of levels."""
    assert callable(convert)
    ends = np.asarray(convert(np.vstack([np.zeros(3), 255 * np.eye(3)])), np.float64)
    return (ends[1:] - ends[0]).T / 255, ends[0]


def named(right: Sequence[Array], levels: Sequence[Array]) -> tuple[ColorSlip, float] | None:
    """Return the conversion that explains levels, and the largest difference that it leaves.

    Args:
        right: pixels of the training, each (3, H, W) on 0-255, in the order R, G, B.
        levels: of the deployment, on the scale of the training's numbers.

    Returns:
        None where no conversion explains them as well as any matrix does.
    """
    x, y = pixels_of(right, levels)
    middle = ((y > 1) & (y < 254)).all(axis=1)
    if middle.sum() < 100:
        return None
    design = np.column_stack([x, np.ones(len(x))])
    free = np.linalg.lstsq(design[middle], y[middle], rcond=None)[0]
    floor = _root(y[middle] - design[middle] @ free)
    best: tuple[float, ColorSlip] | None = None
    for slip in slips():
        left = _root(y[middle] - (x[middle] @ slip.matrix.T + slip.offset))
        if best is None or left < best[0] - 1e-9:
            best = left, slip
    assert best is not None
    if best[0] > _NEAR * floor + _SLACK or best[0] >= 0.5 * _root((y - x)[middle]):
        return None
    made = x @ best[1].matrix.T + best[1].offset
    left = np.abs(np.clip(made, 0, 255) - np.clip(y, 0, 255))
    return best[1], float(left.max())


def saturation(matrix: Array) -> float | None:
    """Return by how much a matrix multiplies the colors' distance from gray; None: it does not."""
    gray = np.array([0.299, 0.587, 0.114])  # BT.601
    off = ~np.eye(3, dtype=bool)
    others = np.broadcast_to(gray, (3, 3))[off]
    kept = float((matrix[off] * others).sum() / (others * others).sum())
    if np.abs(matrix - (kept * gray + (1 - kept) * np.eye(3))).max() > _MIXED:
        return None
    return 1 - kept


def _root(values: Array) -> float:
    return float(np.sqrt((values * values).mean()))


_MISSED = 3.0
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


def space_named(right: Sequence[Array], levels: Sequence[Array]) -> tuple[str, float] | None:
    """Return the color space whose bytes were taken for RGB, and the levels that most pixels miss.

    Args:
        right: pixels of the training, each (3, H, W) on 0-255, in the order R, G, B.
        levels: of the deployment, likewise.
    """
    x, y = (one[::7] for one in pixels_of(right, levels))
    for name, made in SPACES.items():
        for step, also in ((1, ""), (-1, ", of BGR")):
            far = np.abs(made(x[:, ::step]) - y).max(axis=1)
            if far.size and float(np.quantile(far, _NEARLY)) < _MISSED:
                return f"{name} taken for RGB{also}", float(np.quantile(far, _NEARLY))
    return None
