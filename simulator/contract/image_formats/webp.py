"""WebP; of an animation the first frame counts.

Source:
    RFC 9649, sections 2.3 to 2.7 (container), 3.4 (lossless); RFC 6386 9.1 (lossy).
"""

from __future__ import annotations

import struct

from simulator.contract.image_formats import Header, ImageFormat, exif_orientation
from simulator.errors import SampleError


def _header(data: bytes) -> Header:
    end = 8 + struct.unpack_from("<I", data, 4)[0]
    if end > len(data):
        raise SampleError("the WebP is truncated")
    at, size, orientation = 12, None, 1
    alpha = pixels = False
    while at + 8 <= end:
        kind, length = struct.unpack_from("<4sI", data, at)
        at += 8
        if at + length > end:
            raise SampleError("corrupt WebP: a chunk that is longer than the file")
        if kind == b"VP8X":
            alpha = bool(data[at] & 0x10)
            low, high, wide, tall = struct.unpack_from("<HBHB", data, at + 4)
            size = (high << 16 | low) + 1, (tall << 16 | wide) + 1
        elif kind == b"EXIF":
            exif = data[at : at + length]
            orientation = exif_orientation(exif.removeprefix(b"Exif\0\0"))
        elif kind in (b"VP8 ", b"VP8L"):
            size = size or (_lossy(data, at) if kind == b"VP8 " else _lossless(data, at))
        pixels = pixels or kind in (b"VP8 ", b"VP8L", b"ANMF")
        at += length + (length & 1)
    if size is None or not pixels:
        raise SampleError("the WebP has no picture")
    return Header(*size, 4 if alpha else 3, orientation=orientation)


def _lossy(data: bytes, at: int) -> tuple[int, int]:
    if data[at + 3 : at + 6] != b"\x9d\x01\x2a":
        raise SampleError("corrupt WebP: no key frame")
    width, height = struct.unpack_from("<HH", data, at + 6)
    return width & 0x3FFF, height & 0x3FFF


def _lossless(data: bytes, at: int) -> tuple[int, int]:
    mark, packed = struct.unpack_from("<BI", data, at)
    if mark != 0x2F:
        raise SampleError("corrupt WebP: no lossless signature")
    return (packed & 0x3FFF) + 1, (packed >> 14 & 0x3FFF) + 1


FORMAT = ImageFormat(
    "webp",
    (".webp",),
    lambda data: data[:4] == b"RIFF" and data[8:12] == b"WEBP",
    _header,
)
