"""GIF; of an animation the first frame counts.

Source:
    CompuServe, GIF89a specification, sections 18 to 27.
"""

from __future__ import annotations

import struct

from simulator.contract.image_formats import Header, ImageFormat
from simulator.errors import SampleError

_EXTENSION, _IMAGE, _END = 0x21, 0x2C, 0x3B
_MOST = 2**28


def _header(data: bytes) -> Header:
    width, height, flags = struct.unpack_from("<HHB", data, 6)
    at, pictures = 13 + _colors(flags), 0
    while data[at] != _END:
        kind = data[at]
        if kind == _IMAGE:
            pictures += 1
            left, top, wide, tall = struct.unpack_from("<4H", data, at + 1)
            if (left + wide) * (top + tall) > _MOST:  # what a decoder may hold, whatever its screen
                raise SampleError(
                    f"a frame ends at {left + wide}x{top + tall}: a decompression bomb"
                )
            at += 11 + _colors(data[at + 9])
        elif kind == _EXTENSION:
            at += 2
        else:
            raise SampleError(f"corrupt GIF: no block at byte {at}")
        while data[at]:
            at += 1 + data[at]
        at += 1
    if not pictures:
        raise SampleError("the GIF has no picture")
    return Header(width, height)


def _colors(flags: int) -> int:
    """Bytes of a color table."""
    return 3 << (flags & 7) + 1 if flags & 0x80 else 0


FORMAT = ImageFormat("gif", (".gif",), lambda data: data[:6] in (b"GIF87a", b"GIF89a"), _header)
