"""What a task's comparison of two stacks gives, as types."""

from __future__ import annotations

from typing import ClassVar

from pydantic import ConfigDict, Field

from simulator.typed import Interval, Typed


class Delta(Typed):
    """How far a metric moved: deployment less training."""

    value: float | None = Field(description="difference, a fraction")
    ci95: Interval | None = Field(
        default=None, description="95 % interval; None where there is none"
    )
    p: float | None = Field(default=None, description="two-sided p-value against no difference")
    method: str | None = Field(default=None, description="how interval and p were worked out")


class Flips(Typed):
    """Answers that differ between the two stacks.

    Open for the task's own figures: the kinds of flips that it counts, and others. A task whose
    figures are not all in its ``kinds`` subclasses this model to declare them.
    """

    model_config = ConfigDict(extra="allow")
    OPEN_FOR: ClassVar[str] = "flips"

    count: int = Field(description="answers that differ")
    units: int = Field(description="answers that were compared")
    rate: float | None = Field(description="count by units, a fraction; None of no units")
    ci95: Interval | None = Field(description="95 % interval of the rate; None of no units")
