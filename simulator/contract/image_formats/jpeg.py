"""JPEG.

Source:
    ITU-T T.81 Annex B (markers).
"""

from __future__ import annotations

import struct

from simulator.contract.image_formats import Header, ImageFormat, exif_orientation
from simulator.errors import SampleError

_SOF = frozenset({0xC0, 0xC1, 0xC2, 0xC3, 0xC5, 0xC6, 0xC7, 0xC9, 0xCA, 0xCB, 0xCD, 0xCE, 0xCF})
_STANDALONE = frozenset({0x00, 0x01, *range(0xD0, 0xD9)})


def _header(data: bytes) -> Header:
    at, orientation, frame = 2, 1, None
    while True:
        while data[at] != 0xFF:  # libjpeg skips what is between markers, too
            at += 1
        while data[at] == 0xFF:
            at += 1
        marker = data[at]
        at += 1
        if marker in _STANDALONE:
            continue
        if marker == 0xD9:
            raise SampleError("the JPEG has no image data")
        length = struct.unpack_from(">H", data, at)[0]
        if marker in _SOF:
            frame = struct.unpack_from(">BHHB", data, at + 2)
        elif marker == 0xE1 and data[at + 2 : at + 8] == b"Exif\0\0":
            orientation = exif_orientation(data[at + 8 : at + length])
        elif marker == 0xDA:
            break
        at += length
    if frame is None:
        raise SampleError("the JPEG has no frame header")
    if data.rfind(b"\xff\xd9", at) < 0:
        raise SampleError("the JPEG is truncated: no end-of-image marker")
    bits, height, width, channels = frame
    return Header(width, height, channels, bits, orientation)


FORMAT = ImageFormat("jpeg", (".jpg", ".jpeg"), lambda data: data[:2] == b"\xff\xd8", _header)
