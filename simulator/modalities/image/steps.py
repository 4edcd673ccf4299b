"""The steps from the bytes of an image file to the network's input, as recipes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from simulator.contract import (
    Array,
    Converter,
    Decoder,
    Encoded,
    Encoder,
    Frame,
    PixelFormat,
    Resizer,
    even,
    rgb_frame,
    subsample,
)
from simulator.contract.recipe import Apply, Boundary, Recipe, Runtimes
from simulator.contract.video import VideoReader
from simulator.errors import SampleError
from simulator.modalities.image.geometry import Geometry
from simulator.modalities.image.sections import Arithmetic
from simulator.profile.implementations import Choice


class OfPixels(Recipe):
    """A step that makes an image of about the file's size."""

    def memory(self, source: Encoded) -> int:
        """Return three bytes a pixel of the file."""
        return 3 * source.width * source.height


@dataclass(frozen=True, eq=False)
class Decode(OfPixels):
    """Decodes a file to pixels.

    Attributes:
        choice: the decoder.
        planes: take the file's own YUV planes instead of RGB.
        video: what decodes the clip, where the sample is a frame of one; None: the frame is a file
            like any other.
    """

    choice: Choice
    planes: bool
    video: Choice | None = None
    stage = "decode"
    gives: ClassVar[Boundary] = Boundary.FRAME

    def open(self, runtimes: Runtimes) -> Apply:
        """Return the decoder's method, or for a frame of a clip that of what decodes clips."""
        decoder: Decoder = self.choice.make()
        method: Callable[[Encoded], Any] = decoder.planes if self.planes else decoder.rgb
        if decoder.gives_raw:
            method = decoder.raw
        decode = runtimes.guarded(self.choice, method)
        if self.video is None:
            return lambda image, _: decode(image)
        reader: VideoReader = self.video.make()
        frame = reader.planes if self.planes else reader.rgb
        return lambda image, _: decode(image) if image.moment is None else frame(image)


@dataclass(frozen=True, eq=False)
class ToYuv(OfPixels):
    """Converts RGB to YUV, to emulate a camera or a hardware decoder.

    Attributes:
        choice: the encoder.
        odd_size: ``drop`` or ``keep`` an odd last row and column.
    """

    choice: Choice
    odd_size: str
    stage = "color"
    operation = "encode"

    def open(self, runtimes: Runtimes) -> Apply:
        """Return a function that cuts to an even size, if asked for, and encodes."""
        encoder: Encoder = self.choice.make()
        return lambda frame, _: encoder.encode(even(frame, self.odd_size))


@dataclass(frozen=True, eq=False)
class Subsample(OfPixels):
    """Converts the file's own planes to the stack's YUV format.

    Attributes:
        format: the stack's pixel format.
        chroma_downsampling: how chroma is reduced.
        odd_size: ``drop`` or ``keep`` an odd last row and column.
    """

    format: str
    chroma_downsampling: str
    odd_size: str
    stage = "color"
    operation = "subsample"

    def open(self, runtimes: Runtimes) -> Apply:
        """Return a function of our own; no library is involved."""
        format, how = PixelFormat(self.format), self.chroma_downsampling
        return lambda frame, _: even(subsample(frame, format, how), self.odd_size)


@dataclass(frozen=True, eq=False)
class ToRgb(OfPixels):
    """Converts YUV to RGB.

    Attributes:
        choice: the converter.
    """

    choice: Choice
    stage = "color"
    operation = "convert"

    def open(self, runtimes: Runtimes) -> Apply:
        """Return the converter's method."""
        converter: Converter = self.choice.make()
        return lambda frame, _: converter.convert(frame)


@dataclass(frozen=True, eq=False)
class Crop(OfPixels):
    """Crops an RGB frame before it is resized.

    Attributes:
        geometry: gives the rows and columns to cut off.
    """

    geometry: Geometry
    stage = "geometry"
    operation = "crop"

    def open(self, runtimes: Runtimes) -> Apply:
        """Return a function of our own; no library is involved."""
        return lambda frame, _: self._cropped(frame)

    def words(self) -> str:
        """Return the crop's part of the image and its rounding."""
        crop = self.geometry.crop_before_resize
        assert crop is not None
        part = "the network's ratio of sides" if crop.fraction is None else f"{crop.fraction:g}"
        return f"crop before the resize: {part}, {crop.rounding}"

    def _cropped(self, frame: Frame) -> Frame:
        cut = self.geometry.cut(frame.height, frame.width)
        rows = slice(cut.top, frame.height - cut.bottom)
        columns = slice(cut.left, frame.width - cut.right)
        return rgb_frame(np.ascontiguousarray(frame.rgb[rows, columns]))


@dataclass(frozen=True, eq=False)
class Resize(Recipe):
    """Resizes a frame.

    Attributes:
        choice: the resizer.
        geometry: gives the target size.
        odd_size: ``drop`` makes the target size even where chroma is subsampled.
    """

    choice: Choice
    geometry: Geometry
    odd_size: str | None
    stage = "resize"

    def open(self, runtimes: Runtimes) -> Apply:
        """Return a function that resizes to the size that the geometry gives."""
        resizer: Resizer = self.choice.make()
        return lambda frame, _: self._resample(resizer, frame)

    def memory(self, source: Encoded) -> int:
        """Return three bytes a pixel of the result."""
        with suppress(SampleError):  # too large; the step itself raises the error
            cut = self.geometry.cut(source.height, source.width)
            sides = source.height - cut.rows, source.width - cut.columns
            rows, columns = self.geometry.resized(*sides)
            return 3 * rows * columns
        return 0

    def _resample(self, resizer: Resizer, frame: Frame) -> Frame:
        drop = frame.format.subsampling != (1, 1) and self.odd_size == "drop"
        size = target(self.geometry, frame.height, frame.width, drop)
        return resizer.frame(frame, *size, asked=self.geometry.asked())


@dataclass(frozen=True, eq=False)
class Fit(Recipe):
    """Crops or pads a resized image to the network's size.

    Attributes:
        geometry: gives the position.
    """

    geometry: Geometry
    stage = "geometry"
    operation = "fit"

    def open(self, runtimes: Runtimes) -> Apply:
        """Return the geometry's method."""
        return lambda frame, _: self.geometry.fit(frame.rgb)

    def memory(self, source: Encoded) -> int:
        """Return what the network's input has in bytes and in float32, where images differ."""
        if self.geometry.network is None:
            with suppress(SampleError):  # too large; the step itself raises the error
                sides = self.geometry.resized(source.height, source.width)
                return 15 * math.prod(self.geometry.taken(*sides))
        return 0

    def words(self) -> str:
        """Return the geometry's kind and rounding."""
        return f"{self.geometry.kind} {self.geometry.rounding}"


@dataclass(frozen=True, eq=False)
class Normalize(Recipe):
    """Normalizes pixels to the network's input tensor; see :func:`normalize`.

    Attributes:
        mean: on 0-255, in the order of the tensor's channels.
        std: likewise.
        order: of the tensor's channels, ``rgb`` or ``bgr``.
        layout: of the tensor, ``NCHW`` or ``NHWC``.
        geometry: of an image that is padded here, with zeros; None where it is not.
        names: of the network's inputs, the image and its mask; none where there is no mask.
    """

    mean: tuple[float, ...]
    std: tuple[float, ...]
    arithmetic: Arithmetic
    order: str
    layout: str
    geometry: Geometry | None = None
    names: tuple[str, str] | None = None
    stage = "normalize"
    gives: ClassVar[Boundary] = Boundary.INPUT

    def open(self, runtimes: Runtimes) -> Apply:
        """Return a function of our own; no library is involved."""
        return lambda rgb, _: self._tensor(rgb)

    def _tensor(self, rgb: Array) -> Array | dict[str, Array]:
        pixels = rgb if self.order == "rgb" else rgb[..., ::-1]
        made = normalize(pixels, self.mean, self.std, self.arithmetic, self.layout)
        if self.geometry is None:
            return made
        at, back = ((2, 3), (-2, -1)) if self.layout == "NCHW" else ((1, 2), (-3, -2))
        rows_first = self.geometry.surround(np.moveaxis(made, at, (0, 1)))
        padded = np.ascontiguousarray(np.moveaxis(rows_first, (0, 1), back))
        if self.names is None:
            return padded
        mask = self.geometry.surround(np.ones(rgb.shape[:2], np.int64))[None]
        return dict(zip(self.names, (padded, mask), strict=True))


@dataclass(frozen=True, eq=False)
class Pixels(Recipe):
    """Feeds pixels as they are, to a network that takes uint8.

    Attributes:
        order: of the tensor's channels, ``rgb`` or ``bgr``.
        layout: of the tensor, ``NCHW`` or ``NHWC``.
    """

    order: str
    layout: str
    stage = "normalize"
    operation = "pixels"
    gives: ClassVar[Boundary] = Boundary.INPUT

    def open(self, runtimes: Runtimes) -> Apply:
        """Return a function that orders channels and axes."""
        return lambda rgb, _: self._tensor(rgb)

    def _tensor(self, rgb: Array) -> Array:
        pixels = rgb if self.order == "rgb" else rgb[..., ::-1]
        axes = pixels.transpose(2, 0, 1) if self.layout == "NCHW" else pixels
        return np.ascontiguousarray(axes)[None]


Form = tuple[str, str, str, int, tuple[float, ...], tuple[float, ...]]
"""Of an input: the order of its channels, layout, type, top, mean and std, as on a model card."""


@dataclass(frozen=True, eq=False)
class Refeed(Recipe):
    """Makes the input of one network of another's: back to pixels, and from there on.

    Attributes:
        given: how the input was made.
        wanted: how it is to be made; uint8 is rounded.
    """

    given: Form
    wanted: Form
    stage = "normalize"
    operation = "refeed"
    gives: ClassVar[Boundary | None] = None

    def open(self, runtimes: Runtimes) -> Apply:
        """Return a function in float64; no library is involved."""
        return lambda tensor, _: self._made(tensor)

    def _made(self, tensor: Array) -> Array:
        order, layout, _, top, mean, std = self.given
        rows = np.asarray(tensor[0], np.float64)
        rows = rows.transpose(1, 2, 0) if layout == "NCHW" else rows
        pixels = (rows * std + mean) * (255 / top)
        order_then, layout, dtype, top, mean, std = self.wanted
        pixels = pixels if order == order_then else pixels[..., ::-1]
        if dtype == "uint8":
            made = np.clip(np.rint(pixels), 0, 255)
        else:
            made = (pixels * (top / 255) - mean) / std
        made = made.transpose(2, 0, 1) if layout == "NCHW" else made
        return np.ascontiguousarray(made, dtype)[None]


def normalize(
    pixels: Array,
    mean: Sequence[float],
    std: Sequence[float],
    arithmetic: Arithmetic,
    layout: str,
) -> Array:
    """Turn pixels into the network's input, in float32 and in one of the orders of the world.

    Args:
        pixels: (H, W, 3) uint8 or float32 on 0-255, in the order of the tensor's channels.
        mean: of each channel, on 0-255.
        std: likewise.
        arithmetic: ``unit_divide`` as torchvision's ToTensor and Normalize; ``divide`` as
            Transformers' fast processors; ``multiply`` as DALI's crop_mirror_normalize and OpenCV's
            blobFromImage; ``multiply_add``; ``fused_multiply_add`` as OpenVINO on a CPU.
        layout: ``NCHW`` or ``NHWC``.

    Returns:
        (1, 3, H, W) or (1, H, W, 3) float32, C-contiguous.
    """
    first = layout == "NCHW"
    x: Array = np.array(pixels.transpose(2, 0, 1) if first else pixels, np.float32, order="C")
    unit = 255 if arithmetic == "unit_divide" else 1
    m, s = (_channels(tuple(one), unit, first) for one in (mean, std))
    if unit != 1:
        x /= np.float32(unit)
    if arithmetic == "fused_multiply_add":
        x = np.asarray(x.astype(np.float64) * (1 / s) + (-m / s), np.float32)
    elif arithmetic == "multiply_add":
        x *= 1 / s
        x += -m / s
    else:
        x -= m
        x = x * (1 / s) if arithmetic == "multiply" else np.divide(x, s, out=x)
    return x[None]


@lru_cache(maxsize=64)
def _channels(values: tuple[float, ...], unit: int, first: bool) -> Array:
    """One number a channel, divided by *unit*, in float32 and in the shape of the layout."""
    shape = (3, 1, 1) if first else (3,)
    return (np.asarray(values, np.float64) / unit).astype(np.float32).reshape(shape)


def target(geometry: Geometry, height: int, width: int, even: bool) -> tuple[int, int]:
    """Return (rows, columns) to which an image is resized; rounded down to even if *even*."""
    rows, columns = geometry.resized(height, width)
    return (rows & ~1, columns & ~1) if even else (rows, columns)
