"""Campaigns: which bits of which layers are hit, how, how often and for how long."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from simulator.analysis import persistence
from simulator.errors import ProfileError, UserError
from simulator.faults.allocation import Rule
from simulator.profile.document import Key
from simulator.profile.messages import checked
from simulator.profile.section import Section
from simulator.profile.suite import read_suite
from simulator.tasks.task import Task

FOLDER = "campaigns"
"""Below the folder of the built-in suites."""
MOST = 10_000_000
SHORT = 3
"""Frames; in fewer nothing can be said to persist."""
Bit = Annotated[int, Field(ge=0, le=31)]


class PersistenceSpec(BaseModel):
    """Which pixels of a video persist; see :class:`simulator.analysis.persistence.Rule`.

    ``window``: how many frames count, or how long, as in ``0.5 s``, where the data say how many
    frames a second has. ``of``: in so many of them a pixel is occupied; two thirds by default.
    ``radius``: pixels. The paper has 10 of 15 frames, half a second at 30 Hz.
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    window: (
        Annotated[int, Field(ge=SHORT, le=1000)]
        | Annotated[str, Field(pattern=r"^\d+(\.\d+)? s$", max_length=12)]
    ) = 15
    of: Annotated[int, Field(ge=1)] | None = None
    radius: Annotated[float, Field(ge=0, le=10_000)] = 50.0

    def rule(self, rate: float | None) -> persistence.Rule:
        """Return the rule of the tracker.

        Args:
            rate: frames a second of the data; None where it is not known.

        Raises:
            UserError: the window is a time and the rate is not known, or too few frames are in it.
        """
        window = self.window
        if isinstance(window, str):
            if rate is None:
                raise UserError(
                    f"window: {window}: how many frames a second the data have is not known; write "
                    "`rate` in the data card, or a number of frames here"
                )
            window = round(float(window.removesuffix(" s")) * rate)
            if window < SHORT:
                raise UserError(
                    f"window: {self.window} is {window} of the data's frames, {rate:g} a second; "
                    f"{SHORT} are needed"
                )
        least = -(-2 * window // 3) if self.of is None else self.of
        if least > window:
            raise UserError(f"of: {least} of {window} frames; at most {window}")
        return persistence.Rule(window, least, self.radius)


class CampaignSpec(BaseModel):
    """The document.

    ``targets`` are what of a layer is hit. A ``transient`` fault lasts for one inference on one
    sample; a ``permanent`` one for all samples. ``bits`` are counted from 0, the least significant
    one; ``exponent`` is that of floating point, and all bits of integers. ``layers`` and
    ``operators`` are names or patterns like ``block_3*``; all by default. Elements and bits are
    drawn uniformly; ``strata`` with the allocation ``equal`` gives each stratum the same number of
    faults, with ``neyman`` most to those that vary most, see :mod:`simulator.faults.allocation`;
    figures then weigh them by their share of all bits. ``at_once`` bits are hit in one inference,
    each of any layer. ``verdict`` are options of the task's
    :attr:`simulator.tasks.impact.Impact.Options`; ``persistence`` says what stays over a video.
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    schema_: Literal[1] = Field(alias="schema")
    name: str
    summary: str
    source: str = ""
    targets: Annotated[list[Literal["weights", "biases", "neurons", "input"]], Field(min_length=1)]
    kind: Literal["flip", "stuck_at_0", "stuck_at_1"] = "flip"
    lasts: Literal["transient", "permanent"] = "transient"
    faults: Annotated[int, Field(ge=1, le=MOST)] = 1000
    at_once: Annotated[int, Field(ge=1, le=64)] = 1
    bits: Literal["all", "exponent"] | Annotated[list[Bit], Field(min_length=1)] = "all"
    layers: list[str] = []
    operators: list[str] = []
    strata: Literal["none", "bit", "layer", "operator"] = "none"
    allocation: Rule = "proportional"
    verdict: dict[str, object] = {}
    persistence: PersistenceSpec = PersistenceSpec()


@dataclass(frozen=True, slots=True)
class Campaign:
    """A checked campaign.

    Attributes:
        spec: the document.
        path: where it was read.
        where: gives ``file:line`` of a key of the document.
    """

    spec: CampaignSpec
    path: Path
    where: Callable[[Key], str]

    @property
    def permanent(self) -> bool:
        """Whether a fault lasts for all samples."""
        return self.spec.lasts == "permanent"

    def options(self, task: Task) -> Section:
        """Return what it asks of a task's verdicts.

        Raises:
            ProfileError: the task has no such option; each problem as ``file:line: key: what``.
        """
        shape, asked = task.Impact.Options, self.spec.verdict
        if asked and not shape.model_fields:
            place = ("verdict",)
            raise ProfileError(
                [f"{self.where(place)}: verdict: a verdict on {task.name} has no options"]
            )
        found = checked(shape, asked, self.where, "campaign", place=("verdict",))
        try:
            task.Impact.check(task, found)
        except UserError as error:
            raise ProfileError([f"{self.where(('verdict',))}: verdict.{error}"]) from error
        return found

    def rule(self, rate: float | None) -> persistence.Rule:
        """Return what persists over frames of which there are so many a second.

        Raises:
            ProfileError: as ``file:line: key: what``; see :meth:`PersistenceSpec.rule`.
        """
        try:
            return self.spec.persistence.rule(rate)
        except UserError as error:
            place = self.where(("persistence",))
            raise ProfileError([f"{place}: persistence.{error}"]) from error

    def described(self) -> dict[str, object]:
        """Return what a manifest says of it: the document with all defaults."""
        return self.spec.model_dump(by_alias=True)


def load_campaign(reference: str, faults: int | None = None) -> Campaign:
    """Load a campaign: a path with or without ``.yaml``, or a built-in name.

    Args:
        reference: the path or the name.
        faults: so many instead of the document's number.

    Raises:
        ProfileError: it does not exist or is malformed; each problem as ``file:line: key: what``.
    """
    spec, document = read_suite(reference, CampaignSpec, "campaign", FOLDER)
    refused = []
    rule, place = spec.allocation, document.where(("allocation",))
    if rule != "proportional" and spec.strata == "none":
        refused.append(f"{place}: allocation: {rule} needs strata: bit, layer or operator")
    if rule != "proportional" and spec.lasts == "permanent":
        refused.append(f"{place}: allocation: {rule} is for transient faults")
    if rule != "proportional" and spec.at_once > 1:
        refused.append(f"{place}: allocation: {rule} is for one bit at once")
    if isinstance(spec.bits, list) and len(set(spec.bits)) < len(spec.bits):
        refused.append(f"{document.where(('bits',))}: bits: one of them is there twice")
    if faults is not None and not 1 <= faults <= MOST:
        refused.append(f"--faults {faults}: a number from 1 to {MOST:,} expected")
    if refused:
        raise ProfileError(refused)
    changed = spec if faults is None else spec.model_copy(update={"faults": faults})
    return Campaign(changed, document.path, document.where)
