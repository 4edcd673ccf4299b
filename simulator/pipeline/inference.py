"""The last recipes of a stack: from the network's input to the prediction."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
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
    """The outputs of a network for one sample.

    Attributes:
        outputs: by their names on the model card; a tuple of these where a sample needed several
            inferences.
        digest: BLAKE2b of their bytes in that order, in hexadecimal: equal digests, equal bits.
    """

    outputs: Outputs | tuple[Outputs, ...]
    digest: str


@dataclass(frozen=True, slots=True)
class Answered:
    """The value at the end of a chain.

    Attributes:
        digest: of the network's outputs.
        prediction: the outputs as decoded by the task.
    """

    digest: str
    prediction: Any


def inferred(outputs: Outputs | tuple[Outputs, ...]) -> Inferred:
    """Return outputs with their digest; hashing is excluded from the stack's latency."""
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
    """Runs the network.

    It takes an array (the only input), a mapping of names to arrays (several inputs), or a tuple
    of either (several inferences).

    Attributes:
        choice: the runtime.
        artifact: the file that it opens.
        inputs: the card's name of each input, to the runtime's name; "" for one without a name.
        outputs: the card's name of each output that is needed, to the runtime's name.
        carried: inputs that are outputs of the inference before; see ``Modality.carried``.
    """

    choice: Choice
    artifact: Artifact
    inputs: Mapping[str, str]
    outputs: Mapping[str, str]
    carried: Mapping[str, str] = field(default_factory=dict)
    stage = "infer"
    gives: ClassVar[Boundary] = Boundary.OUTPUTS
    shares_equal_inputs: ClassVar[bool] = True

    def identity(self) -> Any:
        """Return the artifact, the runtime's options and the outputs."""
        carried = [dict(self.carried)] if self.carried else []
        return ["infer", self.artifact.key, self.choice.identity(), dict(self.outputs), *carried]

    def feeds(self, value: Array | Mapping[str, Array]) -> dict[str, Array]:
        """Return what one inference takes, by the runtime's names.

        Args:
            value: the only input, or all by their names on the card.
        """
        if isinstance(value, np.ndarray):
            return {next(iter(self.inputs.values())): value}
        return {own: value[name] for name, own in self.inputs.items()}

    def open(self, runtimes: Runtimes) -> Apply:
        """Open the runtime; every sample borrows it from the pool."""
        lease = runtimes.of(self.choice, self.artifact)
        with lease():
            pass
        wanted = dict(self.outputs)

        def once(runtime: Runtime, value: Any) -> Outputs:
            found = _run(runtime, self.feeds(value))
            return {name: found[runtime_name] for name, runtime_name in wanted.items()}

        def in_turn(runtime: Runtime, values: tuple[Any, ...]) -> Iterator[Outputs]:
            state: dict[str, Array] = {}
            for value in values:
                found = once(runtime, {**value, **state} if state else value)
                state = {name: found[output] for name, output in self.carried.items()}
                yield found

        def apply(value: Any, _: Any) -> Inferred:
            with lease() as runtime:
                if isinstance(value, tuple):
                    return inferred(tuple(in_turn(runtime, value)))
                return inferred(once(runtime, value))

        return apply


@dataclass(frozen=True, eq=False)
class Answer(Recipe):
    """Turns the network's outputs into a prediction; their digest is passed on.

    Attributes:
        task: decodes the outputs.
        settings: of the postprocessing.
        placing: finds where a sample lies in the network's input.
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
            if isinstance(found.outputs, tuple) and not task.several:
                raise ModelError(
                    f"{task.name} takes the outputs of one inference, got {len(found.outputs)}; "
                    "its task must set `several`"
                )
            placement = placing(context.source)
            return Answered(found.digest, task.decode(found.outputs, settings, placement))

        return apply


def answering(profile: Profile, card: Card) -> Answer:
    """Return the step from the network's outputs to the prediction.

    Raises:
        ModelError: the profile's postprocessing does not fit the model card.
    """
    placing = card.modality.placing(profile, card.spec)
    return Answer(card.task, settings_of(profile, card), placing)


def settings_of(profile: Profile, card: Card) -> Settings:
    """Return the settings of a stack's postprocessing.

    Raises:
        ModelError: the profile's postprocessing does not fit the model card.
    """
    return card.task.settings(card.modality.postprocess(profile, card.spec))


def _run(runtime: Runtime, feeds: dict[str, Array]) -> dict[str, Array]:
    try:
        return runtime.run(feeds)
    except (SampleError, ModelError):
        raise
    except Exception as error:  # a runtime may raise anything
        name = type(runtime).__name__
        raise ModelError(f"{name} cannot run the model: {one_line(error)}") from error
