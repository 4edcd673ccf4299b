"""What a task's comparison of two stacks gives, as types."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, TypedDict

from pydantic import ConfigDict, Field

from simulator.typed import About, Interval, Points, Probability, ResultModel, Unit

Figures = dict[str, Any]
"""Figures by their names in a :class:`Flips`, before they are checked."""


class Side(TypedDict):
    """One stack of a comparison; its metrics are fractions, None where they cannot be computed."""

    metric: dict[str, float | None]


class Comparison(TypedDict):
    """Parts of ``summary.json``, before they are checked.

    Rates and deltas are fractions; a delta is deploy minus train; intervals are [lower, upper].
    """

    labelled: int
    train: Side
    deploy: Side
    delta: dict[str, Figures | None]
    flips: Figures


class Delta(ResultModel):
    """How far a metric moved: deployment less training."""

    value: Points | None = Field(description="difference")
    ci95: Interval | None = Field(
        default=None, description="95 % interval; None where there is none"
    )
    p: Probability | None = Field(
        default=None, description="two-sided p-value against no difference"
    )
    method: str | None = Field(default=None, description="how interval and p were worked out")


class Flips(ResultModel):
    """Answers that differ between the two stacks.

    Open for the task's own figures: the kinds of flips that it counts, and others. A task whose
    figures are not all in its ``kinds`` subclasses this model to declare them.
    """

    model_config = ConfigDict(extra="allow", defer_build=False)
    # SerializeAsAny writes a summary by the class of its flips, which must be built by then.
    OPEN: ClassVar[Mapping[str, About]] = {"flips": About(Unit.COUNT)}

    count: int = Field(description="answers that differ")
    units: int = Field(description="answers that were compared")
    rate: Annotated[float | None, About(Unit.SHARE, better=-1, short="flip_rate")] = Field(
        description="count by units; None of no units"
    )
    ci95: Interval | None = Field(description="95 % interval of the rate; None of no units")
