"""BMP.

Source:
    Microsoft, "Bitmap Storage"; BITMAPCOREHEADER and BITMAPINFOHEADER.
"""

from __future__ import annotations

import struct

from simulator.contract.image_formats import Header, ImageFormat
from simulator.errors import SampleError

_STORED = (0, 3)
"""BI_RGB and BI_BITFIELDS: rows as they are, each padded to four bytes."""


def _header(data: bytes) -> Header:
    start, size = struct.unpack_from("<II", data, 10)
    if size == 12:
        width, height, _, bits = struct.unpack_from("<HHHH", data, 18)
        packing = 0
    elif size >= 40:
        width, height, _, bits, packing = struct.unpack_from("<iiHHI", data, 18)
    else:
        raise SampleError(f"corrupt BMP: a header of {size} bytes")
    rows = abs(height)  # below zero: the first row is the top one
    if packing in _STORED and start + (width * bits + 31) // 32 * 4 * rows > len(data):
        raise SampleError("the BMP is truncated")
    return Header(width, rows, 4 if bits == 32 else 3)


FORMAT = ImageFormat("bmp", (".bmp",), lambda data: data[:2] == b"BM", _header)
