"""What is proved of a task: itself, and a few outputs, truths and answers to try it with."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, NamedTuple

import numpy as np

from simulator.contract import Array
from simulator.modalities.image.geometry import Placement
from simulator.profile.postprocess import Postprocess
from simulator.tasks.score import Record, Score
from simulator.tasks.task import Task
from simulator.testing.subject import expect

Outputs = dict[str, Array]


@dataclass(frozen=True)
class TaskSubject:
    """A task, and what only its author can say.

    Attributes:
        task: made for a model card.
        outputs: what the model may give for one image, and for another that is answered otherwise;
            of floats without NaN, or of integers.
        placement: where both images lie in the network's input.
        truth: what may be annotated in the first one.
        worthless: truths of images of that size, each with an answer that deserves no point: none
            at all, a wrong one, and whatever is beyond all bounds. At least one; none of a score
            that an answer of ``task.examples()`` has as well.
    """

    task: Task
    outputs: tuple[Mapping[str, Array], Mapping[str, Array]]
    placement: Placement
    truth: Any
    worthless: Sequence[tuple[Any, Any]]

    def fresh(self, which: int = 0) -> Outputs:
        """Return a copy of the outputs for one of the images."""
        return {name: array.copy() for name, array in self.outputs[which].items()}

    def answer(self, which: int = 0, asked: Postprocess | None = None) -> Any:
        """Return the prediction for one of the images; with a profile or as the card says."""
        return self.decoded(self.fresh(which), asked)

    def decoded(self, outputs: Mapping[str, Array], asked: Postprocess | None = None) -> Any:
        """Return the prediction that is made of outputs."""
        settings = self.task.settings(asked or Postprocess())
        return self.task.decode(outputs, settings, self.placement)


class Case(NamedTuple):
    """One image: what is annotated, and what two stacks answer."""

    truth: Any
    before: Any
    after: Any


def perfect(subject: TaskSubject) -> list[Case]:
    """Return the examples of the task, answered perfectly by both stacks."""
    return [Case(truth, answer, answer) for truth, answer in subject.task.examples()]


def changed(subject: TaskSubject) -> list[Case]:
    """Return images of the placement's size that two stacks answer differently."""
    first, second = subject.answer(0), subject.answer(1)
    worthless = [Case(truth, first, answer) for truth, answer in subject.worthless]
    return [Case(subject.truth, first, second), *worthless]


def worthless(subject: TaskSubject) -> list[Case]:
    """Return the worthless answers, given by both stacks."""
    return [Case(truth, answer, answer) for truth, answer in subject.worthless]


def rows(task: Task, cases: Iterable[Case]) -> list[list[dict[str, Any]]]:
    """Return the records of both stacks, image by image."""
    return [task.records([case.before, case.after], case.truth) for case in cases]


def scores(task: Task, cases: Sequence[Case]) -> tuple[Score, Score]:
    """Return the scores of both stacks."""
    truths = [case.truth for case in cases]
    records = rows(task, cases)
    train, deploy = (
        task.score([row[side] for row in records], truths) for side in range(2)
    )  # fmt: skip
    return train, deploy


def metrics(task: Task, cases: Sequence[Case]) -> dict[str, float | None]:
    """Return the metrics of the deployment stack that a comparison gives deltas of."""
    _, deploy = scores(task, cases)
    return {name: deploy.metrics[name] for name in task.metrics}


def expect_metrics(
    task: Task, cases: Sequence[Case], allowed: Sequence[float | None], what: str
) -> None:
    """Expect each metric of some images to be one of a few values."""
    for name, value in metrics(task, cases).items():
        fits = any(close(value, one) for one in allowed)
        expect(fits, f"{what}: {name} {' or '.join(map(str, allowed))} expected, got {value}")


def repeated(records: Sequence[Record], truths: Sequence[Any], counts: Iterable[int]) -> Any:
    """Return records and truths, each as often as its image was drawn."""
    drawn = [i for i, count in enumerate(counts) for _ in range(int(count))]
    return [records[i] for i in drawn], [truths[i] for i in drawn]


def plain(value: Any) -> Any:
    """Return what tells a value from others, whatever it is made of: types, bits and all."""
    if isinstance(value, np.ndarray):
        return "array", str(value.dtype), value.shape, value.tobytes()
    if is_dataclass(value):
        inner = [(field.name, plain(getattr(value, field.name))) for field in fields(value)]
        return type(value).__name__, *inner
    if isinstance(value, Mapping):
        return "mapping", *sorted((repr(key), plain(inner)) for key, inner in value.items())
    if isinstance(value, (list, tuple)):
        return type(value).__name__, *map(plain, value)
    return repr(value)


def close(a: Any, b: Any) -> bool:
    """Whether figures agree, but for the order in which numbers were added up."""
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        return a.keys() == b.keys() and all(close(a[key], b[key]) for key in a)
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(map(close, a, b))
    numbers = (int, float, np.number)
    if isinstance(a, numbers) and isinstance(b, numbers):
        both = math.isnan(a) and math.isnan(b)
        return both or math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-12)
    return bool(a == b)
