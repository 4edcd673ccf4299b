"""The last recipes of a stack: from the network's input to the prediction."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Generator, Mapping
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
from simulator.tasks.task import Sequel, Settings, Task

Outputs = Mapping[str, Array]


@dataclass(frozen=True, slots=True)
class Inferred:
    """The outputs of a network for one sample.

    Attributes:
        outputs: by their names on the model card; a tuple of these where a sample needed several
            inferences.
        digest: BLAKE2b of their bytes in that order, in hexadecimal: equal digests, equal bits.
        ns: nanoseconds of each inference that followed from the one before; else empty.
    """

    outputs: Outputs | tuple[Outputs, ...]
    digest: str
    ns: tuple[int, ...] = ()


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
        sequel: how further inferences follow from the first one.
        placing: finds where a sample lies in the network's input; needed for a sequel.
    """

    choice: Choice
    artifact: Artifact
    inputs: Mapping[str, str]
    outputs: Mapping[str, str]
    sequel: Sequel | None = None
    placing: Placing | None = None
    stage = "infer"
    gives: ClassVar[Boundary] = Boundary.OUTPUTS
    shares_equal_inputs: ClassVar[bool] = True

    def identity(self) -> Any:
        """Return the artifact, the runtime's options, the outputs, and how inferences follow."""
        own = ["infer", self.artifact.key, self.choice.identity(), dict(self.outputs)]
        if self.sequel is None or self.placing is None:
            return own
        return [*own, self.sequel.identity(), self.placing.identity()]

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

        def apply(value: Any, context: Any) -> Inferred:
            with lease() as runtime:
                if self.sequel is not None and self.placing is not None:
                    steps = self.sequel.steps(value, self.placing(context.source))
                    return _followed(steps, lambda feeds: once(runtime, feeds))
                if isinstance(value, tuple):
                    return inferred(tuple(once(runtime, one) for one in value))
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
            prediction = task.decode(found.outputs, settings, placing(context.source))
            timed = task.timed(prediction, found.ns) if found.ns else prediction
            return Answered(found.digest, timed)

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


def _followed(
    steps: Generator[Any, Outputs, tuple[Outputs, ...]], once: Callable[[Any], Outputs]
) -> Inferred:
    """Run inferences until no other follows; each is timed."""
    spent: list[int] = []
    feeds = next(steps)
    while True:
        start = time.perf_counter_ns()
        outputs = once(feeds)
        spent.append(time.perf_counter_ns() - start)
        try:
            feeds = steps.send(outputs)
        except StopIteration as end:
            kept = inferred(end.value)
            return Inferred(kept.outputs, kept.digest, tuple(spent))


def _run(runtime: Runtime, feeds: dict[str, Array]) -> dict[str, Array]:
    try:
        return runtime.run(feeds)
    except (SampleError, ModelError):
        raise
    except Exception as error:  # a runtime may raise anything
        name = type(runtime).__name__
        raise ModelError(f"{name} cannot run the model: {one_line(error)}") from error
