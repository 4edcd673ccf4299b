"""Index masks through PIL."""

from __future__ import annotations

import io
import struct
import warnings
import zlib

import numpy as np

from backends.pillow.library import Image
from simulator.contract import Encoded, Mask, MaskReader, Options, SampleError

_ADAM7 = ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2))
_PASSES = {0: ((0, 0, 1, 1),), 1: (*_ADAM7, (0, 1, 1, 2))}
"""By interlace method: first column and row of a pass, and its steps (PNG specification 8.2)."""


class PillowMasks(MaskReader):
    """Reads a PNG's own samples with ``PIL.Image.open``.

    Two behaviours of Pillow are undone: it scales gray of 1, 2 or 4 bits to 0-255
    (``PngImagePlugin``, raw modes ``1``, ``L;2``, ``L;4``), and it fills missing rows of truncated
    data with 0, which would be a class.
    """

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        warnings.filterwarnings("ignore", module=r"PIL\.")  # large images: the contract has a limit

    def _indices(self, image: Encoded) -> Mask:
        try:
            opened = Image.open(io.BytesIO(image.data), formats=("PNG",))
        except Image.UnidentifiedImageError as error:  # its text is an address in memory
            raise SampleError("Pillow cannot read the header of this PNG") from error
        with opened:
            opened.load()
            _check_rows(image)
            palette = opened.mode == "P"
            samples = np.array(opened.convert("L") if opened.mode == "1" else opened)
        if image.bits == 16:
            return samples.astype(np.uint16)
        return samples if palette else samples // np.uint8(255 // (2**image.bits - 1))


def _check_rows(image: Encoded) -> None:
    """Check the length of the pixel data; each row starts with its filter byte."""
    wanted = 0
    for x, y, across, down in _PASSES[image.data[28]]:
        columns, rows = -(-(image.width - x) // across), -(-(image.height - y) // down)
        if columns > 0 and rows > 0:
            wanted += rows * (1 + (columns * image.bits + 7) // 8)
    at, packed = 8, b""
    while at < len(image.data):
        length, kind = struct.unpack_from(">I4s", image.data, at)
        if kind == b"IDAT":
            packed += image.data[at + 8 : at + 8 + length]
        at += 12 + length
    got = len(zlib.decompressobj().decompress(packed, wanted))
    if got < wanted:
        raise SampleError(f"the pixel data has {got} bytes, but the header requires {wanted}")
