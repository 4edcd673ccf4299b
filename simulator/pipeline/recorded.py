"""Steps that look an answer up in a recording of a real device."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from simulator.contract import Stage, clock
from simulator.data.folder import Item
from simulator.data.recording import Recording, load_recording
from simulator.errors import DataError, UserError
from simulator.model.card import Card
from simulator.pipeline.inference import answering, inferred
from simulator.pipeline.plan import Sample, Step
from simulator.profile.implementations import Choices
from simulator.profile.load import Profile

_KINDS = {Stage.DECODE: ("tensors",), Stage.RUNTIME: ("outputs", "predictions")}


def recording(profile: Profile, choices: Choices, stage: str) -> Recording | None:
    """Return the recording that plays a stage of a profile, if one does.

    A relative path starts at the folder of the document that has it, or at the current one.

    Raises:
        DataError: the recording cannot be used, or is of another kind.
    """
    choice = choices[stage]
    if getattr(choice.offer.make, "takes", None) != "recording":
        return None
    section = "decode" if stage == Stage.DECODE else "runtime"
    where = profile.where((section, "recording"))
    written = Path(choice.options["recording"])
    beside = Path(where.rpartition(":")[0]).parent / written
    found = load_recording(beside if beside.is_file() else written)
    if found.spec.kind not in _KINDS[stage]:
        raise DataError(
            f"{where}: {section}.recording: {found.path} holds {found.spec.kind}; "
            f"{' or '.join(_KINDS[stage])} expected"
        )
    return found


def tensors(found: Recording) -> list[Step]:
    """Return the steps from a file's name to the recorded input of the network."""
    return _steps(found, "decode", found.array)


def answers(found: Recording, profile: Profile, card: Card, outputs: tuple[str, ...]) -> list[Step]:
    """Return the steps from a file's name to the recorded answer.

    Args:
        found: the recording.
        profile: the stack that was recorded.
        card: the model card.
        outputs: the outputs that it needs.

    Raises:
        DataError: predictions were recorded, and the task's are more than a class index.
    """
    if found.spec.kind == "outputs":
        return [
            *_steps(found, "infer", lambda item: inferred(found.outputs(item, outputs))),
            answering(profile, card),
        ]
    try:
        card.task.recorded(0, math.nan, math.nan)
    except UserError as error:
        raise DataError(f"{found.path}: {error}") from error
    return [
        *_steps(found, "infer", found.prediction),
        Step(
            "postprocess",
            ["recorded prediction"],
            lambda row, _: (
                inferred({"prediction": np.array(row[:1], np.int64)}).digest,
                card.task.recorded(*row),
            ),
        ),
    ]


def _steps(found: Recording, stage: str, look_up: Callable[[Item], Any]) -> list[Step]:
    """A step for every stage of which a latency was recorded; the last one has the value."""
    recorded = found.stages
    if not recorded:
        return [_step(found, stage, look_up, timed=False)]
    *before, last = recorded
    return [
        *(_step(found, stage, lambda item: None, timed=True) for stage in before),
        _step(found, last, look_up, timed=True),
    ]


def _step(found: Recording, stage: str, look_up: Callable[[Item], Any], timed: bool) -> Step:
    def apply(_: Any, sample: Sample) -> Any:
        start = time.perf_counter_ns()
        value = look_up(sample.item)
        if timed:
            latency = found.latency(sample.item, stage)
            clock.exclude(time.perf_counter_ns() - start - latency)
        return value

    return Step(stage, ["recorded", stage, found.digest], apply, timed=timed)
