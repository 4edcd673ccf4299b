"""Images: JPEG and PNG files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from simulator.contract import Array, Encoded
from simulator.contract.encoded import SUFFIXES, read_image
from simulator.contract.recipe import Recipe
from simulator.contract.stage import named
from simulator.modalities.image import front_end, placing
from simulator.modalities.image.card import ImageCard, tensor_shape
from simulator.modalities.image.sections import ImageSpec
from simulator.modalities.modality import Feed, Modality
from simulator.modalities.specimen import Specimen
from simulator.places import Where
from simulator.profile.implementations import Choices
from simulator.profile.postprocess import Postprocess
from simulator.profile.profile import Profile


class ImageModality(Modality):
    """One image a sample; its source is an :class:`Encoded`."""

    name = "image"
    unit = "image"
    suffixes = SUFFIXES
    draws = True
    levels = "levels"
    Spec = ImageSpec
    Card = ImageCard

    def read(self, name: str, path: Where) -> Encoded:
        """Read one image file and check its header."""
        return read_image(name, path)

    def feeds(self, card: Any) -> tuple[Feed, ...]:
        """Return the one tensor of (1, 3, H, W) or (1, H, W, 3) float32."""
        spec = card.input
        return (Feed(None, np.dtype(np.float32), tensor_shape(spec), spec.layout),)

    def front_end(self, profile: Profile, choices: Choices, card: Any) -> list[Recipe]:
        """Return the steps from the file's bytes to the tensor."""
        return front_end.front_end(profile, choices, card)

    def placing(self, profile: Profile, card: Any) -> placing.ImagePlacing:
        """Return the function that gives an image's position in the tensor."""
        return placing.placing(profile, card)

    def postprocess(self, profile: Profile, card: Any) -> Postprocess:
        """Return the profile's postprocessing; fields that its geometry ignores are neutral."""
        return placing.postprocess(profile, card)

    def scale(self, profile: Profile, card: Any) -> Array:
        """Return how many levels of 0-255 a difference of 1 in the tensor is, per channel."""
        return front_end.deviations(profile, card)

    def memory(self, source: Encoded) -> int:
        """Return the bytes of one more decoded image, which libraries need while they work."""
        return 3 * source.width * source.height

    def specimen(self, folder: Path) -> Specimen:
        """Write a JPEG, a PNG, and the card of a small classifier."""
        made: Specimen = named("simulator.testing.image_specimen:write")(folder)
        return made

    def sizes(self, source: Encoded) -> dict[str, int]:
        """Return columns, rows and bytes of the file."""
        return {"width": source.width, "height": source.height, "bytes": len(source.data)}


IMAGE = ImageModality()
