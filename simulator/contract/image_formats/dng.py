"""DNG: raw planes as files that LibRaw and others open; written uncompressed.

Source:
    Adobe, "Digital Negative (DNG) Specification", version 1.4.0.0, chapter 4; TIFF 6.0, section 2.
"""

from __future__ import annotations

import struct

import numpy as np
from numpy.typing import NDArray

from simulator.contract.image_formats import Header, ImageFormat
from simulator.contract.image_formats.tiff import Tags, directory, header_of, is_tiff
from simulator.contract.raw import IDENTITY, Raw, mosaic
from simulator.errors import SampleError

XYZ = ((0.4124564, 0.3575761, 0.1804375), (0.2126729, 0.7151522, 0.0721750),
       (0.0193339, 0.1191920, 0.9503041))  # fmt: skip
"""Rows X, Y, Z over linear sRGB (IEC 61966-2-1)."""
_BYTE, _ASCII, _SHORT, _LONG, _RATIONAL, _SRATIONAL = 1, 2, 3, 4, 5, 10
_CODE = {_BYTE: "B", _ASCII: "B", _SHORT: "H", _LONG: "I", _RATIONAL: "I", _SRATIONAL: "i"}
_UNIT = 1_000_000


def written(raw: Raw) -> bytes:
    """Return a DNG with a raw plane, its levels, neutral, and the matrix of a D65 illuminant."""
    height, width = raw.plane.shape
    matrix = np.linalg.inv(np.array(raw.color_matrix)) @ np.linalg.inv(np.array(XYZ))
    neutral = [raw.gains[1] / gain for gain in raw.gains]
    samples = raw.plane.astype("<u2").tobytes()
    tags: dict[int, tuple[int, list[int] | bytes]] = {
        254: (_LONG, [0]), 256: (_LONG, [width]), 257: (_LONG, [height]), 258: (_SHORT, [16]),
        259: (_SHORT, [1]), 262: (_SHORT, [32803]), 271: (_ASCII, b"simulate\0"),
        272: (_ASCII, b"sensor\0"), 273: (_LONG, [8]), 274: (_SHORT, [1]), 277: (_SHORT, [1]),
        278: (_LONG, [height]), 279: (_LONG, [len(samples)]), 284: (_SHORT, [1]),
        33421: (_SHORT, [2, 2]), 33422: (_BYTE, ["RGB".index(color) for color in raw.pattern]),
        50706: (_BYTE, [1, 4, 0, 0]), 50707: (_BYTE, [1, 1, 0, 0]),
        50708: (_ASCII, b"simulate sensor\0"), 50714: (_LONG, [raw.black]),
        50717: (_LONG, [raw.white]), 50721: (_SRATIONAL, _fractions(matrix.ravel())),
        50728: (_RATIONAL, _fractions(neutral)), 50778: (_SHORT, [21]),
    }  # fmt: skip
    return _file(samples + bytes(len(samples) % 2), tags)


def _fractions(values: object) -> list[int]:
    return [part for value in np.asarray(values) for part in (round(value * _UNIT), _UNIT)]


def _file(samples: bytes, tags: dict[int, tuple[int, list[int] | bytes]]) -> bytes:
    """A TIFF of one directory: header, samples, directory, and what is longer than four bytes."""
    directory = 8 + len(samples)
    at, table, rest = directory + 2 + 12 * len(tags) + 4, b"", b""
    for tag, (kind, values) in sorted(tags.items()):
        body = struct.pack(f"<{len(values)}{_CODE[kind]}", *values)
        count = len(values) // (2 if kind in (_RATIONAL, _SRATIONAL) else 1)
        place = body.ljust(4, b"\0")
        if len(body) > 4:
            place, rest = struct.pack("<I", at + len(rest)), rest + body + bytes(len(body) % 2)
        table += struct.pack("<HHI", tag, kind, count) + place
    head = struct.pack("<2sHI", b"II", 42, directory)
    return head + samples + struct.pack("<H", len(tags)) + table + bytes(4) + rest


def _is_dng(data: bytes) -> bool:
    try:
        return is_tiff(data) and 50706 in directory(data)
    except (SampleError, struct.error):
        return False


def _header(data: bytes) -> Header:
    """The size of the plane's active area, and how the first directory turns it."""
    first = directory(data)
    found = [first, *(directory(data, start) for start in first.get(330, ()))]
    tags: Tags | None = next((one for one in found if one.get(262) == (32803,)), None)
    if tags is None:
        raise SampleError("a DNG without a Bayer plane")
    of = header_of(data, tags)
    top, left, bottom, right = tags.get(50829, (0, 0, of.height, of.width))
    turn = first.get(274, (1,))[0]
    return Header(right - left, bottom - top, 1, of.bits, turn if 1 <= turn <= 8 else 1)


def _example(rgb: NDArray[np.uint8]) -> bytes:
    plane = mosaic(np.tile(rgb, (2, 2, 1)), "RGGB").astype(np.uint16)
    return written(Raw(plane, "RGGB", 0, 255, (1.0, 1.0, 1.0), IDENTITY))


FORMAT = ImageFormat("dng", (".dng",), _is_dng, _header, _example)
