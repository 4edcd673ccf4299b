"""``summary.json`` of ``simulate explain``, ``sweep`` and ``worst``: many stacks, one measure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

from pydantic import ConfigDict, Field

from simulator.results.shared import ModelSummary, Profile, Summary
from simulator.typed import (
    About,
    Interval,
    Keys,
    Ms,
    PerSecond,
    Points,
    Probability,
    ResultModel,
    Share,
    Unit,
)

SHARE = About(Unit.SHARE, better=1)
"""The headline metric, under its own name."""


class Effect(ResultModel):
    """What an axis does to a figure, a fraction."""

    value: Points | None
    ci95: Interval = Field(description="95 % interval")
    p: Probability | None = Field(description="two-sided p-value against zero")


class AdjustedEffect(Effect):
    """An effect among several."""

    p_holm: Probability | None = Field(description="p after Holm's correction over the family")


class Interaction(AdjustedEffect):
    """What two axes do together beyond what each does alone."""

    axes: list[str]


Effects = Annotated[dict[str, Effect], Keys("axis")]


class Blame(ResultModel):
    """One figure, split among the axes."""

    total: Effect = Field(description="all axes swapped")
    swap_in: Effects = Field(description="each axis alone, in the training stack")
    swap_out: Effects = Field(description="what the deployment gets back if it is repaired")
    waterfall: Effects = Field(description="what each adds, one after the other")
    shapley: Annotated[dict[str, AdjustedEffect], Keys("axis")] = Field(
        description="fair shares, which sum to the total"
    )
    interactions: list[Interaction]
    family: int = Field(description="axes that Holm's correction is over")
    sampling_error: Points = Field(description="standard error from sampled permutations")
    residual: Points = Field(description="how far the shares miss the total by rounding")


class ExplainSummary(ModelSummary):
    """Every mixture of two stacks."""

    command: Literal["explain"] = "explain"
    unit: str = Field(description="what flips are counted in, in the singular")
    train: Profile
    deploy: Profile
    axes: list[str] = Field(description="those that were swapped; some as one, joined by +")
    null: list[str] = Field(description="axes that alone change no output")
    blame: Annotated[dict[str, Blame], Keys("blamed")] = Field(
        description="by figure: flip_rate and the headline metric, where they are known"
    )
    stacks: int = Field(description="that were run")
    unique_steps: int = Field(description="unique computations in the plan")


class Dropped(ResultModel):
    """An option that could no longer matter."""

    option: str = Field(
        description="COLUMN/OPTION; of a robustness run STACK/CONDITION; of a repair a stack"
    )
    samples: int = Field(description="that it was run on")
    why: str


class Early(ResultModel):
    """A run that dropped options as soon as they could no longer matter for its question."""

    question: Literal["gate", "worst-flips", "worst-drop", "cheapest"]
    alpha: Probability = Field(description="the probability of a wrong answer, at most")
    samples: int = Field(description="that were looked at, in a random order")
    of: int = Field(description="that there were")
    decided: bool = Field(description="false: all samples did not answer it")
    answer: list[str] = Field(
        description="options that pass; or that may be the worst, or the cheapest that passes"
    )
    dropped: list[Dropped] = Field(description="in this order")
    runs: int = Field(description="options times samples that were run")
    all_runs: int = Field(description="that a run in whole would have run")


class OptionFigures(ResultModel):
    """One option of a suite against the training stack.

    Open for the task's metrics and kinds of flips, which lie beside the fields here.
    """

    model_config = ConfigDict(extra="allow")
    OPEN: ClassVar[Mapping[str, About]] = {"metric": SHARE, "flips": About(Unit.COUNT)}

    samples: int | None = Field(
        default=None, description="that the figures are of; None: all that the sweep has"
    )
    drop: Points = Field(description="of the headline metric: trained less option")
    drop_ci95: Annotated[Interval, About(Unit.POINTS)] = Field(
        description="95 % interval of the drop"
    )
    p: Probability | None
    flips: int
    units: int
    flip_rate: Share = Field(description="0 where there is nothing that could flip")
    flip_ci95: Annotated[Interval | None, About(Unit.SHARE)]


class Column(ResultModel):
    """The options of one column of a suite."""

    options: dict[str, OptionFigures]
    mean_drop: Points
    max_drop: Points
    mean_flip_rate: Share
    max_flip_rate: Share


class Systematic(ResultModel):
    """RobustMQ's systematic metrics over all options."""

    mean_sr: Share | None = Field(alias="mean_SR", description="mean of the options' metrics")
    sni: Share | None = Field(alias="SNI", description="(trained - mean_SR) / trained")
    std: Points | None = Field(description="of the options' metrics, ddof = 1")
    acc_of: str = Field(alias="ACC_of", description="the stack whose metric is the measure")


class _Headline(ModelSummary):
    """Has the training stack's headline metric under the metric's own name."""

    model_config = ConfigDict(extra="allow")
    OPEN: ClassVar[Mapping[str, About]] = {"metric": SHARE}
    __pydantic_extra__: dict[str, float]

    @property
    def trained(self) -> float:
        """The headline metric of the training stack."""
        return float(self[self.metric])


class Costs(ResultModel):
    """What a stack of a sweep costs."""

    mib: Annotated[float, About(Unit.MIB, better=-1)] = Field(description="of its model file")
    bits: float | None = Field(
        default=None,
        description="of the file, by the numbers in the card's ONNX file; None where there is none",
    )
    ms: Ms = Field(description="median time of a sample's inference")
    tokens_per_second: PerSecond | None = Field(
        default=None, description="that it reads; None of other samples, and of different lengths"
    )


class SweepSummary(_Headline):
    """Every option of a suite."""

    command: Literal["sweep"] = "sweep"
    unit: str = Field(description="what flips are counted in, in the singular")
    suite: str
    train: Profile
    order: list[str] = Field(description="columns in the suite's order")
    columns: dict[str, Column]
    systematic: Systematic
    costs: dict[str, Costs] = Field(
        default_factory=dict,
        description="by stack, train or COLUMN/OPTION; empty where they were not asked for",
    )
    left_out: dict[str, str] = Field(
        description="options that do not apply to this model, as COLUMN/OPTION, and why"
    )
    unique_steps: int = Field(description="unique computations in the plan")
    early: Early | None = Field(
        default=None, description="which options were dropped early; None: every sample was to run"
    )


class PathStep(ResultModel):
    """One combination; the headline metric lies beside, under its name."""

    model_config = ConfigDict(extra="allow")
    OPEN: ClassVar[Mapping[str, About]] = {"metric": SHARE}
    __pydantic_extra__: dict[str, float]

    added: str = Field(description="the option that was added last, as COLUMN/OPTION")
    drop: Points = Field(description="of the headline metric: trained less this combination")
    drop_ci95: Annotated[Interval | None, About(Unit.POINTS)] = Field(
        default=None, description="95 % interval of the drop"
    )
    p: Probability | None = Field(default=None, description="two-sided p-value against no drop")
    family: int = Field(default=1, description="of how many combinations it was the worst")
    samples: int | None = Field(
        default=None, description="that the figures are of; None: all that the run has"
    )
    alone: Points | None = Field(
        default=None, description="drop by the option that was added last, by itself"
    )


class Combination(PathStep):
    """The worst of all combinations."""

    picks: list[str] = Field(description="its options, as COLUMN/OPTION")


class WorstSummary(_Headline):
    """A suite's options combined step by step."""

    command: Literal["worst"] = "worst"
    suite: str
    train: Profile
    path: list[PathStep]
    combinations: int = Field(description="how many there are")
    exhaustive: Combination | None = Field(description="None where they are too many to try all")
    left_out: dict[str, str] = Field(
        description="options that do not apply to this model, as COLUMN/OPTION, and why"
    )
    early: list[Early] | None = Field(
        default=None,
        description="by step, the last one of all combinations: which were dropped early, each "
        "step with its part of the 5 %; None: every sample was to run",
    )


class StepSummary(Summary):
    """One step of ``simulate worst``, in a folder of its own."""

    command: Literal["step"] = "step"
    metric: str
    values: dict[str, Share] = Field(description="the headline metric of each stack")
