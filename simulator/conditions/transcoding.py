"""Compression: the image as a camera, a phone or a web site would have saved it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from simulator.conditions.condition import Condition, Disturb, Parameters
from simulator.conditions.image_files import decoded, decoding, writing
from simulator.contract import Encoded, ImageWriter, inspect
from simulator.contract.recipe import Boundary
from simulator.errors import UserError


@dataclass(frozen=True, eq=False)
class Transcoding(Condition):
    """Decodes the source and saves it in a lossy format; every stack then decodes that itself.

    Attributes:
        quality: the encoder's, 1 (worst) to 100; chroma is subsampled 4:2:0, but for JPEG XL.
    """

    quality: int
    acts_on: ClassVar[Boundary] = Boundary.SOURCE
    modality: ClassVar[str | None] = "image"
    examples: ClassVar[tuple[str, ...]] = ("30", "90")

    @classmethod
    def parse(cls, parameters: str) -> Self:
        """Read the quality.

        Raises:
            UserError: it is not a whole number from 1 to 100.
        """
        if not parameters.isdigit() or not 1 <= int(parameters) <= 100:
            raise UserError(
                f"--under {cls.name}:{parameters}: {cls.name}:QUALITY expected, with QUALITY 1 to "
                f"100, for example {cls.name}:30"
            )
        return cls(int(parameters))

    def parameters(self) -> Parameters:
        """Return the quality."""
        return {"quality": self.quality}

    def identity(self) -> Any:
        """Return the quality, and the decoder and writer with their library's version."""
        return [self.name, self.quality, decoding().identity(), writing(self.name).identity()]

    def open(self) -> Disturb:
        """Return a function that decodes and saves an image; the orientation is kept."""
        decode = decoded()
        choice = writing(self.name)
        choice.require()
        writer: ImageWriter = choice.make()

        def disturb(image: Encoded, _: np.random.Generator) -> Encoded:
            rgb, turn = decode(image)
            return inspect(image.name, writer.lossy(rgb, self.name, self.quality, turn))

        return disturb


class Jpeg(Transcoding):
    """By libjpeg-turbo."""

    name = gives_format = "jpeg"
    summary = "the file is saved again as JPEG of a lower quality"


class WebP(Transcoding):
    """By libwebp."""

    name = gives_format = "webp"
    summary = "the file is saved again as WebP of a lower quality"


class Avif(Transcoding):
    """By libavif."""

    name = gives_format = "avif"
    summary = "the file is saved again as AVIF of a lower quality"


class Heic(Transcoding):
    """By libheif and x265."""

    name = gives_format = "heic"
    summary = "the file is saved again as HEIC of a lower quality"


class Jxl(Transcoding):
    """By libjxl, which keeps full chroma."""

    name = gives_format = "jxl"
    summary = "the file is saved again as JPEG XL of a lower quality"
