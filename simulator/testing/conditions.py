"""The checks that every condition has to pass, and how they are run."""

from __future__ import annotations

import json
import pickle
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from simulator.conditions.condition import (
    CONDITIONS,
    WEIGHTS,
    AppliedCondition,
    Condition,
    Disturbance,
)
from simulator.contract.passes import PASSES, AfterPass
from simulator.contract.recipe import Boundary
from simulator.data.video import ClipFrame
from simulator.errors import UserError
from simulator.modalities.modality import MODALITIES, Modality
from simulator.model.onnxfile import dims, load
from simulator.pipeline.runtimes import RuntimePool
from simulator.testing.places import Way, content, fits, kind, way
from simulator.testing.subject import Failed, expect, refused
from simulator.testing.suite import Suite, Verdict
from simulator.testing.videos import moment

BOUNDARIES = (Boundary.SOURCE, Boundary.FRAME, Boundary.INPUT)
NONSENSE = "no such parameters?"
TRIALS = 4


class Place(ABC):
    """Where a condition acts, and what it acts on there."""

    samples: int

    @abstractmethod
    def before(self, sample: int) -> Any:
        """Return what the condition gets, made anew."""

    @abstractmethod
    def after(self, condition: Condition, given: Any, sample: int, trial: int) -> Any:
        """Return what the condition makes of it."""

    @abstractmethod
    def misfit(self, condition: Condition) -> str | None:
        """Say why the network cannot go on with it; None where it can."""

    def content(self, value: Any) -> Any:
        """Return everything that a value consists of, to be compared with ``==``."""
        return content(value)

    def kind(self, value: Any) -> Any:
        """Return what a value is, whatever it holds."""
        return kind(value)


@dataclass(frozen=True)
class Between(Place):
    """Between two steps of a stack."""

    way: Way
    boundary: Boundary

    @property
    def samples(self) -> int:  # type: ignore[override]
        """How many samples there are."""
        return len(self.way.specimen.files)

    def before(self, sample: int) -> Any:
        """Return the value at the boundary."""
        return self.way.value(self.way.sources()[sample], self.way.until(self.boundary))

    def after(self, condition: Condition, given: Any, sample: int, trial: int) -> Any:
        """Return the disturbed value."""
        with RuntimePool() as runtimes:
            apply = Disturbance(condition, trial).open(runtimes)
            return apply(given, self.way.sources()[sample])

    def misfit(self, condition: Condition) -> str | None:
        """Take the samples all the way to the network's input."""
        way = self.way.reading(condition.gives_format)
        chain = AppliedCondition(condition).disturbed(way.chain)
        feeds = way.modality.feeds(way.card.spec)
        found = (way.value(source, chain) for source in way.sources())
        return next(filter(None, (fits(value, feeds) for value in found)), None)


@dataclass(frozen=True)
class InTheFile(Place):
    """The file that a runtime opens."""

    model: Path
    folder: Path
    samples = 1

    def before(self, sample: int) -> Path:
        """Return the file."""
        return self.model

    def after(self, condition: Condition, given: Path, sample: int, trial: int) -> Path:
        """Return a copy that went through the passes."""
        for request in condition.requests(trial):
            one = PASSES[request.name]
            if not isinstance(one, AfterPass):
                raise Failed(f"a pass over the file expected, got {one.name}")
            target = Path(tempfile.mkdtemp(dir=self.folder)) / given.name
            one.apply(given, target, one.Options.model_validate(request.options))
            given = target
        return given

    def misfit(self, condition: Condition) -> str | None:
        """Load the copy."""
        load(self.after(condition, self.model, 0, 0))
        return None

    def content(self, value: Path) -> bytes:
        """Return the bytes of a file."""
        return value.read_bytes()

    def kind(self, value: Path) -> Any:
        """Return a model's inputs, outputs and operators."""
        graph = load(value).graph
        ports = [[(port.name, dims(port)) for port in side] for side in (graph.input, graph.output)]
        return ports, [node.op_type for node in graph.node]


@dataclass(frozen=True)
class Subject:
    """A condition and where it is tried.

    Attributes:
        kind: its class.
        examples: the condition with each of its examples.
        places: where it acts; at each one for each modality whose samples it disturbs.
    """

    kind: type[Condition]
    examples: tuple[Condition, ...]
    places: Mapping[Boundary | str, tuple[Place, ...]]

    @property
    def first(self) -> Condition:
        """The condition with its first example."""
        return self.examples[0]

    def at(self, condition: Condition) -> tuple[Place, ...]:
        """Return the places of one example."""
        return self.places[condition.acts_on]

    def each(self) -> Iterator[tuple[Condition, Place, int]]:
        """Take every example at every place with every sample."""
        for condition in self.examples:
            for place in self.at(condition):
                for sample in range(place.samples):
                    yield condition, place, sample


def it_says_what_it_is(subject: Subject) -> None:
    """It has a name, a summary in one line, a place where it acts, and examples."""
    own = subject.kind
    expect(
        own.summary.strip() and "\n" not in own.summary, "a summary in one line expected, got none"
    )
    known = (*BOUNDARIES, WEIGHTS)
    for condition in subject.examples:
        told = f"acts_on {', '.join(known)} expected, got {condition.acts_on!r}"
        expect(condition.acts_on in known, told)
    distinct = len(set(own.examples)) == len(own.examples)
    expect(distinct, f"different examples expected, got {own.examples}")


def its_text_is_read_back(subject: Subject) -> None:
    """What ``--under`` is told of it makes the same condition again."""
    for condition in subject.examples:
        name, _, parameters = condition.text.partition(":")
        expect(name == subject.kind.name, f"{subject.kind.name} expected, got {condition.text!r}")
        again = subject.kind.parse(parameters)
        told = f"{condition.parameters()} expected, got {again.parameters()}"
        expect(again.parameters() == condition.parameters(), f"{condition.text} read back: {told}")


def wrong_parameters_are_refused(subject: Subject) -> None:
    """What is none of its parameters is refused, in one line."""
    refused(f"{subject.kind.name}:{NONSENSE}", subject.kind.parse, NONSENSE)


def its_identity_says_its_parameters(subject: Subject) -> None:
    """Its identity is JSON, equal for equal parameters and different for different ones."""
    known: dict[str, str] = {}
    for parameters, condition in zip(subject.kind.examples, subject.examples, strict=True):
        words = json.dumps(condition.identity())
        expect(
            words not in known, f"an identity of its own expected, got that of {known.get(words)}"
        )
        known[words] = condition.text
        again = subject.kind.parse(parameters)
        expect(
            json.dumps(again.identity()) == words, f"{words} expected again, got another identity"
        )


def it_travels(subject: Subject) -> None:
    """Pickled and read back, it is the same and does the same."""
    back = pickle.loads(pickle.dumps(subject.first))
    told = f"{subject.first.identity()} expected, got {back.identity()}"
    expect(back.identity() == subject.first.identity(), told)
    for place in subject.at(subject.first):
        one, other = (place.after(condition, place.before(0), 0, 0)
                      for condition in (subject.first, back))  # fmt: skip
        same = place.content(one) == place.content(other)
        expect(same, "the same value after the journey expected, got another")


def equal_draws_are_equal(subject: Subject) -> None:
    """The same sample, condition and trial give the same bytes, in any order, in any thread."""
    trials = range(2 if subject.kind.has_chance else 1)
    cells = [(*one, trial) for one in subject.each() for trial in trials]

    def run(cell: tuple[Condition, Place, int, int]) -> Any:
        condition, place, sample, trial = cell
        return place.content(place.after(condition, place.before(sample), sample, trial))

    first = [run(cell) for cell in cells]
    with ThreadPoolExecutor(TRIALS) as pool:
        for again in ([run(cell) for cell in reversed(cells)][::-1], list(pool.map(run, cells))):
            expect(again == first, "the same bytes for an equal draw expected, got others")


def trials_differ_where_there_is_chance(subject: Subject) -> None:
    """With ``has_chance`` another trial gives other bytes; without, the same."""
    for condition, place, sample in subject.each():
        found = [
            place.content(place.after(condition, place.before(sample), sample, trial))
            for trial in range(TRIALS)
        ]
        same = all(one == found[0] for one in found)
        wanted, got = ("equal", "different") if same else ("different", "equal")
        told = f"{got} trials expected of has_chance={subject.kind.has_chance}, got {wanted} ones"
        expect(same != subject.kind.has_chance, f"{condition.text}: {told}")


def what_it_gets_is_left_alone(subject: Subject) -> None:
    """The value, or the file, is what it was before: other stacks share it."""
    for condition, place, sample in subject.each():
        given = place.before(sample)
        before = place.content(given)
        place.after(condition, given, sample, 0)
        expect(
            place.content(given) == before,
            f"{condition.text}: its input expected back, got changes",
        )


def the_kind_is_kept(subject: Subject) -> None:
    """What comes out is what went in: type, size, format; of a file its ports and operators."""
    for condition, place, sample in subject.each():
        given = place.before(sample)
        wanted, got = place.kind(given), place.kind(place.after(condition, given, sample, 0))
        expect(got == wanted, f"{condition.text}: {wanted} expected, got {got}")


def the_network_can_go_on(subject: Subject) -> None:
    """The steps behind it run, and the network gets what its card says."""
    for condition in subject.examples:
        for place in subject.at(condition):
            problem = place.misfit(condition)
            expect(problem is None, f"{condition.text}: {problem}")


def something_happens(subject: Subject) -> None:
    """Of each example at least one sample in some trial is changed."""
    for condition in subject.examples:
        for place in subject.at(condition):
            changed = any(
                place.content(place.after(condition, place.before(sample), sample, trial))
                != place.content(place.before(sample))
                for sample in range(place.samples)
                for trial in range(TRIALS)
            )
            expect(changed, f"{condition.text}: a change expected, got every sample as it was")


SUITE: Suite[Subject] = Suite.of(__name__)


def prove_condition(what: str | type[Condition]) -> list[Verdict]:
    """Run every check on a condition.

    It is tried with its ``examples``, on the specimen of its modality; one for all modalities on
    the specimens of all that bring one.

    Args:
        what: the name of an installed condition, or its class.

    Raises:
        UserError: there is no such condition, or it has no examples.
        MissingLibrary: what makes the values that it disturbs is not installed.
    """
    own = CONDITIONS[what] if isinstance(what, str) else what
    examples = tuple(own.parse(parameters) for parameters in own.examples)
    if not examples:
        raise UserError(
            f"the condition {own.name!r} has no examples to check it with; write its examples, see "
            "docs/conformance.md"
        )
    with tempfile.TemporaryDirectory() as folder:
        places = {}
        for number, acts_on in enumerate(dict.fromkeys(example.acts_on for example in examples)):
            below = Path(folder) / str(number)
            below.mkdir()
            places[acts_on] = tuple(_places(own, acts_on, below))
            if not places[acts_on]:
                raise UserError(f"{own.name}: no specimen of a modality has a {acts_on}")
        subject = Subject(own, examples, places)
        return SUITE.prove(subject)


def _places(own: type[Condition], acts_on: Boundary | str, folder: Path) -> Iterator[Place]:
    for modality in _modalities(own):
        below = folder / modality.name
        below.mkdir()
        one = way(modality, below)
        if own.of_clips:
            clip = tuple(ClipFrame(moment(number)) for number in (5, 7))
            one = replace(one, specimen=replace(one.specimen, files=clip))
        if acts_on == WEIGHTS:
            yield InTheFile(one.card.model, below)
        elif isinstance(acts_on, Boundary) and one.has(acts_on):
            yield Between(one, acts_on)


def _modalities(own: type[Condition]) -> list[Modality]:
    if own.modality is not None:
        return [MODALITIES[own.modality]]
    own_way = Modality.specimen
    return [
        modality
        for modality in MODALITIES
        if modality.tried_with or type(modality).specimen is not own_way
    ]
