"""TIFF; of several pages the first counts.

Source:
    TIFF 6.0, sections 2, 7 and 8; BigTIFF: www.awaresystems.be/imaging/tiff/bigtiff.html.
"""

from __future__ import annotations

import struct

from simulator.contract.image_formats import Header, ImageFormat
from simulator.errors import SampleError

_KINDS = {1: "B", 3: "H", 4: "I", 16: "Q"}
_WIDTH, _HEIGHT, _BITS, _ORIENTATION, _CHANNELS = 256, 257, 258, 274, 277
_WHERE, _LENGTHS = (273, 324), (279, 325)
"""Of strips, and of tiles."""
_BIG = (b"+\0", b"\0+")
"""BigTIFF's version: its offsets have eight bytes."""

Tags = dict[int, tuple[int, ...]]


def directory(data: bytes, start: int | None = None) -> Tags:
    """Return the whole numbers of a directory's tags; of the first one, unless another is named."""
    order = "<" if data[:2] == b"II" else ">"
    big = data[2:4] in _BIG
    entries, word, size = ("Q", "Q", 20) if big else ("H", "I", 12)
    head, wide = struct.calcsize("=" + entries), struct.calcsize("=" + word)
    if start is None:
        start = struct.unpack_from(order + word, data, wide)[0]
    if start > len(data):
        raise SampleError("the TIFF is truncated")
    count = struct.unpack_from(order + entries, data, start)[0]
    tags: Tags = {}
    for entry in range(start + head, start + head + size * count, size):
        tag, kind, number = struct.unpack_from(order + "HH" + word, data, entry)
        if kind not in _KINDS:
            continue
        code, value = f"{order}{number}{_KINDS[kind]}", entry + size - wide
        inside = struct.calcsize(code) <= wide
        at = value if inside else struct.unpack_from(order + word, data, value)[0]
        if at + struct.calcsize(code) > len(data):
            raise SampleError("the TIFF is truncated")
        tags[tag] = struct.unpack_from(code, data, at)
    return tags


def is_tiff(data: bytes) -> bool:
    """Return whether a file is a TIFF, by its first bytes."""
    return data[:2] in (b"II", b"MM") and data[2:4] in (b"*\0", b"\0*", *_BIG)


def _header(data: bytes) -> Header:
    return header_of(data, directory(data))


def header_of(data: bytes, tags: Tags) -> Header:
    """Return the header of the image of a directory, whose samples are there."""
    places = next((tags[tag] for tag in _WHERE if tag in tags), ())
    lengths = next((tags[tag] for tag in _LENGTHS if tag in tags), ())
    if not places or any(at + n > len(data) for at, n in zip(places, lengths, strict=False)):
        raise SampleError("the TIFF is truncated: its pixels are missing")
    first = {tag: values[0] for tag, values in tags.items() if values}
    turn = first.get(_ORIENTATION, 1)
    return Header(
        first.get(_WIDTH, 0),
        first.get(_HEIGHT, 0),
        first.get(_CHANNELS, 1),
        first.get(_BITS, 1),
        turn if 1 <= turn <= 8 else 1,
    )


FORMAT = ImageFormat("tiff", (".tif", ".tiff"), is_tiff, _header)
