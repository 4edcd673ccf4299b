"""Acme's camera frames, ``.acme``: a file format of Acme's own, and what decodes it.

The word ``ACME``, rows and columns as two bytes each, lowest first, and a red, green and blue byte
for each pixel.
"""

from __future__ import annotations

import struct
from typing import ClassVar

import numpy as np

from simulator.contract import U8, Backend, Decoder, Encoded, Evidence, Offer, Stage
from simulator.contract.image_formats import Header, ImageFormat
from simulator.errors import SampleError

_HEAD = struct.Struct("<4sHH")


def _header(data: bytes) -> Header:
    _, height, width = _HEAD.unpack_from(data)
    if len(data) != _HEAD.size + 3 * height * width:
        raise SampleError("the frame is truncated")
    return Header(width, height)


def _write(rgb: U8) -> bytes:
    return _HEAD.pack(b"ACME", *rgb.shape[:2]) + rgb.tobytes()


class AcmeFrames(Decoder):
    """The bytes as they are."""

    reads: ClassVar[tuple[str, ...]] = ("acme_frame",)

    def _rgb(self, image: Encoded) -> U8:
        pixels = np.frombuffer(image.data, np.uint8, offset=_HEAD.size)
        return pixels.reshape(image.height, image.width, 3).copy()


FORMAT = ImageFormat(
    "acme_frame", (".acme",), lambda data: data[:4] == b"ACME", _header, example=_write
)
BACKEND = Backend(
    name="acme_frames",
    summary="Acme's camera frames (invented), in numpy",
    offers=(
        Offer(
            Stage.DECODE,
            {"exif": ("ignore",)},
            AcmeFrames,
            evidence=Evidence.EMULATED,
            source="Acme camera guide 3 (invented): bytes as they are",
        ),
    ),
)
