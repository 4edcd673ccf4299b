"""Recipes, and the stack of them, that look values up in a recording made on a real device."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from simulator.conditions.condition import AppliedCondition
from simulator.contract import Effective, Stage, clock
from simulator.contract.model import of_shape
from simulator.contract.recipe import Apply, Boundary, Chain, Context, Recipe, Runtimes
from simulator.data.folder import Item
from simulator.data.recording import Recording, load_recording
from simulator.errors import DataError, UserError
from simulator.modalities.card import CardSpec
from simulator.model.artifact import Artifact
from simulator.model.card import Card
from simulator.model.onnxfile import ModelFile
from simulator.notices import Kind, Notice
from simulator.pipeline.adapted import refuse_together
from simulator.pipeline.inference import Answered, answering, finishing, inferred
from simulator.pipeline.stack import ResolvedProfile, Stack
from simulator.profile.implementations import Choices
from simulator.profile.profile import Profile
from simulator.tasks.task import Task

KINDS = {Stage.FRONT_END: ("tensors",), Stage.RUNTIME: ("outputs", "predictions")}
"""The kinds of recordings that replace a stage; it has the name of its section."""


def recording(profile: Profile, choices: Choices, stage: str) -> Recording | None:
    """Return the recording that replaces a stage of a profile; None where the stage is computed.

    A relative path is looked up in the folder of the profile that contains it, then in the current
    folder.

    Raises:
        DataError: the recording cannot be used, or is of another kind.
    """
    choice = choices.get(stage)
    if choice is None or getattr(choice.offer.make, "takes", None) != "recording":
        return None
    where = profile.where((stage, "recording"))
    written = Path(choice.options["recording"])
    beside = Path(where.rpartition(":")[0]).parent / written
    found = load_recording(beside if beside.is_file() else written)
    if found.spec.kind not in KINDS[stage]:
        raise DataError(
            f"{where}: {stage}.recording: {found.path} holds {found.spec.kind}; "
            f"{' or '.join(KINDS[stage])} expected"
        )
    return found


def recordings(profile: Profile, choices: Choices) -> dict[str, Recording]:
    """Return every recording that replaces a stage of a profile; see :func:`recording`."""
    found = {stage: recording(profile, choices, stage) for stage in KINDS}
    return {stage: one for stage, one in found.items() if one is not None}


@dataclass(frozen=True, eq=False)
class LookUp(Recipe):
    """Looks up a recorded value, and the recorded latency of a stage.

    Attributes:
        recording: what was recorded.
        what: ``tensor``, ``outputs`` or ``prediction``; empty for a stage with a latency only.
        outputs: names of the outputs that are needed.
        stage: the stage that the latency belongs to.
        timed: whether a latency was recorded.
    """

    recording: Recording
    what: str
    outputs: tuple[str, ...]
    stage: str
    timed: bool

    def identity(self) -> Any:
        """Return the stage and the recording."""
        return ["recorded", self.stage, self.recording.digest]

    @property
    def gives(self) -> Boundary | None:  # type: ignore[override]
        """The network's input or outputs."""
        return {"tensor": Boundary.INPUT, "outputs": Boundary.OUTPUTS}.get(self.what)

    def open(self, runtimes: Runtimes) -> Apply:
        """Return what reads the value in the recording."""
        found = self.recording
        look_up: Callable[[Any], Any] = {
            "tensor": found.array,
            "outputs": lambda item: inferred(found.outputs(item, self.outputs)),
            "prediction": found.prediction,
            "": lambda item: None,
        }[self.what]  # type: ignore[assignment]

        def apply(_: Any, context: Context) -> Any:
            start = time.perf_counter_ns()
            value = look_up(context.item)
            if self.timed:
                latency = found.latency(context.item, self.stage)
                clock.exclude(time.perf_counter_ns() - start - latency)
            return value

        return apply


@dataclass(frozen=True, eq=False)
class RecordedAnswer(Recipe):
    """Turns a recorded prediction into the task's own form.

    Attributes:
        task: that it is a prediction of.
    """

    task: Task
    stage = "postprocess"

    def identity(self) -> Any:
        """Return a constant: all that differs is in the recipes before it."""
        return ["recorded prediction"]

    def open(self, runtimes: Runtimes) -> Apply:
        """Return the task's method."""

        def apply(row: Any, _: Context) -> Answered:
            digest = inferred({"prediction": np.array(row[:1], np.int64)}).digest
            return Answered(digest, self.task.recorded(*row))

        return apply


def tensors(found: Recording) -> list[Recipe]:
    """Return the steps from a sample's name to the recorded input of the network."""
    return _steps(found, "front_end", "tensor")


def check_tensors(
    found: Recording, card: Card, source: ModelFile, items: Sequence[Item], spec: CardSpec
) -> None:
    """Refuse recorded inputs that are not of this network and these samples.

    Raises:
        DataError: they are not.
    """
    found.check(source.digest, items)
    check_shape(found, card, items[0], spec)


def check_shape(found: Recording, card: Card, item: Item, spec: CardSpec) -> None:
    """Refuse recorded inputs of another shape than the network's; see :func:`check_tensors`."""
    (feed,) = card.modality.feeds(spec)
    shape = found.array(item).shape
    if not of_shape(shape, feed.shape):
        raise DataError(
            f"{found.path}: the model card expects float32 tensors of shape {feed.shape}; "
            f"that of {item.name} is {shape}"
        )


def answers(
    found: Recording, profile: Profile, choices: Choices, card: Card, outputs: tuple[str, ...]
) -> list[Recipe]:
    """Return the steps from a sample's name to the recorded prediction.

    Args:
        found: the recording.
        profile: the stack that was recorded.
        choices: its implementations.
        card: the model card.
        outputs: names of the outputs that the card needs.

    Raises:
        DataError: class indices were recorded, and the task's predictions are something else.
    """
    if found.spec.kind == "outputs":
        card.refuse_second("recorded outputs are answers of")
        finish = finishing(profile, choices, card)
        return [*_steps(found, "infer", "outputs", outputs), *finish, answering(profile, card)]
    try:
        card.task.recorded(0, math.nan, math.nan)
    except UserError as error:
        raise DataError(f"{found.path}: {error}") from error
    return [*_steps(found, "infer", "prediction"), RecordedAnswer(card.task)]


def recorded_stack(
    found: Recording, side: str, chosen: ResolvedProfile, card: Card, source: ModelFile,
    items: Sequence[Item],
) -> Stack:  # fmt: skip
    """Return a stack whose predictions were recorded; nothing of it is run."""
    wanted = source.wanted(card)
    found.check(source.digest, items, tuple(wanted))
    effective = Effective({}, {"device": found.spec.device}, {"recording": found.spec.name})
    lines = [f"recorded on {found.spec.device}; its other sections describe it only"]
    if not found.stages:
        lines.append("its outputs were recorded without latencies")
    notices = tuple(Notice(Kind.RECORDED, line) for line in lines)
    artifact = Artifact(found.path, found.digest, "recording")
    chain = Chain(tuple(answers(found, *chosen, card, tuple(wanted))))
    return Stack(side, *chosen, chain, artifact, effective, notices)


def _steps(found: Recording, stage: str, what: str, outputs: tuple[str, ...] = ()) -> list[Recipe]:
    """A step for every stage with a recorded latency; the last one returns the value."""
    recorded = found.stages
    if not recorded:
        return [LookUp(found, what, outputs, stage, timed=False)]
    *before, last = recorded
    return [
        *(LookUp(found, "", (), stage, timed=True) for stage in before),
        LookUp(found, what, outputs, last, timed=True),
    ]


def refuse_unreached(side: str, chosen: tuple[Profile, Choices], under: AppliedCondition) -> None:
    """Refuse a condition where it cannot act: a stack was recorded, or is code.

    Raises:
        UserError: it was or is, or no network of it can be asked for one sample.
    """
    if recordings(*chosen):
        raise UserError(
            f"--under {under.condition.text}: {side} was recorded on a device, so the "
            "condition cannot act on it; leave out --under, or use a stack that runs here"
        )
    acts_on, choices = under.condition.acts_on, chosen[1]
    whole = choices[Stage.RUNTIME].offer.make.takes == "sample"
    if under.condition.asks_each:
        if whole:
            raise UserError(
                f"--under {under.condition.text}: {side} is code that shows no network; leave out "
                "on=each"
            )
        refuse_together(side, *chosen, f"{under.condition.name} asks")
    hidden = whole and acts_on is not Boundary.SOURCE
    if hidden or (Stage.FRONT_END in choices and acts_on is Boundary.FRAME):
        raise UserError(
            f"--under {under.condition.text}: it acts on the {acts_on}, which is inside the code "
            f"of {side}; use a condition that acts on the source"
        )
