"""Pixelation and JPEG, by Pillow as in the original."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar

import numpy as np

from simulator import registry
from simulator.conditions.corruptions.corruption import Corruption
from simulator.contract import U8, Decoder, ImageWriter, Resizer, Stage, inspect
from simulator.profile.implementations import Choice, implementation

REFERENCE = "pillow"
"""The backend of the original."""


@dataclass(frozen=True, eq=False)
class Pixelate(Corruption):
    """Shrinks by areas and enlarges by repetition; a level is the share of rows that is left."""

    name = "pixelate"
    summary = "few large pixels, as of an image that was enlarged"
    levels: ClassVar[tuple[Any, ...]] = (0.6, 0.5, 0.4, 0.3, 0.25)

    def identity(self) -> Any:
        """Return the parameters, and the resizers."""
        return [*super().identity(), *(_resizing(*one).identity() for one in _WAYS)]

    def apply(self, rgb: U8, rng: np.random.Generator) -> U8:
        """Shrink, to one row and column at least, and enlarge."""
        down, up = (_resizer(*one) for one in _WAYS)
        height, width = rgb.shape[:2]
        rows, columns = (max(1, int(side * self.level)) for side in (height, width))
        return up.resize(down.resize(rgb, rows, columns), height, width)


@dataclass(frozen=True, eq=False)
class JpegCompression(Corruption):
    """Saves as JPEG with 4:2:0 chroma, and reads it; a level is libjpeg's quality."""

    name = "jpeg_compression"
    summary = "the traces of a JPEG of low quality"
    levels: ClassVar[tuple[Any, ...]] = (25, 18, 15, 10, 7)

    def identity(self) -> Any:
        """Return the parameters, the writer and the decoder."""
        return [*super().identity(), *(choice.identity() for choice in _jpeg())]

    def apply(self, rgb: U8, rng: np.random.Generator) -> U8:
        """Save and read."""
        writer, decoder = _tools()
        return decoder.rgb(inspect("corrupted", writer.jpeg(rgb, self.level))).rgb


_WAYS = (("box", True), ("nearest", False))


def _resizing(interpolation: str, antialias: bool) -> Choice:
    options = {"interpolation": interpolation, "antialias": antialias}
    return implementation(Stage.RESIZE, registry.backend(REFERENCE), options)


@cache
def _resizer(interpolation: str, antialias: bool) -> Resizer:
    found: Resizer = _resizing(interpolation, antialias).make()
    return found


def _jpeg() -> tuple[Choice, Choice]:
    backend = registry.backend(REFERENCE)
    return (
        implementation(Stage.WRITE, backend, {}),
        implementation(Stage.DECODE, backend, {"exif": "ignore"}),
    )


@cache
def _tools() -> tuple[ImageWriter, Decoder]:
    writer, decoder = (choice.make() for choice in _jpeg())
    return writer, decoder
