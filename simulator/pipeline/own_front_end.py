"""Steps that are not ours: a front end, all up to the network's outputs, or up to the answer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from simulator.contract import Array, Effective, Stage, array_words, clock
from simulator.contract.recipe import Apply, Boundary, Chain, Context, Recipe, Runtimes
from simulator.data.folder import Item
from simulator.errors import SampleError, UserError
from simulator.modalities.modality import Feed
from simulator.model.artifact import Artifact, digest
from simulator.model.card import Card
from simulator.model.onnxfile import ModelFile
from simulator.notices import Kind, Notice
from simulator.pipeline.fitted import Shape, as_outputs, fitted
from simulator.pipeline.inference import Answered, Inferred, answering, finishing, inferred
from simulator.pipeline.listed import Listed, Tensors
from simulator.pipeline.sample_file import file_of
from simulator.pipeline.stack import ResolvedProfile, Stack
from simulator.profile.implementations import Choice
from simulator.profile.profile import Profile
from simulator.tasks.task import Task

_ANSWERS = (
    ("boxes", "scores", "labels"), ("boxes", "scores", "classes"),
    ("label", "score"), ("class", "score"), ("label",), ("class",),
)  # fmt: skip
"""The parts of an answer by the names that people give them."""


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
                one = rows_of(found)
                answer = self.task.given(one)
                whole = np.frombuffer(one.tobytes(), np.uint8)
                return Answered(inferred({"answer": whole}).digest, answer)

        return apply


def own_stack(
    side: str, chosen: ResolvedProfile, card: Card, source: ModelFile, items: Sequence[Item]
) -> Stack:
    """Return a stack that is not ours up to the outputs of the network, or to the answer."""
    profile, choice = chosen[0], chosen[1][Stage.RUNTIME]
    refuse_code(profile, choice)
    name = called(choice)
    if choice.options["gives"] == "answer":
        chain = Chain((OwnAnswer(choice, card.task, tuple(items)),))
        what = "the answer: nothing of its profile is run"
    else:
        card.refuse_second(f"{name} gives the outputs of")
        outputs = source.wanted(card)
        own = OwnOutputs(choice, outputs, tuple(items))
        finish = finishing(profile, chosen[1], card)
        chain = Chain((own, *finish, answering(profile, card)))
        what = "the network's outputs: of its profile only what follows them is run"
    (file,) = choice.files
    artifact = Artifact(Path(choice.options[file]), digest(choice.identity()), "code")
    effective = Effective({}, {"device": choice.options["device"]}, {})
    notices = (Notice(Kind.MODEL, f"{name} gives {what}"),)
    return Stack(side, profile, chosen[1], chain, artifact, effective, notices)


def refuse_code(profile: Profile, choice: Choice) -> None:
    """Refuse code that a document names, unless the call allows it.

    Raises:
        UserError: with the place where it is named.
    """
    if choice.offer.make.runs_code and not profile.may_run_code:
        raise UserError(
            f"{profile.where((choice.stage, 'backend'))}: {choice.stage} runs code of its own; "
            "where you trust it, add --allow-code (in Python allow_code=True)"
        )


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


def rows_of(found: Tensors) -> Array:
    """Return an answer as one array; of several, as torchvision's detectors have them by name."""
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
