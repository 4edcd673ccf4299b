"""A folder of images that were disturbed before, such as the released ImageNet-C."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import ClassVar

import numpy as np

from simulator.conditions.condition import Condition, Disturb, Parameters
from simulator.contract import Encoded
from simulator.contract.encoded import read_image
from simulator.contract.image_formats import suffixes
from simulator.contract.recipe import Boundary
from simulator.errors import SampleError, UserError


@dataclass(frozen=True, eq=False)
class Released(Condition):
    """Takes the file of the same name from another folder, whatever its ending is.

    Attributes:
        folder: for example ``imagenet-c/fog/3``; below it are the names that samples have below
            the data folder.
    """

    folder: Path
    name = "released"
    summary = "the image of the same name in a folder of disturbed images"
    acts_on: ClassVar[Boundary] = Boundary.SOURCE
    modality: ClassVar[str | None] = "image"
    examples: ClassVar[tuple[str, ...]] = ()

    @classmethod
    def parse(cls, parameters: str) -> Released:
        """Read the folder.

        Raises:
            UserError: there is no such folder.
        """
        folder = Path(parameters)
        if not parameters or not folder.is_dir():
            raise UserError(
                f"--under released:{parameters}: released:FOLDER expected, and there is no such "
                "folder; for example released:imagenet-c/fog/3"
            )
        return cls(folder.resolve())

    def parameters(self) -> Parameters:
        """Return the folder."""
        return {"folder": str(self.folder)}

    def open(self) -> Disturb:
        """Return a function that reads the file instead of the sample's own."""
        folder = self.folder
        known = [*suffixes(), *map(str.upper, suffixes())]

        def disturb(image: Encoded, _: np.random.Generator) -> Encoded:
            own = PurePosixPath(image.name)
            ends = dict.fromkeys((own.suffix, *known))
            places = (folder / own.with_suffix(end) for end in ends)
            place = next((path for path in places if path.is_file()), None)
            if place is None:
                raise SampleError(f"{folder} has no {own}")
            return read_image(image.name, place)

        return disturb
