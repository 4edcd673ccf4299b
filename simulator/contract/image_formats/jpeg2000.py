"""JPEG 2000: a codestream, alone or in boxes.

Source:
    ITU-T T.800, annexes A (codestream) and I (boxes).
"""

from __future__ import annotations

import struct

from simulator.contract.image_formats import Header, ImageFormat
from simulator.contract.image_formats.boxes import boxes
from simulator.errors import SampleError

_BOXED = b"\0\0\0\x0cjP  \r\n\x87\n"
_STREAM = b"\xff\x4f\xff\x51"


def _header(data: bytes) -> Header:
    at = 0
    if data[:12] == _BOXED:
        at = next((start for kind, start, _ in boxes(data) if kind == b"jp2c"), -1)
    if at < 0 or data[at : at + 4] != _STREAM:
        raise SampleError("the JPEG 2000 has no codestream")
    if data.rfind(b"\xff\xd9", at) < 0:
        raise SampleError("the JPEG 2000 is truncated: no end of codestream")
    right, bottom, left, top = struct.unpack_from(">4I", data, at + 8)
    channels, depth = struct.unpack_from(">HB", data, at + 40)
    return Header(right - left, bottom - top, channels, (depth & 0x7F) + 1)


FORMAT = ImageFormat(
    "jpeg2000",
    (".jp2", ".j2k"),
    lambda data: data[:12] == _BOXED or data[:4] == _STREAM,
    _header,
)
