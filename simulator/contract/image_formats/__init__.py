"""Formats of image files: how a file is known, and its header, read without any library.

Each is one file and one entry point in ``simulator.image_formats``.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass

from simulator.contract.frame import U8
from simulator.entry_points import Table
from simulator.places import Where


@dataclass(frozen=True, slots=True)
class Header:
    """What a file says of its picture before it is decoded.

    Attributes:
        width: columns in the file, before any turn.
        height: rows in the file, before any turn.
        channels: components in the file: 1 gray, 2 gray + alpha, 3, 4 CMYK or RGBA; 3 where only a
            decoder knows.
        bits: bits per component; 8 where only a decoder knows.
        orientation: how it is to be turned, 1 to 8 as in EXIF; 1 where the file does not say.
    """

    width: int
    height: int
    channels: int = 3
    bits: int = 8
    orientation: int = 1


@dataclass(frozen=True, slots=True)
class ImageFormat:
    """One format of image files.

    Attributes:
        name: the name of its entry point: what decoders say they read.
        suffixes: how the names of its files end, in lower case with the dot.
        is_one: whether a file is of this format, by its first bytes.
        header: reads the header of a whole file. A SampleError says what is wrong with it; an
            IndexError or struct.error, that it ends too early.
        example: writes a picture, (H, W, 3) uint8, without loss, for the conformance suite: of a
            raw plane, of two by two such pictures. None: the suite has a file of the format.
        completed: returns the bytes of a file with what lies beside it, given where the file is.
    """

    name: str
    suffixes: tuple[str, ...]
    is_one: Callable[[bytes], bool]
    header: Callable[[bytes], Header]
    example: Callable[[U8], bytes] | None = None
    completed: Callable[[Where, bytes], bytes] | None = None


IMAGE_FORMATS: Table[ImageFormat] = Table(
    "simulator.image_formats", "image format", lambda one: isinstance(one, ImageFormat)
)
"""Every format by name."""


def suffixes() -> tuple[str, ...]:
    """Return the file name suffixes of all formats."""
    return tuple(sorted(suffix for one in IMAGE_FORMATS for suffix in one.suffixes))


def format_of(data: bytes) -> ImageFormat | None:
    """Return the format of a file, by its first bytes; None where no format knows it."""
    return next((one for one in IMAGE_FORMATS if one.is_one(data)), None)


def exif_orientation(exif: bytes) -> int:
    """Return EXIF tag 0x0112 of the first directory; 1 if it is missing or malformed.

    Source:
        EXIF 2.32 4.6.4; TIFF 6.0 section 2.
    """
    order = {b"II": "<", b"MM": ">"}.get(exif[:2])
    if order is None or len(exif) < 8:
        return 1
    start = struct.unpack_from(order + "I", exif, 4)[0]
    if start + 2 > len(exif):
        return 1
    count = struct.unpack_from(order + "H", exif, start)[0]
    for entry in range(start + 2, min(start + 2 + 12 * count, len(exif) - 11), 12):
        tag, kind, _, value = struct.unpack_from(order + "HHIH", exif, entry)
        if tag == 0x0112 and kind == 3:
            return value if 1 <= value <= 8 else 1
    return 1
