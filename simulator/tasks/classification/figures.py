"""What a comparison of two classifiers gives besides the counts that every task has."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from simulator.tasks.figures import Flips
from simulator.typed import About, Interval, Probability, Share, Unit


class ClassificationFlips(Flips):
    """Classes that differ; kinds and tests are of labelled images, None where there are none."""

    ci95_wilson: Annotated[Interval | None, About(Unit.SHARE)] = Field(
        description="Wilson's 95 % interval of the rate"
    )
    right_to_wrong: int | None = Field(description="right on the training stack only")
    wrong_to_right: int | None = Field(description="right on the deployment stack only")
    wrong_to_wrong: int | None = Field(description="wrong on both, in different ways")
    mcnemar_p: Probability | None = Field(description="McNemar's exact test")
    mcnemar_midp: Probability | None = Field(description="McNemar's mid-p test")
    top5_flips: int | None = Field(
        description="samples whose set of five best classes differs; None where it was not recorded"
    )
    top5_flip_rate: Share | None = Field(description="of the samples where it was recorded")
    samples_for_tenth_point: int | None = Field(
        description="samples that a delta of 0.1 points would take; None where it cannot occur"
    )
