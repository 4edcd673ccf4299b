"""The step of a front end that is not ours, and the check of what it gives."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from simulator.command.allowed import GivesOtherwise
from simulator.contract import Array, Stage, array_words, clock
from simulator.contract.recipe import Apply, Boundary, Context, Recipe, Runtimes
from simulator.data.folder import Item
from simulator.errors import ModelError, SampleError, UserError
from simulator.modalities.modality import Feed
from simulator.model.card import Card
from simulator.model.onnxfile import ModelFile
from simulator.pipeline.fitted import Shape, as_outputs, fitted
from simulator.pipeline.inference import Answered, Inferred, inferred
from simulator.pipeline.listed import Listed, Tensors
from simulator.pipeline.sample_file import file_of
from simulator.pipeline.walk import context_of
from simulator.profile.implementations import Choice
from simulator.tasks.task import Task

TRIED = 3
"""Samples that code may refuse before it is taken to refuse all."""
_ANSWERS = (
    ("boxes", "scores", "labels"), ("boxes", "scores", "classes"),
    ("label", "score"), ("class", "score"), ("label",), ("class",),
)  # fmt: skip
"""The parts of an answer by the names that people give them."""
LONG = 30.0
"""Seconds after which no other is tried."""


@dataclass(frozen=True, eq=False)
class OwnFrontEnd(Recipe):
    """Lets what is not ours make the network's input, in worker processes.

    Attributes:
        choice: the front end.
        feeds: the inputs that the network takes.
        items: see :func:`asking`.
    """

    choice: Choice
    feeds: tuple[Feed, ...]
    items: tuple[Item, ...] = ()
    stage = "front_end"
    gives: ClassVar[Boundary] = Boundary.INPUT

    def identity(self) -> Any:
        """Return the front end, with the digests of its files, and the inputs."""
        wanted = [[f.name, f.dtype.str, list(f.shape), f.axes] for f in self.feeds]
        return ["front_end", self.choice.identity(), wanted]

    def open(self, runtimes: Runtimes) -> Apply:
        """Return what asks a worker; workers start with the first samples."""
        call = asking(self.choice, runtimes, self.items)

        def apply(_: Any, context: Context) -> Tensors:
            found = call(context)
            with clock.excluding(), _said_by(self.choice):
                return fitted(found, self.feeds)

        return apply


@dataclass(frozen=True, eq=False)
class OwnOutputs(Recipe):
    """Lets what is not ours give the network's outputs, in worker processes.

    Attributes:
        choice: of the runtime that takes samples.
        outputs: the shapes of the outputs that the card needs, by name.
        items: see :func:`asking`.
    """

    choice: Choice
    outputs: Mapping[str, Shape]
    items: tuple[Item, ...] = ()
    stage = "infer"
    gives: ClassVar[Boundary] = Boundary.OUTPUTS

    def identity(self) -> Any:
        """Return the runtime and the outputs."""
        wanted = {name: list(shape) for name, shape in self.outputs.items()}
        return ["own outputs", self.choice.identity(), wanted]

    def open(self, runtimes: Runtimes) -> Apply:
        """Return what asks a worker."""
        call = asking(self.choice, runtimes, self.items)

        def apply(_: Any, context: Context) -> Inferred:
            found = call(context)
            with clock.excluding(), _said_by(self.choice):
                return inferred(as_outputs(found, self.outputs))

        return apply


@dataclass(frozen=True, eq=False)
class OwnAnswer(Recipe):
    """Lets what is not ours give the answer, in worker processes.

    Attributes:
        choice: of the runtime that takes samples.
        task: that it is an answer of.
        items: see :func:`asking`.
    """

    choice: Choice
    task: Task
    items: tuple[Item, ...] = ()
    stage = "infer"
    gives: ClassVar[Boundary] = Boundary.ANSWER

    def identity(self) -> Any:
        """Return the runtime and the task's name."""
        return ["own answer", self.choice.identity(), self.task.name]

    def open(self, runtimes: Runtimes) -> Apply:
        """Return what asks a worker."""
        call = asking(self.choice, runtimes, self.items)

        def apply(_: Any, context: Context) -> Answered:
            found = call(context)
            with clock.excluding(), _said_by(self.choice):
                one = _rows(found)
                answer = self.task.given(one)
                whole = np.frombuffer(one.tobytes(), np.uint8)
                return Answered(inferred({"answer": whole}).digest, answer)

        return apply


def asking(
    choice: Choice, runtimes: Runtimes, items: Sequence[Item] = ()
) -> Callable[[Context], Tensors]:
    """Return what asks a worker for what is not ours makes of a sample.

    Args:
        choice: a front end, or a runtime that takes samples.
        runtimes: have its workers.
        items: the samples of a run, some of which a program may take at once.
    """
    own = as_front_end(choice)
    size = own.offer.make.at_once(own.options)
    if size > 1:
        return Listed(runtimes.apart(own, "several"), items, size)
    call = runtimes.apart(own, "tensors")

    def ask(context: Context) -> Tensors:
        with clock.excluding():
            sample = file_of(context)
        found: Tensors = call(sample)
        return found

    return ask


def tried(
    choice: Choice, card: Card, source: ModelFile, items: Sequence[Item], runtimes: Runtimes
) -> Tensors:
    """Return what a front end that is not ours makes of the first sample that it takes.

    Args:
        choice: the front end.
        card: the model card.
        source: its checked ONNX file.
        items: the samples; the first few are tried.
        runtimes: have its workers.

    Raises:
        UserError: it takes none of them, or what it makes does not fit the network.
        GivesOtherwise: it is what the network gives, or an answer.
    """
    call, name, why = asking(choice, runtimes), called(choice), ""
    if said := runtimes.apart(choice, "gives")(None):
        raise _otherwise(name, said)
    feeds, start = card.modality.feeds(card.spec), time.monotonic()
    for item in items[:TRIED]:
        try:
            found = call(context_of(card.modality, item))
        except SampleError as error:
            why = why or str(error)
            if time.monotonic() - start > LONG:
                break
            continue
        try:
            fitted(found, feeds)
        except SampleError as error:
            gives = _given_instead(name, found, card, source)
            if gives is None:
                raise UserError(f"{name} {error}") from error
            raise _otherwise(name, gives) from error
        return found
    raise UserError(why)


def _otherwise(name: str, gives: str) -> GivesOtherwise:
    what = {"outputs": "the network's outputs", "answer": "an answer"}.get(gives, repr(gives))
    return GivesOtherwise(f"{name} gives {what}: write {name}:{gives}", name, gives)


def _given_instead(name: str, found: Tensors, card: Card, source: ModelFile) -> str | None:
    """What it is that does not fit the network's input; None where it is nothing else either."""
    with suppress(SampleError, ModelError):
        as_outputs(found, source.wanted(card))
        return "outputs"
    try:
        card.task.given(_rows(found))
    except (SampleError, UserError) as error:
        if not isinstance(found, Mapping) and found.dtype.kind == "U":  # text is nothing else
            raise UserError(f"{name} {error}") from error
        return None
    return "answer"


def _rows(found: Tensors) -> Array:
    """An answer as one array; by names it is as torchvision's detectors and others give it."""
    if not isinstance(found, Mapping):
        return found
    names = next((each for each in _ANSWERS if found.keys() >= set(each)), None)
    if names is None:
        raise SampleError(f"gave {', '.join(found)}; an answer is one array")
    try:
        return np.column_stack([found[one] for one in names])
    except ValueError as error:
        told = ", ".join(f"{one} {array_words(found[one])}" for one in names)
        raise SampleError(f"gave {told}, which are not of one number of boxes") from error


def as_front_end(choice: Choice) -> Choice:
    """Return a runtime that takes samples as the front end of the same backend, which runs it."""
    (offer,) = choice.backend.of(Stage.FRONT_END)
    options = {name: value for name, value in choice.options.items() if name in offer.options}
    return Choice(Stage.FRONT_END, choice.backend, offer, options, (), choice.files)


@contextmanager
def _said_by(choice: Choice) -> Iterator[None]:
    """Let errors begin with what they are of."""
    try:
        yield
    except SampleError as error:
        raise SampleError(f"{called(choice)} {error}") from error


def called(choice: Choice) -> str:
    """Return what messages call what is not ours."""
    one = as_front_end(choice)
    return str(one.offer.make.called(one.options))
