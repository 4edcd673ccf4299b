"""From the network's input to the answer: the last recipes of a stack."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from simulator.contract import Array, Runtime, clock
from simulator.contract.recipe import Apply, Boundary, Recipe, Runtimes
from simulator.errors import ModelError, SampleError, one_line
from simulator.modalities.modality import Placing
from simulator.model.artifact import Artifact
from simulator.model.card import Card
from simulator.profile.implementations import Choice
from simulator.profile.load import Profile
from simulator.tasks.task import Settings, Task

Outputs = Mapping[str, Array]


@dataclass(frozen=True, slots=True)
class Inferred:
    """What a network gave for one sample.

    Attributes:
        outputs: by the names of the model card; a tuple of these where a sample needed several
            inferences.
        digest: BLAKE2b of their bytes in that order: equal digests, equal bits.
    """

    outputs: Outputs | tuple[Outputs, ...]
    digest: str


@dataclass(frozen=True, slots=True)
class Answered:
    """The end of a chain.

    Attributes:
        digest: of the network's outputs.
        prediction: what the task makes of them.
    """

    digest: str
    prediction: Any


def inferred(outputs: Outputs | tuple[Outputs, ...]) -> Inferred:
    """Take outputs with their digest; the time that takes is no latency of the stack's."""
    start = time.perf_counter_ns()
    whole = hashlib.blake2b(digest_size=16)
    for one in outputs if isinstance(outputs, tuple) else (outputs,):
        for array in one.values():
            whole.update(np.ascontiguousarray(array).data)
    digest = whole.hexdigest()
    clock.exclude(time.perf_counter_ns() - start)
    return Inferred(outputs, digest)


@dataclass(frozen=True, eq=False)
class Infer(Recipe):
    """The network runs. An array is its one input, a mapping its inputs, a tuple several of these.

    Attributes:
        choice: the runtime.
        artifact: the file that it opens.
        inputs: of each input's name on the card, the runtime's name; one without a name is "".
        outputs: of each output that is wanted, by the card's name, the runtime's name.
    """

    choice: Choice
    artifact: Artifact
    inputs: Mapping[str, str]
    outputs: Mapping[str, str]
    stage = "infer"
    gives: ClassVar[Boundary] = Boundary.OUTPUTS
    shares_equal_inputs: ClassVar[bool] = True

    def identity(self) -> Any:
        """Return the artifact, the runtime's options and the outputs."""
        return ["infer", self.artifact.key, self.choice.identity(), dict(self.outputs)]

    def open(self, runtimes: Runtimes) -> Apply:
        """Open the runtime; it is lent anew for every sample."""
        lease = runtimes.of(self.choice, self.artifact)
        with lease():
            pass
        named, wanted = dict(self.inputs), dict(self.outputs)
        only = next(iter(named.values()))

        def once(runtime: Runtime, value: Any) -> Outputs:
            one = isinstance(value, np.ndarray)
            feeds = {only: value} if one else {named[name]: value[name] for name in named}
            found = _run(runtime, feeds)
            return {name: found[own] for name, own in wanted.items()}

        def apply(value: Any, _: Any) -> Inferred:
            with lease() as runtime:
                if isinstance(value, tuple):
                    return inferred(tuple(once(runtime, one) for one in value))
                return inferred(once(runtime, value))

        return apply


@dataclass(frozen=True, eq=False)
class Answer(Recipe):
    """The network's outputs become their digest and the prediction.

    Attributes:
        task: what the outputs mean.
        settings: how they become answers.
        placing: where samples lie in the network's input.
    """

    task: Task
    settings: Settings
    placing: Placing
    stage = "postprocess"
    gives: ClassVar[Boundary] = Boundary.ANSWER

    def identity(self) -> Any:
        """Return the task, its settings and the placing."""
        return ["postprocess", self.task.name, self.settings.identity(), self.placing.identity()]

    def open(self, runtimes: Runtimes) -> Apply:
        """Return the task's method."""
        task, settings, placing = self.task, self.settings, self.placing

        def apply(found: Inferred, context: Any) -> Answered:
            placement = placing(context.source)
            return Answered(found.digest, task.decode(found.outputs, settings, placement))

        return apply


def answering(profile: Profile, card: Card) -> Answer:
    """Return the step from the network's outputs to their digest and the prediction.

    Raises:
        ModelError: what the profile asks for does not fit what the card says.
    """
    placing = card.modality.placing(profile, card.spec)
    return Answer(card.task, settings_of(profile, card), placing)


def settings_of(profile: Profile, card: Card) -> Settings:
    """Return how a stack turns outputs into answers.

    Raises:
        ModelError: what the profile asks for does not fit what the card says.
    """
    return card.task.settings(card.modality.postprocess(profile, card.spec))


def _run(runtime: Runtime, feeds: dict[str, Array]) -> dict[str, Array]:
    try:
        return runtime.run(feeds)
    except (SampleError, ModelError):
        raise
    except Exception as error:  # whatever the library raises is about this model
        name = type(runtime).__name__
        raise ModelError(f"{name} cannot run the model: {one_line(error)}") from error
