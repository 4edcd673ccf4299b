"""The chunks of a PNG file: checked before a library sees them, and written without one.

OpenCV 5, DALI 2.4 and nvImageCodec die of animations whose frames lack their data or their head,
and of chunks that libpng rejects; a file is refused where its structure is not that of the
specification. What a decoder skips (texts, times, private chunks) is not looked into.
"""

from __future__ import annotations

import re
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from simulator.contract.image_formats import Header, ImageFormat, exif_orientation
from simulator.errors import SampleError

SIGNATURE = b"\x89PNG\r\n\x1a\n"
_TYPE = re.compile(rb"[A-Za-z]{2}[A-Z][A-Za-z]")
_CRITICAL = (b"IHDR", b"PLTE", b"IDAT", b"IEND")
_LONGEST = 2**31 - 1
_PALETTE = 768
_FRAME = 26
"""Bytes of the head of a frame."""
_CHANNELS = {0: 1, 2: 3, 3: 3, 4: 2, 6: 4}


@dataclass(frozen=True, slots=True)
class Chunk:
    """One chunk: where it begins, its type and its content."""

    at: int
    kind: bytes
    content: memoryview


def chunks(data: bytes) -> Iterator[Chunk]:
    """Yield the chunks of a PNG file up to its IEND, whose lengths, types and checksums are right.

    Raises:
        SampleError: one of them is not, or the file ends before.

    Source:
        PNG specification, third edition, 5.3 to 5.6.
    """
    at, kind, whole = len(SIGNATURE), b"", memoryview(data)
    while kind != b"IEND":
        try:
            length, kind = struct.unpack_from(">I4s", data, at)
            end = at + 8 + length
            (checksum,) = struct.unpack_from(">I", data, end)
        except struct.error as error:
            raise SampleError("the PNG is truncated: no IEND chunk") from error
        if length > _LONGEST or not _TYPE.fullmatch(kind):
            raise SampleError(f"corrupt PNG: no chunk at byte {at}")
        if kind[:1].isupper() and kind not in _CRITICAL:
            raise SampleError(
                f"corrupt PNG: an unknown critical chunk {kind.decode()} at byte {at}"
            )
        if zlib.crc32(whole[at + 4 : end]) != checksum:
            raise SampleError(f"corrupt PNG: wrong checksum in the chunk at byte {at}")
        yield Chunk(at, kind, whole[at + 8 : end])
        at = end + 4


def chunk(kind: bytes, content: bytes) -> bytes:
    """Return a chunk with its length and checksum."""
    body = kind + content
    return struct.pack(">I", len(content)) + body + struct.pack(">I", zlib.crc32(body))


def written(samples: NDArray[np.uint8] | NDArray[np.uint16], compression: int = -1) -> bytes:
    """Return a PNG of (H, W) gray, or (H, W, C) with C of 2 (alpha), 3 or 4; 8 or 16 bits.

    Args:
        samples: the pixels.
        compression: zlib's, 0 (none) to 9; -1 for its own choice.
    """
    height, width = samples.shape[:2]
    kind = {1: 0, 2: 4, 3: 2, 4: 6}[samples.shape[2] if samples.ndim == 3 else 1]
    content = np.ascontiguousarray(samples, samples.dtype.newbyteorder(">")).view(np.uint8)
    content = content.reshape(height, -1)
    rows = np.zeros((height, 1 + content.shape[1]), np.uint8)
    rows[:, 1:] = content
    header = struct.pack(">IIBBBBB", width, height, 8 * samples.itemsize, kind, 0, 0, 0)
    parts = (
        (b"IHDR", header),
        (b"IDAT", zlib.compress(rows.tobytes(), compression)),
        (b"IEND", b""),
    )
    return SIGNATURE + b"".join(chunk(*part) for part in parts)


def _header(data: bytes) -> Header:
    width, height, bits, color = struct.unpack_from(">IIBB", data, 16)
    if data[12:16] != b"IHDR" or color not in _CHANNELS:
        raise SampleError("corrupt PNG: no valid IHDR chunk")
    orientation = exif_orientation(check(data, width, height))
    return Header(width, height, _CHANNELS[color], bits, orientation)


def check(data: bytes, width: int, height: int) -> bytes:
    """Check the order of a PNG's chunks, and return its eXIf chunk, or empty bytes.

    Args:
        data: the file.
        width: of the image, in pixels.
        height: likewise.

    Raises:
        SampleError: a chunk is damaged, missing, repeated or in the wrong place.
    """
    before, exif, animation = b"", b"", _Animation(width, height)
    seen: set[bytes] = set()
    for chunk in chunks(data):
        if problem := _misplaced(chunk, before, seen) or animation.problem(chunk):
            raise SampleError(f"corrupt PNG: {problem} at byte {chunk.at}")
        if chunk.kind == b"eXIf":
            if exif or bytes(chunk.content[:2]) not in (b"II", b"MM"):
                raise SampleError("corrupt PNG: its eXIf chunk is repeated or is not EXIF")
            exif = bytes(chunk.content)
        before = chunk.kind
        seen.add(chunk.kind)
    return exif


def _misplaced(chunk: Chunk, before: bytes, seen: set[bytes]) -> str:
    """What is wrong with where a chunk stands or how long it is; empty: nothing."""
    kind, length = chunk.kind, len(chunk.content)
    if (kind == b"IHDR") != (not seen) or (kind == b"IHDR" and length != 13):
        return "no valid IHDR chunk, or a second one"
    if kind == b"PLTE" and ({b"PLTE", b"IDAT"} & seen or length % 3 or not 0 < length <= _PALETTE):
        return "a PLTE chunk that is repeated, too late or no palette"
    if kind == b"IDAT" and b"IDAT" in seen and before != b"IDAT":
        return "IDAT chunks that are apart"
    if kind == b"IEND" and (length or b"IDAT" not in seen):
        return "an IEND chunk with content, or before the pixels,"
    return ""


class _Animation:
    """The chunks of an APNG, in their order; of a still image, that there are none.

    Source:
        PNG specification, third edition, 11.3.6.
    """

    def __init__(self, width: int, height: int) -> None:
        self._size = width, height
        self._promised: int | None = None
        self._frames = self._number = 0
        self._filled = True
        self._pixels = False

    def problem(self, chunk: Chunk) -> str:
        """Return what is wrong with the next chunk of the file; empty: nothing."""
        if chunk.kind == b"acTL":
            return self._begins(chunk.content)
        if chunk.kind == b"fcTL":
            return self._frame(chunk.content)
        if chunk.kind == b"fdAT":
            return self._data(chunk.content)
        if chunk.kind == b"IDAT":
            self._pixels = self._filled = True
        lacks = self._frames != self._promised or not self._filled
        if chunk.kind == b"IEND" and self._promised is not None and lacks:
            return f"an animation of {self._promised} frames that lacks some"
        return ""

    def _begins(self, content: memoryview) -> str:
        if self._promised is not None or self._pixels or len(content) != 8:
            return "an acTL chunk that is repeated, too late or damaged"
        (self._promised,) = struct.unpack_from(">I", content)
        return ""

    def _frame(self, content: memoryview) -> str:
        if self._promised is None or not self._filled or len(content) != _FRAME:
            return "a frame without an animation, or before the data of the last frame,"
        number, width, height, left, top = struct.unpack_from(">5I", content)
        inside = left + width <= self._size[0] and top + height <= self._size[1]
        whole = (width, height, left, top) == (*self._size, 0, 0)
        if not self._next(number) or not (width and height and inside):
            return "a frame that is out of order, empty or larger than the image"
        if not self._pixels and (self._frames or not whole):
            return "a frame before the pixels that is not the whole image"
        self._frames += 1
        self._filled = False
        return ""

    def _data(self, content: memoryview) -> str:
        fits = self._frames and self._pixels and len(content) > 4
        if not fits or not self._next(*struct.unpack_from(">I", content)):
            return "data of a frame that is out of order, empty or of no frame"
        self._filled = True
        return ""

    def _next(self, number: int) -> bool:
        self._number += 1
        return number == self._number - 1


FORMAT = ImageFormat("png", (".png",), lambda data: data[:8] == SIGNATURE, _header)
