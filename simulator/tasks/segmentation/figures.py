"""What a comparison of two segmentations gives besides the counts that every task has."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from simulator.tasks.figures import Flips
from simulator.typed import Keys, Share


class SegmentationFlips(Flips):
    """Pixels that differ; rates are fractions, None of no pixels."""

    right_to_wrong: int | None = Field(description="right on the training stack only")
    wrong_to_right: int | None = Field(description="right on the deployment stack only")
    wrong_to_wrong: int | None = Field(description="wrong on both, in different ways")
    boundary_rate: Share | None = Field(description="of pixels within 3 px of a boundary")
    inside_rate: Share | None = Field(description="of all other pixels")
    class_rates: Annotated[dict[str, Share | None], Keys("class")] = Field(
        description="by class, of the pixels that the training stack gives it"
    )
