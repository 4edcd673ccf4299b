"""What a comparison of two stacks says of generated texts, as types."""

from __future__ import annotations

from pydantic import Field

from simulator.tasks.figures import Flips
from simulator.typed import Ms


class GenerationFlips(Flips):
    """Texts that differ, and after how many tokens they part."""

    right_to_wrong: int | None = Field(description="texts right on the train side only")
    wrong_to_right: int | None = Field(description="texts right on the deploy side only")
    earliest_parting: int | None = Field(
        description="the fewest tokens after which two texts part; None where none does"
    )
    median_parting: float | None = Field(description="the median of texts that part, in tokens")
    train_first_token_ms: Ms | None = Field(
        description="median time of the inference that gives the first token, on the train side"
    )
    deploy_first_token_ms: Ms | None = Field(description="the same on the deploy side")
    train_token_ms: Ms | None = Field(
        description="median of the mean time of each later token, on the train side"
    )
    deploy_token_ms: Ms | None = Field(description="the same on the deploy side")
