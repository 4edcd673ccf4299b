"""Where each pixel of a resized map comes from, in exact fractions of a pixel."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from simulator.contract import Array
from simulator.modalities.image.geometry import Placement
from simulator.tasks.segmentation.card import Sampling, Settings

Indices = NDArray[np.int64]


class Line(NamedTuple):
    """Pixel i is at ``start + slope * i`` in another map, whose first pixel is at 0."""

    slope: Fraction
    start: Fraction

    def at(self, position: Fraction | int) -> Fraction:
        """Return where a position is."""
        return self.start + self.slope * position

    def then(self, beyond: Line) -> Line:
        """Return where the pixels are in the map that the other map was made from."""
        return Line(beyond.slope * self.slope, beyond.at(self.start))


class Taps(NamedTuple):
    """Which pixels of the source each new pixel is made of, along one side.

    Attributes:
        low: (n,) the source pixel at or before each place; for nearest, the source pixel itself.
        high: (n,) the source pixel after it; None for nearest.
        share: (n,) float32 in [0, 1], the weight of ``high``; None for nearest.
    """

    low: Indices
    high: Indices | None = None
    share: NDArray[np.float32] | None = None

    def identity(self, size: int) -> bool:
        """Whether a side of *size* pixels does not change."""
        still = self.share is None or not self.share.any()
        return still and np.array_equal(self.low, np.arange(size))


def line(count: int, size: Fraction | int, coordinates: str) -> Line:
    """Return where the pixels of a side are when *size* pixels are resized to *count*.

    Source:
        ONNX operator Resize, ``coordinate_transformation_mode``.
    """
    if coordinates == "align_corners":
        return Line(max(Fraction(size) - 1, Fraction(0)) / max(count - 1, 1), Fraction(0))
    slope = Fraction(size) / count
    return Line(slope, (slope - 1) / 2 if coordinates == "half_pixel" else Fraction(0))


def resized(count: int, size: int, sampling: Sampling) -> Taps:
    """Return the taps of a side when *size* pixels are resized to *count*."""
    whole = Fraction(0), Fraction(size - 1)
    return _taps(line(count, size, sampling.coordinates), count, size, whole, sampling)


def resize(plane: Array, rows: Taps, columns: Taps) -> Array:
    """Pick or interpolate the columns of a map, then its rows.

    Args:
        plane: (h, w) of any dtype; float32 where values are interpolated.
        rows: what each new row is made of.
        columns: what each new column is made of.

    Returns:
        (H, W) of the same dtype; the map itself where nothing changes.
    """
    if not columns.identity(plane.shape[1]):
        plane = _along(plane, columns, 1)
    return plane if rows.identity(plane.shape[0]) else _along(plane, rows, 0)


def in_image(
    placement: Placement, settings: Settings
) -> tuple[tuple[Taps, NDArray[np.bool_]], tuple[Taps, NDArray[np.bool_]]]:
    """Return the pixels of the mask that the image's rows and columns are made of.

    As if the image's part of the mask were cut out of its padding and resized alone. Its start and
    its size need not be whole pixels: see :class:`Unletterbox`.

    Returns:
        For each side its taps, and (n,) which pixels the network saw: all, unless it was cropped.
    """
    p, s = placement, settings
    height, width = p.scales(s.scale)
    top, left = p.start(s.padding)
    return (
        _side(p.height, p.height * height, top, p.network_height, s.size[0], s.resize),
        _side(p.width, p.width * width, left, p.network_width, s.size[1], s.resize),
    )


def _along(plane: Array, taps: Taps, axis: int) -> Array:
    found: Array = plane.take(taps.low, axis)
    if taps.high is None or taps.share is None:
        return found
    share = taps.share if axis else taps.share[:, None]
    found *= 1 - share
    beyond = plane.take(taps.high, axis)
    beyond *= share
    found += beyond
    return found


def _side(
    count: int, extent: Fraction, start: Fraction, network: int, size: int, sampling: Sampling
) -> tuple[Taps, NDArray[np.bool_]]:
    """One side: *count* pixels of the image are *extent* of the network's, from *start* on."""
    placed = line(count, extent, sampling.coordinates)
    placed = Line(placed.slope, placed.start + start)
    beyond = line(network, size, sampling.coordinates)
    first = min(max(beyond.at(start), Fraction(0)), Fraction(size - 1))
    last = min(max(beyond.at(start + extent - 1), first), Fraction(size - 1))
    found = _taps(placed.then(beyond), count, size, (first, last), sampling)
    if start >= 0:
        return found, np.ones(count, np.bool_)
    own = _nearest(*_positions(placed, count, ()), sampling)
    return found, (own >= 0) & (own < network)


def _taps(
    where: Line, count: int, size: int, bounds: tuple[Fraction, Fraction], sampling: Sampling
) -> Taps:
    """Places outside of the bounds are moved to the nearest bound."""
    places, unit = _positions(where, count, bounds)
    low, high = (int(bound * unit) for bound in bounds)
    places = np.clip(places, low, high)
    if sampling.mode == "nearest":
        return Taps(_nearest(places, unit, sampling))
    before = places // unit
    share = ((places - before * unit) / unit).astype(np.float32)
    return Taps(before, np.minimum(before + 1, size - 1), share)


def _positions(where: Line, count: int, others: tuple[Fraction, ...]) -> tuple[Indices, int]:
    """Where *count* pixels lie, in units of a pixel's fraction that fits *others* as well."""
    unit = math.lcm(*(value.denominator for value in (*where, *others)))
    slope, start = (int(value * unit) for value in where)
    return np.arange(count, dtype=np.int64) * slope + start, unit


def _nearest(places: Indices, unit: int, sampling: Sampling) -> Indices:
    """The nearest pixel.

    In ONNX's words it is ``round_prefer_ceil`` of a half_pixel place (Pillow, TensorFlow 2,
    PyTorch's ``nearest-exact``; ONNX's default differs where two pixels are equally near) and of
    an align_corners place (TensorFlow 1), and ``floor`` of an asymmetric one (OpenCV,
    TensorFlow 1, PyTorch's ``nearest``).
    """
    if sampling.coordinates == "asymmetric":
        return places // unit
    found: Indices = (2 * places + unit) // (2 * unit)
    return found
