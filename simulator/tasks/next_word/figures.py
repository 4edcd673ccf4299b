"""What a comparison of two stacks says of next words, as types."""

from __future__ import annotations

from pydantic import Field

from simulator.tasks.figures import Flips
from simulator.typed import Nats


class NextWordFlips(Flips):
    """Words that one stack would write and the other not, and how far likelihoods moved."""

    right_to_wrong: int | None = Field(description="words right on the train side only")
    wrong_to_right: int | None = Field(description="words right on the deploy side only")
    train_perplexity: float | None = Field(
        description="exp of the mean negative log-likelihood of a word on the train side"
    )
    deploy_perplexity: float | None = Field(description="the same on the deploy side")
    mean_shift: Nats | None = Field(
        description="mean absolute change of a word's log-likelihood, nats"
    )
    max_shift: Nats | None = Field(description="largest absolute change of one, nats")
