"""Code shared by the checks of tasks: samples, their records and scores, and comparisons."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any, NamedTuple

import numpy as np

from simulator.tasks.score import Record, Score, Values
from simulator.tasks.specimen import Specimen
from simulator.tasks.task import Task
from simulator.testing.subject import expect


class Case(NamedTuple):
    """One sample: its annotation and the answers of two stacks."""

    truth: Any
    before: Any
    after: Any


def perfect(subject: Specimen) -> list[Case]:
    """Return the examples of the task, answered perfectly by both stacks."""
    return [Case(truth, answer, answer) for truth, answer in subject.task.examples()]


def changed(subject: Specimen) -> list[Case]:
    """Return samples of the specimen's size that two stacks answer differently."""
    first, second = subject.answer(0), subject.answer(1)
    worthless = [Case(truth, first, answer) for truth, answer in subject.worthless]
    return [Case(subject.truth, first, second), *worthless]


def worthless(subject: Specimen) -> list[Case]:
    """Return the worthless answers, given by both stacks."""
    return [Case(truth, answer, answer) for truth, answer in subject.worthless]


def rows(task: Task, cases: Iterable[Case]) -> list[list[Values]]:
    """Return the records of both stacks, sample by sample."""
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
    """Expect each metric of some samples to be one of a few values."""
    for name, value in metrics(task, cases).items():
        fits = any(close(value, one) for one in allowed)
        expect(fits, f"{what}: {name} {' or '.join(map(str, allowed))} expected, got {value}")


def repeated(records: Sequence[Record], truths: Sequence[Any], counts: Iterable[int]) -> Any:
    """Return records and truths, each as often as its sample was drawn."""
    drawn = [i for i, count in enumerate(counts) for _ in range(int(count))]
    return [records[i] for i in drawn], [truths[i] for i in drawn]


def plain(value: Any) -> Any:
    """Return a form of a value that is equal only for equal values: types, bits and all.

    Fields of a dataclass that say ``compare=False`` are not part of its value.
    """
    if isinstance(value, np.ndarray):
        return "array", str(value.dtype), value.shape, value.tobytes()
    if is_dataclass(value):
        compared = [field.name for field in fields(value) if field.compare]
        return type(value).__name__, *((name, plain(getattr(value, name))) for name in compared)
    if isinstance(value, Mapping):
        return "mapping", *sorted((repr(key), plain(inner)) for key, inner in value.items())
    if isinstance(value, (list, tuple)):
        return type(value).__name__, *map(plain, value)
    return repr(value)


def close(a: Any, b: Any) -> bool:
    """Whether figures agree, up to the order in which numbers were added."""
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        return a.keys() == b.keys() and all(close(a[key], b[key]) for key in a)
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(map(close, a, b))
    numbers = (int, float, np.number)
    if isinstance(a, numbers) and isinstance(b, numbers):
        both = math.isnan(a) and math.isnan(b)
        return both or math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-12)
    return bool(a == b)
