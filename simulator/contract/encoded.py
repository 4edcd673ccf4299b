"""An image file in memory, with the values of its header."""

from __future__ import annotations

import struct
from dataclasses import dataclass

from simulator.contract import png
from simulator.errors import SampleError
from simulator.files import IMAGE
from simulator.places import Where, read_sample

SUFFIXES = (".jpg", ".jpeg", ".png")
"""The file name suffixes of the formats that `inspect` reads."""
MAX_PIXELS = 178_956_970
"""Larger images are refused as decompression bombs (Pillow's limit: twice its warning)."""

_SOF = frozenset({0xC0, 0xC1, 0xC2, 0xC3, 0xC5, 0xC6, 0xC7, 0xC9, 0xCA, 0xCB, 0xCD, 0xCE, 0xCF})
_STANDALONE = frozenset({0x01, *range(0xD0, 0xD9)})
_PNG_CHANNELS = {0: 1, 2: 3, 3: 3, 4: 2, 6: 4}


@dataclass(frozen=True, slots=True)
class Encoded:
    """The bytes of one JPEG or PNG file whose header has been checked.

    Attributes:
        name: the name used in messages; usually the path below the data folder.
        data: the file's bytes.
        format: ``jpeg`` or ``png``.
        width: columns in the file, before any EXIF rotation.
        height: rows in the file, before any EXIF rotation.
        channels: components in the file: 1 gray, 2 gray + alpha, 3, 4 CMYK (JPEG) or RGBA (PNG).
        bits: bits per component.
        orientation: EXIF orientation 1-8; 1 if the file has none.
    """

    name: str
    data: bytes
    format: str
    width: int
    height: int
    channels: int
    bits: int
    orientation: int

    def size(self, exif: str) -> tuple[int, int]:
        """(height, width) of the decoded image under ``exif: apply`` or ``exif: ignore``."""
        if exif == "apply" and self.orientation >= 5:
            return self.width, self.height
        return self.height, self.width


def read_image(name: str, path: Where) -> Encoded:
    """Read one image file and check its header.

    Args:
        name: what messages call the file.
        path: where its bytes are.

    Raises:
        SampleError: it cannot be read, or :func:`inspect` refuses it.
    """
    return inspect(name, read_sample(path, IMAGE))


def inspect(name: str, data: bytes) -> Encoded:
    """Read the header of an image file, without any library.

    Args:
        name: the name used in messages.
        data: the whole file.

    Raises:
        SampleError: the file is empty, not a JPEG or PNG, truncated, corrupt, or a
            decompression bomb.

    Source:
        ITU-T T.81 Annex B (JPEG markers), PNG specification 5.2-5.6, EXIF 2.32 4.6.4.
    """
    if not data:
        raise SampleError("the file is empty")
    try:
        if data[:2] == b"\xff\xd8":
            image = _jpeg(name, data)
        elif data[:8] == png.SIGNATURE:
            image = _png(name, data)
        else:
            raise SampleError("neither a JPEG nor a PNG file")
    except (IndexError, struct.error) as error:
        raise SampleError("the header ends too early; the file is truncated") from error
    if image.width < 1 or image.height < 1:
        raise SampleError(f"the header says {image.width}x{image.height} pixels")
    if image.width * image.height > MAX_PIXELS:
        raise SampleError(
            f"{image.width}x{image.height} pixels are more than {MAX_PIXELS:,}: refused as a "
            "decompression bomb"
        )
    return image


def _jpeg(name: str, data: bytes) -> Encoded:
    at, orientation, frame = 2, 1, None
    while True:
        if data[at] != 0xFF:
            raise SampleError(f"corrupt JPEG: no marker at byte {at}")
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
            orientation = _orientation(data[at + 8 : at + length])
        elif marker == 0xDA:
            break
        at += length
    if frame is None:
        raise SampleError("the JPEG has no frame header")
    if data.rfind(b"\xff\xd9", at) < 0:
        raise SampleError("the JPEG is truncated: no end-of-image marker")
    bits, height, width, channels = frame
    return Encoded(name, data, "jpeg", width, height, channels, bits, orientation)


def _orientation(tiff: bytes) -> int:
    """EXIF tag 0x0112 in the first directory; 1 if it is missing or malformed."""
    order = {b"II": "<", b"MM": ">"}.get(tiff[:2])
    if order is None or len(tiff) < 8:
        return 1
    start = struct.unpack_from(order + "I", tiff, 4)[0]
    if start + 2 > len(tiff):
        return 1
    count = struct.unpack_from(order + "H", tiff, start)[0]
    for entry in range(start + 2, min(start + 2 + 12 * count, len(tiff) - 11), 12):
        tag, kind, _, value = struct.unpack_from(order + "HHIH", tiff, entry)
        if tag == 0x0112 and kind == 3:
            return value if 1 <= value <= 8 else 1
    return 1


def _png(name: str, data: bytes) -> Encoded:
    width, height, bits, color = struct.unpack_from(">IIBB", data, 16)
    if data[12:16] != b"IHDR" or color not in _PNG_CHANNELS:
        raise SampleError("corrupt PNG: no valid IHDR chunk")
    orientation = _orientation(png.check(data, width, height))
    return Encoded(name, data, "png", width, height, _PNG_CHANNELS[color], bits, orientation)
