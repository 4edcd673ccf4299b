"""Decoded images: planes of pixels, with their layout, matrix and range."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

U8 = NDArray[np.uint8]
Array = NDArray[Any]


class PixelFormat(StrEnum):
    """How the samples of an image are arranged in planes."""

    RGB = "rgb"
    NV12 = "nv12"
    NV21 = "nv21"
    I420 = "i420"
    YUV411 = "yuv411"
    YUV422 = "yuv422"
    YUV440 = "yuv440"
    YUV444 = "yuv444"

    @property
    def subsampling(self) -> tuple[int, int]:
        """Luma samples per chroma sample: (vertical, horizontal)."""
        return _SUBSAMPLING[self]

    @property
    def semiplanar(self) -> bool:
        """Whether both chroma components share one interleaved plane."""
        return self in (PixelFormat.NV12, PixelFormat.NV21)


_SUBSAMPLING = {
    PixelFormat.RGB: (1, 1),
    PixelFormat.NV12: (2, 2),
    PixelFormat.NV21: (2, 2),
    PixelFormat.I420: (2, 2),
    PixelFormat.YUV411: (1, 4),
    PixelFormat.YUV422: (1, 2),
    PixelFormat.YUV440: (2, 1),
    PixelFormat.YUV444: (1, 1),
}


class Matrix(StrEnum):
    """The luma coefficients that relate RGB and YUV (ITU-R BT.601, BT.709)."""

    BT601 = "bt601"
    BT709 = "bt709"


class Range(StrEnum):
    """Full: 0-255 for all samples (JFIF). Limited: Y 16-235, U and V 16-240."""

    FULL = "full"
    LIMITED = "limited"


@dataclass(frozen=True, slots=True)
class Frame:
    """One image in memory.

    Attributes:
        format: the layout of ``planes``.
        planes: uint8 arrays. RGB: one (H, W, 3). NV12 / NV21: (H, W) and
            (ceil(H/2), ceil(W/2), 2) in order U, V / V, U. Planar YUV: (H, W) and two
            chroma planes of ceil(size / subsampling).
        matrix: the matrix by which the samples were computed from RGB; None for RGB.
        range: the range of the samples; None for RGB.
    """

    format: PixelFormat
    planes: tuple[U8, ...]
    matrix: Matrix | None = None
    range: Range | None = None

    @property
    def height(self) -> int:
        """Rows of the image, in luma samples."""
        return int(self.planes[0].shape[0])

    @property
    def width(self) -> int:
        """Columns of the image, in luma samples."""
        return int(self.planes[0].shape[1])

    @property
    def rgb(self) -> U8:
        """The (H, W, 3) array of an RGB frame."""
        if self.format is not PixelFormat.RGB:
            raise ValueError(f"a {self.format} frame has no RGB array; convert it first")
        return self.planes[0]

    @property
    def chroma(self) -> tuple[U8, U8]:
        """The U and V planes of a YUV frame, each (h, w); views where possible."""
        if self.format is PixelFormat.NV12:
            return self.planes[1][..., 0], self.planes[1][..., 1]
        if self.format is PixelFormat.NV21:
            return self.planes[1][..., 1], self.planes[1][..., 0]
        return self.planes[1], self.planes[2]

    def with_planes(self, *planes: U8) -> Frame:
        """Return a frame of the same format, matrix and range with other samples."""
        return Frame(self.format, planes, self.matrix, self.range)


def rgb_frame(array: U8) -> Frame:
    """Wrap an (H, W, 3) uint8 array in R, G, B order."""
    return Frame(PixelFormat.RGB, (array,))


def three_channels(samples: Array) -> Array:
    """Return (H, W, 3) of (H, W) or (H, W, C): gray three times, without alpha."""
    samples = samples if samples.ndim == 3 else samples[..., None]
    return samples[..., :3] if samples.shape[2] >= 3 else np.repeat(samples[..., :1], 3, axis=2)


def yuv_frame(format: PixelFormat, y: U8, u: U8, v: U8, matrix: Matrix, range: Range) -> Frame:
    """Arrange Y, U and V planes in the layout of *format*.

    Args:
        format: any YUV format; its subsampling must be that of the chroma planes.
        y: (H, W) uint8.
        u: (h, w) uint8.
        v: (h, w) uint8.
        matrix: the matrix by which the samples were computed.
        range: the range of the samples.
    """
    if format.semiplanar:
        order = (u, v) if format is PixelFormat.NV12 else (v, u)
        return Frame(format, (y, np.stack(order, axis=-1)), matrix, range)
    return Frame(format, (y, u, v), matrix, range)


def check_planes(frame: Frame) -> str | None:
    """Return what is wrong with a frame's planes; None if they are valid."""
    for plane in frame.planes:
        if plane.dtype != np.uint8:
            return f"a plane is {plane.dtype}, not uint8"
    h, w = frame.planes[0].shape[:2]
    v, c = frame.format.subsampling
    small = (-(-h // v), -(-w // c))
    if frame.format is PixelFormat.RGB:
        wanted: tuple[tuple[int, ...], ...] = ((h, w, 3),)
    elif frame.format.semiplanar:
        wanted = ((h, w), (*small, 2))
    else:
        wanted = ((h, w), small, small)
    got = tuple(plane.shape for plane in frame.planes)
    if got != wanted:
        return f"{frame.format} planes of {wanted} expected, got {got}"
    if frame.format is not PixelFormat.RGB and (frame.matrix is None or frame.range is None):
        return f"a {frame.format} frame must say its matrix and range"
    return None
