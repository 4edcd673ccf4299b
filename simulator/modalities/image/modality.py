"""Images: JPEG and PNG files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from simulator.contract import Encoded, inspect
from simulator.contract.recipe import Recipe
from simulator.errors import SampleError
from simulator.modalities.image.card import ImageCard, tensor_shape
from simulator.modalities.modality import Feed, Modality, Placing
from simulator.profile.implementations import Choices
from simulator.profile.load import Profile
from simulator.profile.schema import ProfileSpec


class ImageModality(Modality):
    """One image a sample; its source is an :class:`Encoded`."""

    name = "image"
    unit = "image"
    Spec = ProfileSpec
    Card = ImageCard

    def read(self, name: str, path: Path) -> Encoded:
        """Read one image file and check its header."""
        try:
            data = path.read_bytes()
        except OSError as error:
            raise SampleError(f"cannot be read: {error.strerror or error}") from error
        return inspect(name, data)

    def feeds(self, card: Any) -> tuple[Feed, ...]:
        """Return the one tensor of (1, 3, H, W) or (1, H, W, 3) float32."""
        spec = card.input
        return (Feed(None, np.dtype(np.float32), tensor_shape(spec), spec.layout),)

    def front_end(self, profile: Profile, choices: Choices, card: Any) -> list[Recipe]:
        """Return the steps from the file's bytes to the tensor."""
        raise NotImplementedError

    def placing(self, profile: Profile, card: Any) -> Placing:
        """Return where images come to lie in the tensor."""
        raise NotImplementedError


IMAGE = ImageModality()
