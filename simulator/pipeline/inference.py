"""The last recipes of a stack: from the network's input to the prediction."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from simulator.contract import Array, Runtime, clock
from simulator.contract.model import shape_words
from simulator.contract.recipe import Apply, Boundary, Chain, Context, Recipe, Runtimes
from simulator.errors import ModelError, SampleError, foreign, one_line
from simulator.modalities.modality import Placing
from simulator.model.artifact import Artifact
from simulator.model.card import Card
from simulator.pipeline.watchdog import limited
from simulator.profile.implementations import Choice, Choices
from simulator.profile.profile import Profile
from simulator.tasks.settings import BackEnd, Beside, FollowUpInference, Handover, Settings
from simulator.tasks.task import Task

Outputs = Mapping[str, Array]


@dataclass(frozen=True, slots=True)
class Inferred:
    """The outputs of a network for one sample.

    Attributes:
        outputs: by their names on the model card; a tuple of these where a sample needed several
            inferences.
        digest: BLAKE2b of their bytes in that order, in hexadecimal: equal digests, equal bits.
        ns: nanoseconds of each of several inferences that follow from each other.
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
        until: nanoseconds from the network's first inference to each part of an answer that comes
            in parts.
    """

    digest: str
    prediction: Any
    until: tuple[int, ...] = ()


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
        goes_on: whether others follow from the first inference: then :class:`Follow` runs all,
            and this step passes their feeds on.
        needs: the resources of the machine that it runs on.
        kept: the inputs that go on beside its outputs, of a card's second network.
        sized: the file for each shape of a sample's input, without the batch, where there are
            several; ``artifact`` is the first.
    """

    choice: Choice
    artifact: Artifact
    inputs: Mapping[str, str]
    outputs: Mapping[str, str]
    goes_on: bool = False
    needs: tuple[tuple[str, float], ...] = ()
    kept: tuple[str, ...] = ()
    sized: tuple[tuple[tuple[int | None, ...], Artifact], ...] = ()
    stage = "infer"
    gives: ClassVar[Boundary] = Boundary.OUTPUTS
    shares_equal_inputs: ClassVar[bool] = True

    def identity(self) -> Any:
        """Return the artifact, the runtime's options, the outputs, and on what it runs."""
        keys = [one.key for _, one in self.sized] or self.artifact.key
        made = ["infer", keys, self.choice.identity(), dict(self.outputs)]
        return [*made, dict(self.needs)] if self.needs else made

    def feeds(self, value: Array | Mapping[str, Array]) -> dict[str, Array]:
        """Return what one inference takes, by the runtime's names.

        Args:
            value: the only input, or all by their names on the card.
        """
        if isinstance(value, np.ndarray):
            return {next(iter(self.inputs.values())): value}
        return {own: value[name] for name, own in self.inputs.items()}

    def leasing(self, runtimes: Runtimes) -> Callable[[Any], AbstractContextManager[Runtime]]:
        """Open the runtime, and return what borrows it from the pool for an input."""
        runtimes.make_room(len(self.sized))
        leases = [runtimes.of(self.choice, one) for _, one in self.sized]
        leases = leases or [runtimes.of(self.choice, self.artifact)]
        for lease in leases:
            with lease():
                pass
        places = {shape: at for at, (shape, _) in enumerate(self.sized)}

        def borrow(value: Any) -> AbstractContextManager[Runtime]:
            first = next(iter(value.values())) if isinstance(value, dict) else value
            if places and first.shape[1:] not in places:
                made = " and ".join(map(shape_words, places))
                raise SampleError(
                    f"infer: {self.choice.backend.name} has an engine for each of {made}, and none "
                    f"for {shape_words(first.shape[1:])}"
                )
            return leases[places[first.shape[1:]] if places else 0]()

        return borrow

    def open(self, runtimes: Runtimes) -> Apply:
        """Open the runtime; every sample borrows it from the pool."""
        borrow = self.leasing(runtimes)
        if self.goes_on:
            return lambda value, _: value

        def apply(value: Any, _: Any) -> Inferred:
            with borrow(value) as runtime:
                if isinstance(value, tuple):
                    return inferred(tuple(self.once(runtime, one) for one in value))
                return inferred(self.once(runtime, value))

        return apply

    def once(self, runtime: Runtime, value: Any) -> Outputs:
        """Run one inference; return the outputs by their names on the card."""
        found = _run(runtime, self.feeds(value))
        kept = {name: value[name] for name in self.kept}
        return {**kept, **{name: found[own] for name, own in self.outputs.items()}}


@dataclass(frozen=True, eq=False)
class Follow(Recipe):
    """Runs the inferences of a sample that follow from each other.

    The time until the first output that is read is that of the stage ``infer``.

    Attributes:
        infer: the network.
        sequel: how they follow.
        placing: finds where a sample lies in the network's input.
    """

    infer: Infer
    sequel: FollowUpInference
    placing: Placing
    stage = "follow"
    gives: ClassVar[Boundary] = Boundary.OUTPUTS

    @property
    def needs(self) -> tuple[tuple[str, float], ...]:  # type: ignore[override]
        """The resources of the network."""
        return self.infer.needs

    def identity(self) -> Any:
        """Return the first step, how the others follow, and the placing."""
        return ["follow", self.infer.identity(), self.sequel.identity(), self.placing.identity()]

    def words(self) -> str:
        """Return how they follow."""
        return " ".join(map(str, self.sequel.identity()))

    def open(self, runtimes: Runtimes) -> Apply:
        """Borrow the runtime for all inferences of a sample; each is timed."""
        lease = runtimes.of(self.infer.choice, self.infer.artifact)

        def apply(feeds: Any, context: Any) -> Inferred:
            steps = self.sequel.steps(feeds, self.placing(context.source))
            with lease() as runtime, runtime.alone():
                found, spent = self._run(steps, runtime)
            sizes = [sum(array.size for array in one.values()) for one in found]
            first = next((at for at, size in enumerate(sizes) if size), 0)
            clock.move(self.infer.stage, sum(spent[: first + 1]))
            return replace(inferred(found), ns=tuple(spent))

        return apply

    def _run(
        self, steps: Generator[Any, Any, Any], runtime: Runtime
    ) -> tuple[tuple[Outputs, ...], list[int]]:
        """Run the inferences; return what is kept of each, and its nanoseconds."""
        outputs, spent = None, list[int]()
        while True:
            try:
                given = steps.send(outputs)
            except StopIteration as end:
                return end.value, spent
            start = time.perf_counter_ns()
            outputs = self.infer.once(runtime, given)
            spent.append(time.perf_counter_ns() - start)


@dataclass(frozen=True, eq=False)
class Between(Recipe):
    """Makes the inputs of a card's second network of the outputs of the first.

    Attributes:
        handover: makes them.
        placing: finds where a sample lies in the network's input.
    """

    handover: Handover
    placing: Placing
    stage = "between"

    def open(self, runtimes: Runtimes) -> Apply:
        """Return what the task does between them."""
        handover, placing = self.handover, self.placing

        def apply(found: Inferred, context: Any) -> Mapping[str, Array]:
            made: Mapping[str, Array] = handover.feeds(found.outputs, placing(context.source))
            return made

        return apply


@dataclass(frozen=True, eq=False)
class Join(Recipe):
    """Joins the network's outputs with what a second one gave, which is run once.

    Attributes:
        infer: the second network.
        step: what it is run on, and how both are joined.
    """

    infer: Infer
    step: Beside
    stage = "between"

    def open(self, runtimes: Runtimes) -> Apply:
        """Run the second network, unless this process did so."""
        pool: Any = runtimes
        joined = _joining(self, pool)

        def apply(found: Inferred, _: Any) -> Inferred:
            whole = inferred(joined(found.outputs))
            return replace(found, outputs=whole.outputs, digest=whole.digest)

        return apply


@lru_cache(maxsize=16)
def _joining(join: Join, runtimes: Any) -> Callable[[Any], Any]:
    run, nothing = join.infer.open(runtimes), Context("", None, None)
    return join.step.joining([run(one, nothing).outputs for one in join.step.feeds()])


@dataclass(frozen=True, eq=False)
class Finish(Recipe):
    """Makes more of the network's outputs than it gives, for example a waveform.

    Attributes:
        step: what it does.
        stage: its name.
    """

    step: BackEnd
    stage: str

    def identity(self) -> Any:
        """Return the step."""
        return [self.stage, self.step.identity()]

    def words(self) -> str:
        """Return the implementation and its options."""
        choice = self.step.choice
        given = {name: value for name, value in choice.options.items() if value is not None}
        values = [
            value if isinstance(value, str) else f"{name} {value}" for name, value in given.items()
        ]
        return " ".join([choice.backend.name, *values])

    def open(self, runtimes: Runtimes) -> Apply:
        """Build the implementation; what it raises costs one sample."""
        apply, name = self.step.open(), self.step.choice.backend.name

        def finished(found: Inferred, _: Any) -> Inferred:
            outputs = found.outputs
            with foreign(SampleError, name):
                made = tuple(map(apply, outputs if isinstance(outputs, tuple) else (outputs,)))
            whole = inferred(made if isinstance(outputs, tuple) else made[0])
            return replace(found, outputs=whole.outputs, digest=whole.digest)

        return finished


def finishing(profile: Profile, choices: Choices, card: Card) -> tuple[Recipe, ...]:
    """Return the steps between the network and the postprocessing; most tasks have none.

    Raises:
        ModelError: the profile does not fit the model card.
    """
    step = card.task.back_end(profile, choices)
    return (Finish(step, step.stage),) if step else ()


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
            return Answered(found.digest, timed, task.until(timed))

        return apply


def between(answer: Answer) -> Between | None:
    """Return the step between a card's two networks; None where it has one."""
    handover = answer.task.handover(answer.settings)
    return Between(handover, answer.placing) if handover else None


def answered(chain: Chain, answer: Recipe) -> Chain:
    """Return a chain with other postprocessing: that between two networks, and the last step."""
    step = between(answer) if isinstance(answer, Answer) else None
    others = [
        step if step and isinstance(recipe, Between) else recipe for recipe in chain.recipes[:-1]
    ]
    return Chain((*others, answer))


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
        with limited():
            return runtime.run(feeds)
    except (SampleError, ModelError):
        raise
    except Exception as error:  # a runtime may raise anything
        name = type(runtime).__name__
        raise ModelError(f"{name} cannot run the model: {one_line(error)}") from error
