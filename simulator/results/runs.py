"""What ``simulate compare-runs`` prints: two finished runs, held against each other."""

from __future__ import annotations

from pydantic import Field

from simulator.tasks.figures import Delta
from simulator.typed import Interval, ResultModel


class StackAgain(ResultModel):
    """One stack in both runs."""

    samples: int = Field(description="that went through both runs")
    changed: int = Field(description="answers that differ")
    ci95: Interval = Field(description="95 % interval of their share")
    equal_outputs: int = Field(description="samples whose outputs have the same bits")
    first: list[str] = Field(description="the first samples with another answer")
    fails: int = Field(default=0, description="samples that only the later run cannot answer")
    answers: int = Field(default=0, description="samples that only the earlier run cannot answer")
    delta: dict[str, Delta | None] = Field(
        description="new less old, of metrics that are means over samples"
    )
    latency_ms: list[float | None] = Field(description="median of the whole: old, new")


class RunsCompared(ResultModel):
    """Two runs of the same question."""

    old: str = Field(description="folder of the earlier run")
    new: str = Field(description="folder of the later run")
    task: str
    inputs: list[str] = Field(description="what changed in model, samples and profiles")
    surroundings: list[str] = Field(
        description="what changed in versions, processor, artifacts and settings in force"
    )
    stacks: dict[str, StackAgain] = Field(description="those that both runs have, by name")
