"""``checkpoints.json``: finished sweeps of several models beside each other, by recipe."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from simulator.results.shared import Failed, Failure, Gate, Profile
from simulator.typed import Interval, ResultModel


class Share(ResultModel):
    """A figure with its interval: exact where it counts samples, else of the bootstrap."""

    value: float
    ci95: Interval = Field(description="95 % interval, of these checkpoints")


class CheckpointColumn(ResultModel):
    """What a column of the suite does to a checkpoint, or on average to those of a recipe."""

    drop: Share = Field(description="of the headline metric: trained less option, mean of options")
    max_drop: float = Field(description="of the worst option; too high, as the largest of several")
    worst: str = Field(description="that option; of a recipe that of its worst checkpoint")
    flip_rate: Share = Field(description="mean of options; 0 where there is nothing to flip")
    std: float | None = Field(
        description="standard deviation of drop between the checkpoints of a recipe, ddof = 1; "
        "None of one checkpoint"
    )


class Checkpoint(ResultModel):
    """One model."""

    model: str = Field(description="name of the model card")
    recipe: str = Field(description="of the card's checkpoint section; else the model's name")
    seed: int | None
    run: str = Field(description="folder of the sweep")
    trained: Share = Field(description="the headline metric of the training stack")
    columns: dict[str, CheckpointColumn]


class Recipe(ResultModel):
    """The checkpoints of one recipe, on average."""

    checkpoints: int
    trained: Share
    columns: dict[str, CheckpointColumn]


class Tested(ResultModel):
    """What a recipe reaches on each option of a column: SysNoise's Tables 7 to 9."""

    recipe: str
    column: str
    options: dict[str, float] = Field(description="the headline metric, mean over checkpoints")
    mean: float = Field(description="of the options")
    std: float = Field(description="of the options, ddof = 1; mean over checkpoints")
    less_mean: Share | None = Field(description="less that of the first recipe; None of it itself")
    less_std: Share | None = Field(description="likewise: below 0 options are closer together")


class Comparison(ResultModel):
    """How far a recipe's figure lies above the first recipe's, twice: two questions."""

    recipe: str
    column: str
    figure: Literal["drop", "flip_rate"]
    value: float = Field(description="this recipe less the first one: above 0 it loses more")
    ci95: Interval = Field(description="95 % interval of these very checkpoints: other samples")
    p: float
    p_holm: float = Field(description="after Holm's correction over all rows of the same figure")
    any_ci95: Interval | None = Field(
        description="95 % interval of the recipe: other samples and other checkpoints; None where "
        "a recipe has but one"
    )
    any_p: float | None
    any_p_holm: float | None


class Checkpoints(ResultModel):
    """Several models in one suite, by the recipe of their training."""

    schema_: Literal[1] = Field(default=1, alias="schema", description="of this document")
    verdict: list[str] = Field(description="what differs, a sentence each, the answer first")
    suite: str
    train: Profile
    task: str
    metric: str = Field(description="the task's headline metric")
    samples: int = Field(description="that went through every stack of every model")
    sample_unit: str
    failed: dict[str, Failed] = Field(
        default_factory=dict,
        description="by model (by the folder of its run where two have one name): samples that one "
        "of its stacks cannot answer while some stack of some model can; they are in no figure",
    )
    failures: list[Failure] = Field(
        default_factory=list,
        description="their reasons, that of most samples first; stack is the model",
    )
    gate: Gate = Field(
        default_factory=Gate, description="fails where a model fails on more samples than it may"
    )
    options: dict[str, list[str]] = Field(
        description="of each column, in the suite's order: those that every model ran"
    )
    left_out: list[str] = Field(description="options that some model did not run, COLUMN/OPTION")
    ungrouped: list[str] = Field(
        default_factory=list, description="models that are in no figure: their recipe fits no group"
    )
    first: str = Field(description="the recipe that the others are compared with")
    checkpoints: list[Checkpoint]
    recipes: dict[str, Recipe]
    comparisons: list[Comparison]
    tested: list[Tested] = Field(
        default_factory=list, description="of each column of two options and more, every recipe"
    )
