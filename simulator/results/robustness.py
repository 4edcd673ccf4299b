"""``summary.json`` of ``simulate robustness``: several stacks under many conditions."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from simulator.results.shared import ConditionDescription, ModelSummary, Running, Skipped
from simulator.results.suites import AdjustedEffect, Early, OptionFigures
from simulator.typed import About, Interval, Keys, Named, ResultModel, Share, Unit


class Figure(ResultModel):
    """A figure with its interval: exact where it counts samples, else of the bootstrap."""

    value: float
    ci95: Interval = Field(description="95 % interval")


SHARE, POINTS = About(Unit.SHARE, better=1), About(Unit.POINTS)
LOST = About(Unit.SHARE, better=-1)
RATIO, LISTS = About(Unit.RATIO, better=-1), About(better=-1)
"""By that of the reference; a distance of two lists."""
ByCondition = Annotated[dict[str, Figure | None], Keys("condition")]
BySequence = Annotated[dict[str, Figure | None], Keys("sequence")]
ByCategory = Annotated[dict[str, Figure | None], Keys("any category")]
"""By name; None where the figure is not defined."""


class ConditionRow(ResultModel):
    """One row of the table."""

    category: str
    levels: list[ConditionDescription] = Field(description="the mildest first")
    in_means: bool = Field(description="whether the means over conditions count it")


class StackRobustness(Running):
    """One stack under every condition; ``nr`` to ``ce`` are defined in analysis/robustness.py.

    One that did not converge (see ``nc`` of the summary) has no figures but ``clean``.
    """

    method: str = Field(description="what made the numbers: fp32, a cast, a quantizer")
    bits: int = Field(description="of weights; of activations too, where a quantizer made them")
    clean: Annotated[Figure, SHARE] = Field(description="the headline metric without a condition")
    levels: Annotated[dict[str, list[float]], Keys("condition")] = Field(
        description="the metric at each severity; empty where the stack did not converge"
    )
    nr: Annotated[ByCondition, SHARE] = Field(
        alias="NR", description="mean of the metric over severities"
    )
    nci: Annotated[ByCondition, LOST] = Field(alias="NCI", description="(clean - NR) / clean")
    ce: Annotated[ByCondition, RATIO] = Field(
        alias="CE", description="errors by those of the reference; CD of mIoU"
    )
    relative_ce: Annotated[ByCondition, RATIO] = Field(
        alias="relative_CE", description="added errors by those that the reference adds; rCD"
    )
    mnr: Annotated[Figure | None, SHARE] = Field(alias="mNR", description="mean NR over conditions")
    mnci: Annotated[Figure | None, LOST] = Field(
        alias="mNCI", description="mean NCI over conditions"
    )
    mce: Annotated[Figure | None, RATIO] = Field(
        alias="mCE", description="mean CE over conditions; mCD"
    )
    relative_mce: Annotated[Figure | None, RATIO] = Field(
        alias="relative_mCE", description="mean relative CE over conditions; mrCD"
    )
    category_ce: Annotated[ByCategory, RATIO] = Field(
        default_factory=dict,
        alias="category_CE",
        description="mean CE over the conditions of a category; CD of mIoU",
    )
    category_relative_ce: Annotated[ByCategory, RATIO] = Field(
        default_factory=dict,
        alias="category_relative_CE",
        description="mean relative CE of a category; rCD of mIoU",
    )


class ConditionPictures(ResultModel):
    """One image under every condition, as each network saw it."""

    sample: str
    cells: dict[str, dict[str, str]] = Field(
        description="by condition (``clean`` without one) and stack: a PNG below the run folder"
    )


Budgets = Annotated[dict[str, Figure | None], Keys("budget")]
"""By the number of the budget, from 1, the smallest first."""
ByBudget = Annotated[dict[str, Budgets], Keys("condition")]
"""By the name of the attack and the number of the budget."""


class AttackedStack(ResultModel):
    """One stack under attacks, against the same file without the attack.

    A budget that 8 bits cannot carry has no figures: see ``not_carried``.
    """

    unattacked: Annotated[ByCondition, SHARE] = Field(
        description="accuracy on the file without the attack: resized and saved as the attacked one"
    )
    ar: Annotated[ByBudget, SHARE] = Field(
        alias="AR", description="accuracy under the attack, over all samples"
    )
    ar_clean_correct: Annotated[ByBudget, SHARE] = Field(
        alias="AR_clean_correct",
        description="likewise, over the samples that the stack answers correctly unattacked",
    )
    aai: Annotated[ByBudget, LOST] = Field(
        alias="AAI", description="(unattacked - AR) / unattacked"
    )
    mean_aai: Annotated[ByCondition, LOST] = Field(
        default_factory=dict,
        alias="mean_AAI",
        description="(unattacked - mean AR over budgets) / unattacked",
    )
    wcar: Annotated[dict[str, Budgets], Keys("category"), SHARE] = Field(
        alias="WCAR",
        description="for each budget, the share that is correct unattacked and under every attack",
    )


class AttackedModel(ResultModel):
    """What the attacked model itself answers, as a share of correct answers for each budget."""

    clean: list[float] = Field(description="before the attack, on the reference's pixels")
    exact: list[float] = Field(description="under the attack in float")
    rounded: list[float] = Field(description="after the rounding to 8 bits, what stacks get")


class Attacks(ResultModel):
    """The categories of a suite that hold attacks alone."""

    gradient: str = Field(description="the file whose gradient was followed, and by what")
    stacks: Annotated[dict[str, AttackedStack], Keys("stack")]
    model: Annotated[dict[str, AttackedModel], Keys("condition")]
    not_carried: list[str] = Field(
        description="attacks whose budget is below one level of 8 bits: in no figure and no mean"
    )


Interactions = Annotated[dict[str, AdjustedEffect], Keys("condition")]


class AgainstModel(ResultModel):
    """A model held against the reference model, on the samples that went through both.

    Each stack is compared with the same stack of the reference. ``clean`` is among the conditions:
    the metric without one, less the reference's.
    """

    model: str = Field(description="the reference model")
    samples: int = Field(description="that went through both")
    interaction: Annotated[
        dict[str, Annotated[dict[str, AdjustedEffect], Keys("clean or condition")]],
        Keys("stack"),
        Named(),
    ] = Field(description="how much more a condition moves the metric than the reference's")
    mean_interaction: Annotated[dict[str, AdjustedEffect], Keys("stack")] = Field(
        description="the mean of it over conditions"
    )
    family: int = Field(description="conditions, clean among them, times stacks: Holm's family")


class SequenceRow(ResultModel):
    """One perturbation sequence."""

    condition: str = Field(description="the condition of a frame, without the frame's number")
    frames: int
    noise: bool = Field(description="whether frames are compared with the first, not one before")
    difficulty: int = Field(
        description="how many frames apart two compared frames are; of noise, how strong it is"
    )


class StackSequences(ResultModel):
    """One stack on every sequence; the figures are defined in analysis/robustness.py."""

    fp: Annotated[BySequence, LOST] = Field(
        alias="FP", description="flip probability; None where the stack did not converge"
    )
    fr: Annotated[BySequence, RATIO] = Field(
        alias="FR", description="flip rate: FP by the reference's; None where that is 0"
    )
    ut5d: Annotated[BySequence, LISTS] = Field(
        alias="uT5D", description="distance of the lists of five best classes, 0 to 15"
    )
    t5d: Annotated[BySequence, RATIO] = Field(
        alias="T5D", description="uT5D by the reference's; None where that is 0 or not known"
    )
    mfp: Annotated[Figure | None, LOST] = Field(alias="mFP", description="mean FP over sequences")
    mfr: Annotated[Figure | None, RATIO] = Field(alias="mFR", description="mean FR over sequences")
    mut5d: Annotated[Figure | None, LISTS] = Field(
        alias="muT5D", description="mean uT5D over sequences"
    )
    mt5d: Annotated[Figure | None, RATIO] = Field(
        alias="mT5D", description="mean T5D over sequences"
    )


class Sequences(ResultModel):
    """Several stacks on perturbation sequences; intervals are as in ``Figure``."""

    reference: str = Field(description="what FR and T5D are relative to: a stack or a model")
    rows: Annotated[dict[str, SequenceRow], Keys("sequence")]
    stacks: Annotated[dict[str, StackSequences], Keys("stack"), Named()]
    interaction: Annotated[
        dict[str, Annotated[dict[str, AdjustedEffect], Keys("sequence")]], Keys("other stack")
    ] = Field(description="FP less the first stack's; above 0: answers flip more often")
    mean_interaction: Annotated[dict[str, AdjustedEffect], Keys("other stack")] = Field(
        description="mFP less the first stack's"
    )
    family: int = Field(description="sequences times stacks that Holm's correction is over")


class StackNoise(ResultModel):
    """One stack with other decoders and resizers, on clean samples."""

    sr: Annotated[dict[str, Figure | None], Keys("option"), SHARE] = Field(
        alias="SR", description="the metric with each option"
    )
    mean_sr: Annotated[Figure | None, SHARE] = Field(
        alias="mean_SR", description="mean SR over options"
    )
    sni: Annotated[Figure | None, LOST] = Field(
        alias="SNI", description="(clean - mean_SR) / clean of the stack"
    )
    std: Annotated[Figure | None, POINTS] = Field(
        description="of SR over options, ddof = 1; None for one option"
    )
    same: list[str] = Field(description="options that are the stack itself")
    left_out: dict[str, str] = Field(description="options that cannot be run, and why")


class SystemNoise(ResultModel):
    """System noise; intervals are as in ``Figure``."""

    suite: str = Field(description="of the options")
    stacks: Annotated[dict[str, StackNoise], Keys("stack"), Named()]


class NoiseLoss(ResultModel):
    """What one kind of noise takes from a stack, on average over its conditions."""

    left: Annotated[Figure | None, SHARE] = Field(
        description="the metric under it: mean AR, mNR, mean SR; None of sequences"
    )
    lost: Annotated[Figure | None, LOST] = Field(
        description="the share of the clean metric that is lost; of sequences mFP"
    )
    more_left: AdjustedEffect | None = Field(
        description="left, less the first stack's; Holm's family is all stacks and kinds"
    )
    more_lost: AdjustedEffect | None = Field(description="lost, less the first stack's; likewise")


class RobustnessSummary(ModelSummary):
    """Several stacks under the conditions of a suite.

    A run that dropped options (``early``) has no figures that follow from several conditions, which
    would be of different samples; its figures are in ``cells``.
    """

    command: Literal["robustness"] = "robustness"
    unit: str = Field(description="what flips are counted in, in the singular")
    suite: str
    where: str = Field(description="of an image, where the conditions act: original or crop224")
    reference: str = Field(description="what CE is relative to: a stack, or a published model")
    rows: Annotated[dict[str, ConditionRow], Keys("condition")]
    stacks: Annotated[dict[str, StackRobustness], Keys("stack"), Named()]
    interaction: Annotated[dict[str, Interactions], Keys("other stack")] = Field(
        description="how much more a condition moves the metric than on the first stack"
    )
    mean_interaction: Annotated[dict[str, AdjustedEffect], Keys("other stack")] = Field(
        description="the mean of it over conditions"
    )
    flips: Annotated[
        dict[str, Annotated[dict[str, Share], Keys("condition")]], Keys("other stack")
    ] = Field(description="share of answers under a condition that differ from the first stack's")
    attacks: Attacks | None = Field(default=None, description="None: the suite has no attacks")
    family: int = Field(description="conditions times stacks that Holm's correction is over")
    against: AgainstModel | None = Field(
        default=None, description="None: this is the reference model, or the run has none"
    )
    sequences: Annotated[Sequences | None, Named()] = Field(
        default=None, description="None: the suite has none"
    )
    system_noise: Annotated[SystemNoise | None, Named()] = Field(
        default=None, description="None: the suite has none"
    )
    losses: Annotated[
        dict[str, Annotated[dict[str, NoiseLoss], Keys("kind of noise")]], Keys("stack")
    ] = Field(
        default_factory=dict,
        description="what attacks, corruptions, system noise and sequences take from each stack",
    )
    nc: dict[str, str] = Field(
        default_factory=dict,
        description="stacks that did not converge (NC), and why it is said; they have no figures",
    )
    skipped_samples: list[Skipped] = Field(description="the first of those that were skipped")
    unique_steps: int = Field(description="unique computations in the plan")
    pictures: ConditionPictures | None = Field(
        default=None, description="None: not of images, or resumed after the first sample"
    )
    early: Early | None = Field(
        default=None, description="which cells were dropped early; None: every sample was to run"
    )
    cells: dict[str, OptionFigures] = Field(
        default_factory=dict,
        description="with early, by STACK/CONDITION: against the first stack under that condition",
    )
