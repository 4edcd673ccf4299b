"""AVIF and HEIC: one picture of a HEIF file, with the turns that the container asks for.

Source:
    ISO/IEC 23008-12 6.5 (``ispe``, ``irot``, ``imir``), 8.11 of 14496-12 (``pitm``), AVIF 1.1.
"""

from __future__ import annotations

import struct

from simulator.contract.image_formats import Header, ImageFormat
from simulator.contract.image_formats.boxes import boxes
from simulator.errors import SampleError

_AVIF = frozenset({b"avif", b"avis"})
_HEIC = frozenset({b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx"})
_TURNS = {
    None: (1, 8, 3, 6),
    0: (4, 5, 2, 7),
    1: (2, 7, 4, 5),
}
"""EXIF's orientation, by the axis of the mirror and the quarters of a turn to the left before."""

Box = tuple[int, int]
"""Where the content of a box begins and ends."""


def _header(data: bytes) -> Header:
    top = {kind: (at, end) for kind, at, end in boxes(data)}
    if b"meta" not in top:
        raise SampleError("the file has no picture: no box 'meta'")
    meta = _inside(data, top[b"meta"], 4)
    if not {b"pitm", b"iprp"} <= meta.keys():
        raise SampleError("the file has no picture: no box 'pitm' or 'iprp'")
    if b"mdat" not in top and b"idat" not in meta:
        raise SampleError("the file is truncated: its pixels are missing")
    at = meta[b"pitm"][0]
    wide = data[at] > 0
    item = struct.unpack_from(">I" if wide else ">H", data, at + 4)[0]
    known = _inside(data, meta[b"iprp"], 0)
    if not {b"ipco", b"ipma"} <= known.keys():
        raise SampleError("the file has no picture: no box 'ipco' or 'ipma'")
    every = list(boxes(data, *known[b"ipco"]))
    numbers = _properties(data, known[b"ipma"][0], item)
    own = {every[n - 1][0]: every[n - 1][1] for n in numbers if 0 < n <= len(every)}
    if b"ispe" not in own:
        raise SampleError("the file does not say the size of its picture")
    width, height = struct.unpack_from(">II", data, own[b"ispe"] + 4)
    if b"clap" in own:
        across, over, down, under = struct.unpack_from(">4I", data, own[b"clap"])
        width, height = across // max(over, 1), down // max(under, 1)
    turns = data[own[b"irot"]] & 3 if b"irot" in own else 0
    axis = data[own[b"imir"]] & 1 if b"imir" in own else None
    channels, bits = 3, 8
    if b"pixi" in own:
        channels, bits = data[own[b"pixi"] + 4], data[own[b"pixi"] + 5]
    return Header(width, height, channels, bits, _TURNS[axis][turns])


def _inside(data: bytes, box: Box, skip: int) -> dict[bytes, Box]:
    return {kind: (at, end) for kind, at, end in boxes(data, box[0] + skip, box[1])}


def _properties(data: bytes, at: int, item: int) -> list[int]:
    """The numbers, from 1, of the properties of an item."""
    version, large = data[at], data[at + 3] & 1
    (count,) = struct.unpack_from(">I", data, at + 4)
    at += 8
    for _ in range(count):
        number = struct.unpack_from(">I" if version else ">H", data, at)[0]
        at += 4 if version else 2
        size = data[at]
        code = f">{size}{'H' if large else 'B'}"
        found = struct.unpack_from(code, data, at + 1)
        at += 1 + struct.calcsize(code)
        if number == item:
            return [index & (0x7FFF if large else 0x7F) for index in found]
    return []


def _brands(data: bytes) -> frozenset[bytes]:
    if data[4:8] != b"ftyp":
        return frozenset()
    end = min(int.from_bytes(data[:4], "big"), 512)
    return frozenset(data[at : at + 4] for at in (8, *range(16, end - 3, 4)))


AVIF = ImageFormat("avif", (".avif",), lambda data: bool(_brands(data) & _AVIF), _header)
HEIC = ImageFormat(
    "heic",
    (".heic", ".heif"),
    lambda data: bool(_brands(data) & _HEIC) and not _brands(data) & _AVIF,
    _header,
)
