"""JPEG compression: the image as a camera or a video link would have saved it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from simulator import registry
from simulator.conditions.condition import Condition, Disturb
from simulator.contract import Decoder, Encoded, ImageWriter, Stage, inspect
from simulator.contract.recipe import Boundary
from simulator.errors import UserError
from simulator.profile.implementations import Choice, implementation

REFERENCE = "pillow"
"""The backend that decodes and encodes, so that every stack gets the same bytes."""


@dataclass(frozen=True, eq=False)
class Jpeg(Condition):
    """Decodes the source and saves it as JPEG; every stack then decodes that JPEG itself.

    Attributes:
        quality: libjpeg's, 1 (worst) to 100; chroma is subsampled 4:2:0.
    """

    quality: int
    name = "jpeg"
    summary = "the file is saved again as JPEG of a lower quality"
    acts_on: ClassVar[Boundary] = Boundary.SOURCE
    modality: ClassVar[str | None] = "image"
    examples: ClassVar[tuple[str, ...]] = ("30", "90")

    @classmethod
    def parse(cls, parameters: str) -> Jpeg:
        """Read the quality.

        Raises:
            UserError: it is not a whole number from 1 to 100.
        """
        if not parameters.isdigit() or not 1 <= int(parameters) <= 100:
            raise UserError(
                f"--under jpeg:{parameters}: jpeg:QUALITY expected, with QUALITY 1 to 100, for "
                "example jpeg:30"
            )
        return cls(int(parameters))

    def parameters(self) -> dict[str, Any]:
        """Return the quality."""
        return {"quality": self.quality}

    def identity(self) -> Any:
        """Return the quality, and the decoder and writer with their library's version."""
        return [self.name, self.quality, _decoder().identity(), _writer().identity()]

    def open(self) -> Disturb:
        """Return a function that decodes and saves an image; the EXIF orientation is kept."""
        decoder: Decoder = _decoder().make()
        writer: ImageWriter = _writer().make()

        def disturb(image: Encoded, _: np.random.Generator) -> Encoded:
            data = writer.jpeg(decoder.rgb(image).rgb, self.quality, image.orientation)
            return inspect(image.name, data)

        return disturb


def _decoder() -> Choice:
    return implementation(Stage.DECODE, registry.backend(REFERENCE), {"exif": "ignore"})


def _writer() -> Choice:
    return implementation(Stage.WRITE, registry.backend(REFERENCE), {})
