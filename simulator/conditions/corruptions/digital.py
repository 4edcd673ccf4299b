"""Pixelation and JPEG, by Pillow as in the original."""

from __future__ import annotations

from functools import cache

import numpy as np

from simulator.conditions.corruptions.corruption import corruption
from simulator.conditions.image_files import decoding, resizing, writing
from simulator.contract import U8, Decoder, ImageWriter, Resizer, inspect
from simulator.profile.implementations import Choice


def _resizing() -> tuple[Choice, Choice]:
    return resizing("box"), resizing("nearest", antialias=False)


@cache
def _resizers() -> tuple[Resizer, Resizer]:
    down, up = (choice.make() for choice in _resizing())
    return down, up


@corruption(
    "few large pixels, as of an image that was enlarged",
    (0.6, 0.5, 0.4, 0.3, 0.25),
    tools=_resizing,
)
def pixelate(rgb: U8, share: float, rng: np.random.Generator) -> U8:
    """Shrink by areas, to one pixel at least, and enlarge; a level is the share of rows left."""
    down, up = _resizers()
    height, width = rgb.shape[:2]
    rows, columns = (max(1, int(side * share)) for side in (height, width))
    return up.resize(down.resize(rgb, rows, columns), height, width)


def _saving() -> tuple[Choice, Choice]:
    return writing(), decoding()


@cache
def _writer_and_decoder() -> tuple[ImageWriter, Decoder]:
    writer, decoder = (choice.make() for choice in _saving())
    return writer, decoder


@corruption("the traces of a JPEG of low quality", (25, 18, 15, 10, 7), tools=_saving)
def jpeg_compression(rgb: U8, quality: int, rng: np.random.Generator) -> U8:
    """Save as JPEG with 4:2:0 chroma, and read it; a level is libjpeg's quality."""
    writer, decoder = _writer_and_decoder()
    return decoder.rgb(inspect("corrupted", writer.jpeg(rgb, quality))).rgb
