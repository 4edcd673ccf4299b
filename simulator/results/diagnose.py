"""``summary.json`` of ``simulate diagnose``: which part of two stacks differs, and by what name."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, JsonValue

from simulator.results.layers import LayersFigures
from simulator.results.shared import ModelSummary, Profile
from simulator.typed import About, ResultModel, Share, Unit

PartName = Literal["front end", "network", "postprocessing"]
State = Literal["equal", "rounding", "differs", "unknown"]


class Gap(ResultModel):
    """How far the values of two stacks are apart, over all samples."""

    values: Share = Field(description="values that differ")
    mean: float | None = Field(description="mean absolute difference; None: shapes differ")
    largest: float | None = Field(description="largest absolute difference, likewise")
    relative: float | None = Field(
        description="largest difference by the largest value of its array, likewise"
    )
    unit: str = Field(description="of mean and largest; empty: that of the values themselves")


class PartResult(ResultModel):
    """What is known of one part of the two stacks."""

    part: PartName
    state: State = Field(
        description="equal: to the bit; rounding: within what the order of float32 arithmetic "
        "gives; unknown: the data do not tell"
    )
    told: list[str] = Field(description="the evidence, a sentence each")
    same: bool = Field(
        default=False, description="whether both stacks have the very same one, of one file"
    )
    assumed: bool = Field(
        default=False, description="so; and of a device whose input alone was recorded"
    )
    gap: Gap | None = Field(default=None, description="of what the part gives for equal inputs")
    alone: int | None = Field(
        default=None, description="answers that change where only this part is the deployment's"
    )
    repaired: int | None = Field(
        default=None,
        description="changed answers that this part takes back where only it is the training's; "
        "below 0: more change then",
    )
    share: Annotated[float | None, About(Unit.NUMBER)] = Field(
        default=None,
        description="its Shapley value: the changed answers that are its fair share; those of the "
        "three parts sum to all",
    )


class FindingResult(ResultModel):
    """One named difference; see :class:`simulator.diagnose.finding.Finding`."""

    part: PartName
    name: str
    evidence: list[str]
    certainty: Literal["exact", "rounding", "nearest", "none"]
    left: float | None
    change: dict[str, JsonValue]
    code: str


class Repair(ResultModel):
    """The deployment stack with every change that the findings name, as it really ran."""

    change: dict[str, JsonValue] = Field(
        description="fields of the deployment's profile, by dotted key; None: is left out"
    )
    before: dict[str, JsonValue] = Field(description="what the deployment's profile says there")
    of: str = Field(description="what was compared with the training stack: inputs, outputs, ...")
    state: State = Field(description="unknown: the changed stack does not run here")
    left: float | None = Field(description="largest difference that is left, as values are")
    changed: int | None = Field(description="answers that still differ; None: not known")
    why: str | None = Field(default=None, description="why it did not run")


class InputPictures(ResultModel):
    """What the network of each side saw of one sample; paths are below the run folder."""

    sample: str
    train: str
    deploy: str
    difference: str | None = Field(
        default=None, description="absolute, its largest white; None: the sizes differ"
    )


class DiagnoseSummary(ModelSummary):
    """Which part of a deployment stack is to blame, and what to change."""

    command: Literal["diagnose"] = "diagnose"
    train: Profile
    deploy: Profile
    unit: str = Field(description="what changed answers are counted in, in the singular")
    changed: int = Field(description="answers that differ from the training stack's")
    units: int = Field(description="answers that were compared")
    parts: list[PartResult]
    findings: list[FindingResult]
    layers: LayersFigures | None = Field(
        default=None, description="of the networks, where they differ; None: not compared"
    )
    notes: list[str] = Field(default_factory=list, description="what could not be done, and why")
    repair: Repair | None = Field(
        default=None, description="None: there is nothing to change, or nothing is known of it"
    )
    explained: bool = Field(
        description="whether nothing differs, or all that does is explained to the bit or to "
        "rounding"
    )
    inputs: InputPictures | None = Field(
        default=None, description="of the first sample that differs; None: none is a picture"
    )
    absent: int = Field(default=0, description="samples of the data that were not recorded")
