"""JPEG compression: the image as a camera or a video link would have saved it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from simulator.conditions.condition import Condition, Disturb, Parameters
from simulator.conditions.image_files import decoding, writing
from simulator.contract import Decoder, Encoded, ImageWriter, inspect
from simulator.contract.recipe import Boundary
from simulator.errors import UserError


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

    def parameters(self) -> Parameters:
        """Return the quality."""
        return {"quality": self.quality}

    def identity(self) -> Any:
        """Return the quality, and the decoder and writer with their library's version."""
        return [self.name, self.quality, decoding().identity(), writing().identity()]

    def open(self) -> Disturb:
        """Return a function that decodes and saves an image; the EXIF orientation is kept."""
        decoder: Decoder = decoding().make()
        writer: ImageWriter = writing().make()

        def disturb(image: Encoded, _: np.random.Generator) -> Encoded:
            data = writer.jpeg(decoder.rgb(image).rgb, self.quality, image.orientation)
            return inspect(image.name, data)

        return disturb
