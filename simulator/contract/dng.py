"""DNG: a raw plane as a file that LibRaw and others open, written uncompressed.

Source:
    Adobe, "Digital Negative (DNG) Specification", version 1.4.0.0, chapter 4; TIFF 6.0, section 2.
"""

from __future__ import annotations

import struct

import numpy as np

from simulator.contract.raw import Raw

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
