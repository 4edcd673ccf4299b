"""``summary.json`` of ``simulate faults``: what faults in the hardware do to answers."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from simulator.results.shared import Metrics, ModelSummary, Running
from simulator.typed import (
    About,
    Interval,
    Keys,
    Named,
    Points,
    Probability,
    Ratio,
    ResultModel,
    Share,
    Unit,
)


class Rate(ResultModel):
    """A share of inferences, or of faults, with its interval."""

    rate: Share | None = Field(description="None: nothing was run, or it is not defined")
    ci95: Interval = Field(
        description="Clopper-Pearson; of permanent faults the bootstrap over faults, see "
        "analysis.faults.lasting; of strata that were not drawn in proportion that of "
        "statistics.strata.stratified"
    )
    count: int = Field(description="of events as drawn, where rates are weighted by stratum too")
    of: int


class Mean(ResultModel):
    """A mean over events with its interval from the bootstrap over them."""

    value: float | None
    ci95: Interval = Field(description="95 % interval")
    of: int = Field(description="events for which it is defined")


Severity = Annotated[dict[str, Mean], Keys("severity")]
"""By the task's names, see docs/faults.md; over silent corruptions."""


class FaultGroup(ResultModel):
    """The faults of one bit, layer or operator."""

    sdc: Rate = Field(alias="SDC")
    due: Rate = Field(alias="DUE")
    severity: Severity


Groups = dict[str, FaultGroup]


class FaultEvent(ResultModel):
    """One of the worst silent corruptions."""

    fault: int = Field(description="its number: simulate replay-fault RUN --fault N")
    sample: str
    layer: str = Field(description="of several bits in several layers each one's, with commas")
    target: str
    index: list[int] = Field(default_factory=list, description="of the hit values, flat")
    bit: list[int]
    before: list[float | None] = Field(description="the hit values; None: not finite")
    after: list[float | None]
    severity: dict[str, float | None]
    without: str = Field(default="", description="the answer without the fault, in words")
    under: str = Field(default="", description="the answer with it")
    picture: str | None = Field(
        default=None, description="a drawing of both, in the run folder; of the worst few"
    )
    preview: str | None = Field(default=None, description="the same, smaller")


class Curve(ResultModel):
    """Precision at the recalls 0, 0.01 to 1, at IoU 0.5."""

    clean: list[float] = Field(description="without faults")
    faulty: list[float] = Field(description="with them; NaN or Inf: no answer")


class PersistentGroup(ResultModel):
    """Which faults leave something that stays, and how much of those that do."""

    false: Rate = Field(description="falsely occupied")
    missed: Rate = Field(description="of what was there without the fault, now free")
    false_area: Mean | None = Field(default=None, description="a share of the image")
    missed_area: Mean | None = Field(default=None, description="a share of what is there")


class Persistence(ResultModel):
    """What permanent faults leave over the frames of a video."""

    frames: int
    window: int = Field(description="N: how many frames count")
    least: int = Field(description="M: in how many of them a pixel, or one nearby, is occupied")
    radius: float = Field(description="R: how far away a pixel is nearby")
    levels: list[float] = Field(description="of the mean area over the frames where it persists")
    false: list[Rate] = Field(description="share of faults above each level")
    missed: list[Rate]
    by_bit: dict[str, PersistentGroup] = Field(
        description="above the level 0; empty where several bits are hit together"
    )
    false_area: Annotated[Mean, About(Unit.SHARE)] = Field(
        description="of the faults that leave something"
    )
    missed_area: Annotated[Mean, About(Unit.SHARE)]
    worst: int | None = Field(
        description="the fault with the largest area, of both kinds; None: there is none"
    )
    worst_false: list[float] = Field(description="its area in each frame")
    worst_missed: list[float | None]
    reference_false: list[float] = Field(
        default_factory=list,
        description="falsely occupied without any fault, against the truth, in each frame; a share "
        "of the image; empty without truth",
    )
    reference_missed: list[float | None] = Field(
        default_factory=list,
        description="likewise not found; a share of what is occupied without a fault",
    )
    clip: str | None = Field(default=None, description="a GIF in the run folder that shows it")


class FaultStack(Running):
    """One stack with faults in it."""

    method: str = Field(description="how faults were put in")
    tap: str = Field(description="where NaN and Inf were looked for; DUE depends on it")
    layers: int = Field(description="that can be hit")
    bits: int = Field(description="that could be hit")
    share_of_bits: Share = Field(description="of all bits of these layers")
    same_faults: bool = Field(description="whether they are those of the first stack")
    sdc: Rate = Field(alias="SDC", description="silent data corruption")
    due: Rate = Field(alias="DUE", description="NaN or Inf: detectable, uncorrectable")
    refused: Rate = Field(description="finite outputs that are not what the model card promises")
    masked: Rate
    further: Annotated[dict[str, Rate], Keys("fault rate")] = Field(
        description="the task's other readings of a corruption"
    )
    severity: Severity
    by_bit: Groups = Field(description="these three are empty where several bits are hit together")
    by_layer: Groups
    by_operator: Groups
    clean: Metrics = Field(description="without faults, on the inferences of the campaign")
    faulty: Metrics = Field(description="the same with faults; NaN or Inf: no answer")
    curves: dict[str, Curve] = Field(
        default_factory=dict,
        description="of the mean over the classes, and of those that change most; of detectors "
        "with truth",
    )
    worst: list[FaultEvent]
    persistence: Persistence | None = Field(description="None: not permanent, no video, no boxes")
    inferences_per_second: Annotated[float | None, About(Unit.PER_SECOND, better=1)]


class PairedFaults(ResultModel):
    """The same faults in another stack."""

    than: str = Field(description="the other stack: the first one, or this without a restriction")
    only_first: int = Field(description="corrupt that stack's answer alone")
    only_this: int
    both: int
    delta: Points | None = Field(
        description="the rate of this stack less that of the first one; None: part of the strata "
        "was not run"
    )
    ci95: Annotated[Interval, About(Unit.POINTS)] = Field(
        description="Bonett and Price's; of strata that were not drawn in proportion Zou and "
        "Donner's"
    )
    p: Probability = Field(description="McNemar's mid-p, of the faults as drawn")


class FaultsSummary(ModelSummary):
    """A campaign of faults on one or several stacks."""

    command: Literal["faults"] = "faults"
    campaign: str
    targets: list[str]
    kind: str
    lasts: str = Field(description="transient: one inference; permanent: all samples")
    at_once: int = Field(description="bits hit together")
    reading: dict[str, Any] = Field(description="what the task takes for a corruption")
    allocation: str = Field(
        description="of faults to strata; rates are weighted by stratum unless proportional"
    )
    faults: int
    stacks: Annotated[dict[str, FaultStack], Keys("stack", usual="deploy"), Named()]
    slowdown: dict[str, Ratio] = Field(
        default_factory=dict,
        description="time of an inference with a range restriction by that without",
    )
    paired: Annotated[dict[str, PairedFaults], Keys("other stack")]
