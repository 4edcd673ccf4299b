"""An image file in memory, with the values of its header."""

from __future__ import annotations

import struct
from dataclasses import dataclass, replace

from simulator.contract.image_formats import IMAGE_FORMATS, format_of
from simulator.errors import SampleError
from simulator.files import IMAGE
from simulator.places import Moment, Where, moment_of, read_sample

MAX_PIXELS = 178_956_970
"""Larger images are refused as decompression bombs (Pillow's limit: twice its warning)."""


@dataclass(frozen=True, slots=True)
class Encoded:
    """The bytes of one image file whose header has been checked.

    Attributes:
        name: the name used in messages; usually the path below the data folder.
        data: the file's bytes.
        format: its name among :data:`simulator.contract.image_formats.IMAGE_FORMATS`.
        width: columns in the file, before it is turned.
        height: rows in the file, before it is turned.
        channels: components in the file: 1 gray, 2 gray + alpha, 3, 4 CMYK or RGBA.
        bits: bits per component.
        orientation: how it is to be turned, 1-8 as in EXIF: by EXIF, a TIFF by its own tag, AVIF
            and HEIC by their container; 1 if the file does not say.
        moment: the frame of a clip that it shows: a stack with a section ``video`` decodes that.
    """

    name: str
    data: bytes
    format: str
    width: int
    height: int
    channels: int
    bits: int
    orientation: int
    moment: Moment | None = None

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
    data = read_sample(path, IMAGE)
    for format in IMAGE_FORMATS:
        if format.completed and path.suffix.lower() in format.suffixes:
            data = format.completed(path, data)
    return replace(inspect(name, data), moment=moment_of(path))


def inspect(name: str, data: bytes) -> Encoded:
    """Read the header of an image file, without any library.

    Args:
        name: the name used in messages.
        data: the whole file.

    Raises:
        SampleError: the file is empty, of no known format, truncated, corrupt, or a
            decompression bomb.
    """
    if not data:
        raise SampleError("the file is empty")
    format = format_of(data)
    if format is None:
        raise SampleError(f"no image of a known format ({', '.join(IMAGE_FORMATS.names)})")
    try:
        header = format.header(data)
    except (IndexError, struct.error) as error:
        raise SampleError("the header ends too early; the file is truncated") from error
    width, height = header.width, header.height
    if width < 1 or height < 1:
        raise SampleError(f"the header says {width}x{height} pixels")
    if width * height > MAX_PIXELS:
        raise SampleError(
            f"{width}x{height} pixels are more than {MAX_PIXELS:,}: refused as a decompression bomb"
        )
    return Encoded(
        name, data, format.name, width, height, header.channels, header.bits, header.orientation
    )
