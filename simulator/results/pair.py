"""``summary.json`` of ``simulate``: one pair of stacks."""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, SerializeAsAny, create_model

from simulator.results.manifest import StackAxis
from simulator.results.pictures import AnyPicture
from simulator.results.shared import (
    Decided,
    Metrics,
    Missing,
    ModelSummary,
    Running,
    Skipped,
    Stages,
)
from simulator.results.tracking import Tracking
from simulator.tasks.figures import Delta, Flips
from simulator.typed import About, Interval, Keys, Named, Probability, ResultModel, Share, Unit


class Side(Running):
    """One stack of the pair."""

    metric: Annotated[Metrics, Named()]


class AxisSide(StackAxis):
    """What one stack says on an axis."""

    values: dict[str, Any] = Field(description="fields that the other stack says differently")


class AxisEffect(ResultModel):
    """An axis swapped alone into the training stack."""

    null: bool = Field(description="whether nothing changed")
    why: str | None = Field(
        default=None, description="in words, where pixels were not compared; else None"
    )
    samples: int | None = Field(default=None, description="compared")
    changed: int | None = Field(default=None, description="of them, those with any difference")
    values_changed: float | None = Field(default=None, description="share of values that differ")
    mean: float | None = Field(default=None, description="mean difference")
    max: float | None = Field(default=None, description="largest difference")
    unit: str = Field(
        default="levels",
        description="of mean and max: levels of 0-255; of other samples than images, units of the "
        "network's input",
    )


class Axis(ResultModel):
    """An axis on which the two stacks differ."""

    axis: str
    effect: AxisEffect | None = Field(description="None where it cannot be swapped alone")
    train: AxisSide
    deploy: AxisSide
    equal: int = Field(default=0, description="fields that both stacks say alike")


class Alone(ResultModel):
    """The answers of the training stack with one axis of the deployment stack."""

    axes: list[str] = Field(description="more than one where they can only be swapped together")
    samples: int = Field(description="that went through both stacks and this one")
    changed: int = Field(description="answers that differ from the training stack's")
    units: int = Field(description="answers that were compared")
    rate: Share | None = Field(default=None, description="changed by units")
    ci95: Interval | None = Field(default=None, description="95 % interval of the rate")
    delta: Delta | None = Field(default=None, description="of the headline metric")
    why: str | None = Field(default=None, description="why it was not run; None where it was")


class Moment(ResultModel):
    """Frames in a row of a clip that changed; times in seconds from the clip's start."""

    clip: str | None = Field(
        description="its name, or of a sequence its first frame, where there are several"
    )
    start: float = Field(description="when the first of them is shown")
    end: float = Field(description="when the last one is shown")
    worst: float = Field(description="when the sample is shown, the worst of them")
    frames: int = Field(description="how many they are")
    strip: dict[str, float] = Field(
        description="frames around the worst one, changed or not, and when each is shown; of the "
        "first moments"
    )


class Flip(ResultModel):
    """An answer that changed; what else is said of it is the task's own."""

    model_config = ConfigDict(extra="allow")

    sample: str
    picture: str | None = Field(default=None, description="path below the run folder")
    preview: str | None = Field(default=None, description="path of a small JPEG of the same")
    moment: Moment | None = Field(
        default=None, description="of a clip, where this is the worst frame; None of other samples"
    )


class SizeClass(ResultModel):
    """Samples of one size, or of a quarter by their pixels."""

    size: str = Field(description="width×height, or the most pixels of the quarter")
    samples: int
    units: int = Field(description="answers that were compared")
    changed: int = Field(description="of them")
    rate: Share | None = Field(default=None, description="changed by units")
    ci95: Interval | None = Field(default=None, description="95 % interval of the rate")


class BySize(ResultModel):
    """Flips against size."""

    of: str = Field(description="what has the sizes: the picture, or a stack's input")
    classes: list[SizeClass] = Field(description="the smallest first")
    rho: float | None = Field(
        description="Spearman's rank correlation of a sample's pixels and the share of its answers "
        "that change; None where all are alike"
    )
    p: Probability | None = Field(description="of no such correlation")


class SelfCheck(ResultModel):
    """Some samples run a second time through each stack."""

    samples: int
    flips: int = Field(description="records that were different the second time")
    bit_equal: bool = Field(description="whether every output had the same bits")


class Controls(ResultModel):
    """Checks of the measurement itself."""

    self_: SelfCheck = Field(alias="self")


class SideLatency(ResultModel):
    """Latency of both stacks, by stage."""

    train: Stages
    deploy: Stages


class PairSummary(ModelSummary):
    """Two stacks compared on the same images."""

    command: Literal["run"] = "run"
    unit: str = Field(description="what flips are counted in, in the singular")
    skipped_samples: list[Skipped] = Field(description="the first of those that were skipped")
    labelled: int = Field(description="samples that somebody has annotated")
    train: Side
    deploy: Side
    delta: Annotated[dict[str, Delta | None], Keys("delta")] = Field(
        description="deployment less training; None where a metric cannot be measured"
    )
    flips: SerializeAsAny[Flips]
    axes: list[Axis] = Field(description="those on which the stacks differ")
    alone: list[Alone] = Field(
        default_factory=list,
        description="each axis swapped alone into the training stack, the one that changes most "
        "answers first; empty where the run was quick",
    )
    worst_flips: list[Flip] = Field(description="the worst one first")
    latency_ms: Annotated[SideLatency, Named("latency", behind=True)]
    missing: Missing
    controls: Controls
    by_size: BySize | None = Field(
        default=None, description="None of samples of one size, of few, and of no images"
    )
    decided: Decided | None = Field(
        default=None, description="when the gate was decided; None: every sample was to run"
    )
    tracking: Tracking | None = Field(
        default=None, description="the tracks of both stacks, where they were asked for"
    )
    pictures: list[AnyPicture] = Field(
        default_factory=list, description="of samples, as their modality or the task shows them"
    )
    workers: Annotated[int | None, About(Unit.COUNT, hidden=True)] = Field(
        default=None, description="samples in flight"
    )


@cache
def pair_summary(flips: type[Flips]) -> type[PairSummary]:
    """Return the summary of a pair whose flips are those of one task."""
    return create_model("PairSummary", __base__=PairSummary, flips=(flips, ...))
