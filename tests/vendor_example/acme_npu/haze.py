"""A condition of Acme's own: haze lies over the scene, ``--under acme_haze:LEVEL``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from simulator.conditions.condition import Condition, Disturb
from simulator.contract import Frame, PixelFormat, Range
from simulator.contract.recipe import Boundary
from simulator.errors import UserError

LEVELS = range(1, 6)


@dataclass(frozen=True, eq=False)
class Haze(Condition):
    """Every pixel is mixed with white; how much, is drawn around the level.

    Attributes:
        level: 1 (a tenth is white) to 5 (half is).
    """

    level: int
    name = "acme_haze"
    summary = "haze lies over the scene: every pixel is mixed with white"
    acts_on: ClassVar[Boundary] = Boundary.FRAME
    modality: ClassVar[str | None] = "image"
    has_chance: ClassVar[bool] = True
    examples: ClassVar[tuple[str, ...]] = ("1", "4")

    @classmethod
    def parse(cls, parameters: str) -> Haze:
        """Read the level."""
        if parameters not in map(str, LEVELS):
            raise UserError(
                f"--under acme_haze:{parameters}: acme_haze:LEVEL expected, with LEVEL 1 to 5"
            )
        return cls(int(parameters))

    def parameters(self) -> dict[str, Any]:
        """Return the level."""
        return {"level": self.level}

    def open(self) -> Disturb:
        """Return the mixture in integers, the same whatever the decoder gave."""

        def disturb(frame: Frame, rng: np.random.Generator) -> Frame:
            share = int(rng.integers(256 * self.level // 10 - 12, 256 * self.level // 10 + 13))
            return frame.with_planes(
                *(
                    ((plane * np.int32(256 - share) + target * share + 128) // 256).astype(np.uint8)
                    for plane, target in zip(frame.planes, _white(frame), strict=True)
                )
            )

        return disturb


def _white(frame: Frame) -> list[int]:
    """What each plane of a white frame holds."""
    if frame.format is PixelFormat.RGB:
        return [255]
    luma = 235 if frame.range is Range.LIMITED else 255
    return [luma, *(128 for _ in frame.planes[1:])]
