"""What a comparison of two stacks says of embeddings, as types."""

from __future__ import annotations

from pydantic import Field

from simulator.tasks.figures import Flips


class EmbeddingFlips(Flips):
    """Nearest texts that differ, and how near the vectors of both stacks are to each other."""

    right_to_wrong: int | None = Field(description="texts right on the train side only")
    wrong_to_right: int | None = Field(description="texts right on the deploy side only")
    order_changed: int | None = Field(description="samples whose texts are ordered differently")
    min_cosine: float | None = Field(
        description="the smallest cosine between the vectors of one text in both stacks"
    )
    mean_cosine: float | None = Field(description="the mean of each sample's smallest cosine")
