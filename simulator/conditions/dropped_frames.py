"""Dropped frames: a stack that is late, or a link that loses packets, sees the frame before."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from simulator.conditions.condition import Condition, Disturb, Parameters
from simulator.contract import Encoded, inspect
from simulator.contract.recipe import Boundary
from simulator.data.video import ClipFrame
from simulator.errors import SampleError, UserError
from simulator.files import IMAGE


@dataclass(frozen=True, eq=False)
class DroppedFrames(Condition):
    """Every frame is dropped with the same chance, whatever happens to the others.

    Where several in a row are dropped, the last one before them is seen: at most seven back, and
    never one before the first.
    """

    share: float
    name = "dropped_frames"
    summary = "frames of a clip are dropped, and the one before is seen in their place"
    acts_on: ClassVar[Boundary] = Boundary.SOURCE
    modality: ClassVar[str | None] = "image"
    has_chance: ClassVar[bool] = True
    of_clips: ClassVar[bool] = True
    examples: ClassVar[tuple[str, ...]] = ("0.5", "0.7")

    @classmethod
    def parse(cls, parameters: str) -> DroppedFrames:
        """Read the share.

        Raises:
            UserError: it is not a number above 0 and below 1.
        """
        try:
            share = float(parameters)
        except ValueError:
            share = 0
        if not 0 < share < 1:
            raise UserError(
                f"--under dropped_frames:{parameters}: dropped_frames:SHARE expected, with SHARE "
                "above 0 and below 1, for example dropped_frames:0.1"
            )
        return cls(share)

    def parameters(self) -> Parameters:
        """Return the share."""
        return {"share": f"{self.share:g}"}

    def open(self) -> Disturb:
        """Return a function from a frame of a clip to itself or one before it."""

        def disturb(image: Encoded, rng: np.random.Generator) -> Encoded:
            moment = image.moment
            if moment is None:
                raise SampleError("is no frame of a video, of which alone frames are dropped")
            back = min(int(rng.geometric(1 - self.share)) - 1, len(moment.before))
            if not back:
                return image
            seen = ClipFrame(replace(moment, back=back))
            try:
                return replace(inspect(image.name, seen.read(IMAGE)), moment=seen.moment)
            except OSError as error:
                raise SampleError(str(error)) from error

        return disturb
