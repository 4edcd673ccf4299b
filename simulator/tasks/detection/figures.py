"""What a comparison of two detectors gives besides the counts that every task has."""

from __future__ import annotations

from pydantic import Field

from simulator.tasks.figures import Flips
from simulator.typed import Share


class DetectionFlips(Flips):
    """Objects that differ."""

    lost: int = Field(description="found by the training stack only")
    gained: int = Field(description="found by the deployment stack only")
    moved: int = Field(description="in another place")
    relabelled: int = Field(description="of another class")

    mean_iou: Share | None = Field(
        description="mean overlap of paired boxes; None where there are no pairs"
    )
    rescored: int = Field(description="pairs whose scores differ by more than 0.1")
