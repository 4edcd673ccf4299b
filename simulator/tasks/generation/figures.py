"""What a comparison of two stacks says of generated texts, as types."""

from __future__ import annotations

from pydantic import Field

from simulator.tasks.figures import Flips


class GenerationFlips(Flips):
    """Texts that differ, and after how many tokens they part."""

    right_to_wrong: int | None = Field(description="texts right on the train side only")
    wrong_to_right: int | None = Field(description="texts right on the deploy side only")
    earliest_parting: int | None = Field(
        description="the fewest tokens after which two texts part; None where none does"
    )
    median_parting: float | None = Field(description="the median of texts that part, in tokens")
