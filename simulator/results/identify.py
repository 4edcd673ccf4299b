"""``summary.json`` of ``simulate identify``: which stack made a recording."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from simulator.results.shared import ModelSummary, Profile
from simulator.typed import ResultModel


class IdentifiedAxis(ResultModel):
    """What the recording says of one axis of the space."""

    option: str = Field(description="the identified one")
    applies: bool = Field(description="false: no option of this axis changes anything here")
    equal: list[str] = Field(description="others that alone give the same bits on all images")
    together: list[str] = Field(description="others that do so only with another axis changed")
    next: str | None = Field(default=None, description="the nearest option that differs")
    mean: float | None = Field(default=None, description="its mean absolute difference")
    largest: float | None = Field(default=None, description="its largest absolute difference")
    seen_in: str | None = Field(default=None, description="the image where it differs most")


class RunnerUp(ResultModel):
    """A stack that is near, and what tells it from the identified one."""

    changes: dict[str, str] = Field(description="its options by axis, where they differ")
    equal: int = Field(description="images on which it has the recorded bits")
    mean: float | None
    largest: float | None
    seen_in: str | None = Field(description="the image where it differs most")


class Telling(ResultModel):
    """The probe image that would tell apart most of what these images do not."""

    probe: str = Field(description="of simulate recordings probes")
    about: str
    groups: int = Field(description="into how many groups it parts the stacks")
    stacks: int = Field(description="stacks that these images do not tell apart, as far as tried")


class IdentifySummary(ModelSummary):
    """The stack that reproduces a recording."""

    command: Literal["identify"] = "identify"
    recording: str = Field(description="its name")
    device: str
    kind: Literal["outputs", "predictions", "tensors", "frames"]
    after: Literal["decode", "resize", "geometry"] | None = None
    base: Profile = Field(description="whose options were changed")
    exact: bool = Field(description="whether all images have the recorded bits or answers")
    ulps: int = Field(
        default=0,
        description="tensors count as equal within so many units in the last place of their "
        "largest value; 0: to the bit",
    )
    equal: int = Field(description="images that have")
    mean: float | None = Field(
        description="mean absolute difference; of predictions, by how much the logarithm of the "
        "recorded class's score falls short of the best one's; None: it cannot be compared"
    )
    largest: float | None = Field(description="largest difference, likewise")
    axes: dict[str, IdentifiedAxis]
    runners_up: list[RunnerUp] = Field(description="the nearest first")
    equal_stacks: int = Field(description="different stacks, this one included, that are as near")
    telling: Telling | None = Field(default=None, description="None: nothing is left to tell")
    compared: int = Field(description="different stacks that were compared")
    combinations: int = Field(description="of all options, those that cannot run included")
    stopped: bool = Field(description="whether the time was over before the search was")
    refused: dict[str, str] = Field(description="runtimes that cannot run the model, and why")
    absent: int = Field(description="images of the data that were not recorded")
