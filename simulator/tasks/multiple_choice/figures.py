"""What a comparison of two stacks says of multiple choice, as types."""

from __future__ import annotations

from pydantic import Field

from simulator.tasks.figures import Flips
from simulator.typed import Nats


class MultipleChoiceFlips(Flips):
    """Answers that differ, and how far the log-likelihoods behind them moved."""

    right_to_wrong: int | None = Field(description="answers right on the train side only")
    wrong_to_right: int | None = Field(description="answers right on the deploy side only")
    norm_changed: int | None = Field(
        description="answers by length-normalized log-likelihood that differ"
    )
    mean_shift: Nats | None = Field(
        description="mean absolute change of a choice's log-likelihood, nats"
    )
    max_shift: Nats | None = Field(description="largest absolute change of one, nats")
    margins_below_mean: int = Field(
        description="answers whose margin on the train side is below mean_shift"
    )
    margins_below_max: int = Field(
        description="answers whose margin on the train side is below max_shift"
    )
