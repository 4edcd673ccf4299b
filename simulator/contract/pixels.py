"""The pixel stages. The base classes do all checks; a backend implements the ``_`` methods."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar, TypeVar, final

import numpy as np

from simulator.contract.backend import Implementation
from simulator.contract.encoded import Encoded
from simulator.contract.frame import (
    U8,
    Array,
    Frame,
    Matrix,
    PixelFormat,
    Range,
    check_planes,
    rgb_frame,
    yuv_frame,
)
from simulator.contract.raw import Raw
from simulator.errors import SampleError, Unsupported

T = TypeVar("T")


class Decoder(Implementation):
    """Decodes a file to pixels.

    All decoders of JPEG and PNG follow the same rules: gray is repeated to three channels, alpha is
    dropped, 16-bit samples are cut or rounded to 8 bits, and a truncated file is refused before any
    library sees it. In other formats alpha and floats are what the library makes of them. A decoder
    refuses what its library cannot do (CMYK, the planes of a PNG).

    Args:
        options: the checked fields of the profile's ``decode`` section.

    Attributes:
        reads: the formats that it reads, as :attr:`simulator.contract.Encoded.format` names them.
        turns: the one value of ``exif`` that the library amounts to in a format, where it has no
            other: it turns every such file upright (``apply``), or none (``ignore``).
        gives_planes: whether `planes` works: the library returns a JPEG's own YUV.
        gives_raw: whether it gives a raw plane, which a section ``develop`` makes RGB of.
        drops_odd: whether the last row and column of an odd size are lost, as on Ascend DVPP.
    """

    reads: ClassVar[tuple[str, ...]] = ("jpeg", "png")
    turns: ClassVar[Mapping[str, str]] = {}
    gives_planes: ClassVar[bool] = False
    gives_raw: ClassVar[bool] = False
    drops_odd: ClassVar[bool] = False

    @final
    def rgb(self, image: Encoded) -> Frame:
        """Decode to RGB with the library's own color conversion.

        Returns:
            An RGB frame, (H, W, 3) uint8, C-contiguous.

        Raises:
            SampleError: the library cannot decode this file; the message gives its reason.
        """
        array = self._guard(self._rgb, image)
        return self._checked(image, rgb_frame(np.ascontiguousarray(array)))

    @final
    def planes(self, image: Encoded) -> Frame:
        """Decode to the file's own YUV planes, without going through RGB.

        Returns:
            A YUV frame of uint8 planes.

        Raises:
            SampleError: this file has no YUV planes (PNG, CMYK), or cannot be decoded.
            Unsupported: the library does not return YUV planes.
        """
        if image.format != "jpeg" or image.channels not in (1, 3):
            raise SampleError(
                f"a {image.format} of {image.channels} channels has no YUV planes, only a "
                "JPEG has; write color.source: encode"
            )
        return self._checked(image, self._guard(self._planes, image))

    @final
    def raw(self, image: Encoded) -> Raw:
        """Return the raw plane of a file, as it lies in it.

        Raises:
            SampleError: the library cannot read this file.
        """
        raw = self._guard(self._raw, image)
        if raw.plane.shape != image.size("ignore") or raw.plane.dtype != np.uint16:
            got = f"{raw.plane.dtype} {raw.plane.shape}"
            raise SampleError(f"{type(self).__name__} gave {got}, not {image.size('ignore')}")
        return raw

    @abstractmethod
    def _rgb(self, image: Encoded) -> U8:
        """Return (H, W, 3) uint8 in R, G, B order."""

    def _raw(self, image: Encoded) -> Raw:
        raise Unsupported(f"{type(self).__name__} gives no raw planes")

    def _planes(self, image: Encoded) -> Frame:
        raise Unsupported(f"{type(self).__name__} does not give YUV planes")

    def _guard(self, decode: Callable[[Encoded], T], image: Encoded) -> T:
        self._refuse(image)
        return self._ask(decode, image)

    def _refuse(self, image: Encoded) -> None:
        who, format = type(self).__name__.removesuffix("Decoder"), image.format
        if format not in self.reads:
            raise SampleError(f"{who} reads {', '.join(self.reads)}, not {format}")
        asked = self.options["exif"]
        if image.orientation != 1 and self.turns.get(format, asked) != asked:
            able = self.turns[format]
            does = "turns every" if able == "apply" else "never turns a"
            raise SampleError(f"{who} {does} {format} upright; write decode.exif: {able}")

    def _checked(self, image: Encoded, frame: Frame) -> Frame:
        problem = check_planes(frame)
        wanted = image.size(self.options["exif"])
        if self.drops_odd:
            wanted = (wanted[0] & ~1, wanted[1] & ~1)
        if problem is None and (frame.height, frame.width) != wanted:
            problem = f"decoded to {(frame.height, frame.width)}, the header says {wanted}"
        if problem:
            raise SampleError(f"{type(self).__name__}: {problem}")
        return frame


class RawDecoder(Decoder):
    """Reads raw planes, which a section ``develop`` makes RGB of; a plane is never turned."""

    gives_raw: ClassVar[bool] = True

    @abstractmethod
    def _raw(self, image: Encoded) -> Raw:
        """Return the plane as it lies in the file."""

    def _rgb(self, image: Encoded) -> U8:
        raise Unsupported(f"{type(self).__name__} gives raw planes; write a section develop")


@dataclass(frozen=True, slots=True)
class Asked:
    """The size that one scale for both sides was to reach, before anything was rounded.

    Attributes:
        rows: of the result.
        columns: likewise.
        cover: the result is at least that large (DALI's ``not_smaller``), else at most.
    """

    rows: int
    columns: int
    cover: bool


class Resizer(Implementation):
    """Resamples planes of 1, 2 or 3 channels.

    Args:
        options: the checked fields of the profile's ``resize`` section.

    Attributes:
        gives: ``uint8``, or ``float32`` for a library that does not round its result.
    """

    gives: ClassVar[type[np.uint8] | type[np.float32]] = np.uint8

    @final
    def resize(self, plane: U8, height: int, width: int, asked: Asked | None = None) -> Array:
        """Resample one plane.

        Args:
            plane: (H, W) or (H, W, C) uint8 with C of 2 or 3.
            height: rows of the result, at least 1.
            width: columns of the result, at least 1.
            asked: what the geometry asked for, where it scales both sides alike.

        Returns:
            (height, width) or (height, width, C) of dtype ``gives``; the input itself if
            it already has that size, as in every library that we know.
        """
        if plane.dtype != np.uint8 or plane.ndim not in (2, 3):
            raise ValueError(f"a plane is uint8 (H, W[, C]), got {plane.dtype} {plane.shape}")
        if height < 1 or width < 1:
            raise SampleError(f"cannot resize to {height}x{width} pixels")
        if plane.shape[:2] == (height, width):
            return plane
        out = self._resize_asked(plane, height, width, asked)
        wanted = (height, width, *plane.shape[2:])
        if out.shape != wanted or out.dtype != self.gives:
            raise SampleError(f"{type(self).__name__} gave {out.dtype} {out.shape}, not {wanted}")
        return out

    @final
    def frame(self, frame: Frame, height: int, width: int, asked: Asked | None = None) -> Frame:
        """Resample every plane of a frame; chroma planes to their subsampled size."""
        v, h = frame.format.subsampling
        small = (-(-height // v), -(-width // h))
        less = asked and Asked(-(-asked.rows // v), -(-asked.columns // h), asked.cover)
        luma = self.resize(frame.planes[0], height, width, asked=asked)
        return frame.with_planes(
            luma, *(self.resize(p, *small, asked=less) for p in frame.planes[1:])
        )

    @abstractmethod
    def _resize(self, plane: U8, height: int, width: int) -> Array:
        """Return the resampled plane, with the same number of dimensions."""

    def _resize_asked(self, plane: U8, height: int, width: int, asked: Asked | None) -> Array:
        """Likewise; for a library that keeps the exact scale where the size was rounded."""
        return self._resize(plane, height, width)


class Encoder(Implementation):
    """Converts RGB to YUV, to emulate a camera or a hardware decoder.

    Args:
        options: ``format`` and the checked fields of the profile's ``color.encode`` section.
    """

    @final
    def encode(self, frame: Frame) -> Frame:
        """Convert an RGB frame to the YUV layout that the profile asks for."""
        out = self._encode(frame.rgb)
        problem = check_planes(out)
        if problem or (out.height, out.width) != (frame.height, frame.width):
            raise SampleError(f"{type(self).__name__}: {problem or 'the size changed'}")
        return out

    @abstractmethod
    def _encode(self, rgb: U8) -> Frame:
        """Return a YUV frame of the same size."""


class Converter(Implementation):
    """Converts YUV to RGB.

    The assumed matrix and range come from the profile and may be wrong for the frame. The
    simulator exists to show such mismatches, among others.

    Args:
        options: ``format`` and the checked fields of the profile's ``color.convert`` section.
    """

    @property
    @abstractmethod
    def assumes(self) -> tuple[Matrix, Range]:
        """Return the matrix and range that the arithmetic assumes for every frame."""

    @final
    def convert(self, frame: Frame) -> Frame:
        """Convert a YUV frame to RGB of the same size."""
        if frame.format is PixelFormat.RGB:
            raise ValueError("an RGB frame needs no conversion")
        rgb = self._convert(frame)
        if rgb.shape != (frame.height, frame.width, 3) or rgb.dtype != np.uint8:
            raise SampleError(f"{type(self).__name__} gave {rgb.dtype} {rgb.shape}")
        return rgb_frame(rgb)

    @abstractmethod
    def _convert(self, frame: Frame) -> U8:
        """Return (H, W, 3) uint8 in R, G, B order."""


def even(frame: Frame, odd_size: str) -> Frame:
    """Give a frame the even size that 4:2:0 hardware requires.

    Args:
        frame: any frame.
        odd_size: ``drop`` the last row and column (Ascend DVPP's default,
            ACL_YUVOUT_ALIGN_DOWN_COMPAT), or ``keep`` them (libjpeg: the last chroma sample
            covers the remaining pixels).

    Raises:
        SampleError: ``drop`` would leave nothing of a frame one pixel wide or high.
    """
    if odd_size == "keep":
        return frame
    height, width = frame.height & ~1, frame.width & ~1
    if not height or not width:
        raise SampleError(f"{frame.height}x{frame.width} pixels: odd_size: drop leaves nothing")
    if (height, width) == (frame.height, frame.width):
        return frame
    v, h = frame.format.subsampling
    small = (slice(-(-height // v)), slice(-(-width // h)))
    luma = frame.planes[0][:height, :width]
    return frame.with_planes(luma, *(plane[small] for plane in frame.planes[1:]))


def subsample(frame: Frame, format: PixelFormat, chroma_downsampling: str) -> Frame:
    """Convert a YUV frame to another layout; reduce its chroma if *format* has less of it.

    Args:
        frame: any YUV frame.
        format: the new YUV layout, with at most as much chroma as the frame has.
        chroma_downsampling: ``average`` of the covered samples (rounded half up), or ``nearest``:
            the top left one (co-sited).

    Raises:
        SampleError: the frame has less chroma than *format* holds.
    """
    v0, h0 = frame.format.subsampling
    v, h = format.subsampling
    if v % v0 or h % h0:
        raise SampleError(f"{frame.format} planes cannot become {format}: they have less chroma")
    step = (v // v0, h // h0)
    u, w = (_reduce(plane, step, chroma_downsampling) for plane in frame.chroma)
    assert frame.matrix is not None and frame.range is not None
    return yuv_frame(format, frame.planes[0], u, w, frame.matrix, frame.range)


def _reduce(plane: U8, step: tuple[int, int], how: str) -> U8:
    v, h = step
    if step == (1, 1):
        return plane
    if how == "nearest":
        return plane[::v, ::h]
    pad = (-plane.shape[0] % v, -plane.shape[1] % h)
    full = np.pad(plane, ((0, pad[0]), (0, pad[1])), mode="edge")
    total = np.full((full.shape[0] // v, full.shape[1] // h), v * h // 2, np.uint16)
    for row in range(v):
        for column in range(h):
            total += full[row::v, column::h]
    return (total // (v * h)).astype(np.uint8)
