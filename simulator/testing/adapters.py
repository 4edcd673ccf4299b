"""Test-time adaptation: checks of what a batch gives, what is learned from it, and what is kept."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from onnx import numpy_helper

from simulator.contract import Array
from simulator.testing import models
from simulator.testing.subject import Subject, expect, refused
from simulator.testing.work import Job, Work
from simulator.testing.workshop import refusing

MODEL, BARE = "normalized", "gemm"
COUNT = 6
NEAR = 1e-4
"""Of the largest answer."""
RATE, BATCHES = 0.01, 12


class Adapting(Work):
    """A job is the first batch, 6x4x8x8; the result is the answers to it."""

    def _jobs(self) -> list[Job]:
        return [(batch(seed),) for seed in range(4)]

    def _do(self, made: Any, job: Job) -> Job:
        made.open(_source(self.subject), job[0], "y")
        return tuple(made.answer(job[0]).values())

    @contextmanager
    def _open(self) -> Iterator[Any]:
        yield self.subject.make()


def the_batch_gives_the_statistics(subject: Subject) -> None:
    """The first batch is normalized by its own mean and its variance, divided by their number."""
    given = batch(0)
    found = _opened(subject).answer(given)["y"]
    off = np.abs(found - _by_hand(given)).max() / np.abs(found).max()
    expect(off <= NEAR, f"the answers are off by {off:.2g} of the largest")


def it_learns_as_its_method_says(subject: Subject) -> None:
    """Of one batch again and again the entropy falls with tent; without it nothing changes."""
    made, given = _opened(_learning(subject)), batch(0)
    entropies = [_entropy(made.answer(given)["y"]) for _ in range(BATCHES)]
    told = f"an entropy of {entropies[0]:.6f} is {entropies[-1]:.6f} after {BATCHES} batches"
    if subject.options["method"] == "tent":
        expect(entropies[-1] < entropies[0] - 0.01, told)
    else:
        expect(len(set(entropies)) == 1, told)


def an_episode_is_forgotten(subject: Subject) -> None:
    """With reset: batch an answer is that of a network which has seen no batch before."""
    if "reset" not in subject.options:
        return
    episodic = _learning(subject, "batch")
    made, given = _opened(episodic), batch(0)
    wanted = made.answer(given)["y"]
    made.answer(batch(1))
    found = made.answer(given)["y"]
    expect(np.array_equal(found, wanted), "an earlier batch shows in the answers to a later one")


def it_goes_on_where_it_stopped(subject: Subject) -> None:
    """Another one with the state of the first answers the next batches as the first does."""
    longer = _learning(subject)
    whole = _opened(longer)
    wanted = [whole.answer(batch(seed))["y"] for seed in range(4)]
    begun = _opened(longer)
    for seed in range(2):
        begun.answer(batch(seed))
    resumed = _opened(longer, batch(2))
    resumed.restore(begun.state())
    found = [resumed.answer(batch(seed))["y"] for seed in (2, 3)]
    same = all(np.array_equal(one, other) for one, other in zip(found, wanted[2:], strict=True))
    expect(same, "the answers after a stop differ from those without one")


def batches_and_answers_are_left_alone(subject: Subject) -> None:
    """A batch is not written to, and a later batch does not change earlier answers."""
    made, given = _opened(subject), batch(0)
    first = made.answer(given)["y"]
    expect(np.array_equal(given, batch(0)), "the batch was written to")
    before = first.copy()
    made.answer(batch(1))
    expect(np.array_equal(first, before), "earlier answers changed")


def the_source_is_left_alone(subject: Subject) -> None:
    """The file that it starts from does not change."""
    source = _source(subject)
    before = source.read_bytes()
    _opened(subject).answer(batch(0))
    expect(source.read_bytes() == before, "the source was written to")


def without_normalization_is_refused(subject: Subject) -> None:
    """A network in which nothing can adapt is refused with a reason of one line."""
    source = subject.workshop.file(BARE)

    def attempt() -> None:
        with refusing(subject.backend.name):
            subject.make().open(source, batch(0), "y")

    refused("a network without normalization", attempt)


def batch(seed: int) -> Array:
    """Return (6, 4, 8, 8) inputs whose channels have other means and deviations in each batch."""
    random = np.random.default_rng(seed)
    scale, shift = random.uniform(0.5, 2, (2, 4, 1, 1))
    drawn = random.normal(size=(COUNT, *models.SHAPE[1:])) * scale + shift
    return np.asarray(drawn, np.float32)


def _by_hand(given: Array) -> Array:
    """The answers, in float64."""
    graph = models.build(MODEL).graph
    held = {one.name: numpy_helper.to_array(one).astype(np.float64) for one in graph.initializer}
    values = given.astype(np.float64)
    mean, variance = (f((0, 2, 3), keepdims=True) for f in (values.mean, values.var))
    scale, shift = (held[name].reshape(1, -1, 1, 1) for name in ("scale", "b"))
    normal = (values - mean) / np.sqrt(variance + 1e-3) * scale + shift
    return np.asarray(normal.reshape(len(given), -1) @ held["w"].T + held["c"])


def _entropy(scores: Array) -> float:
    """The mean entropy of logits."""
    shifted = scores.astype(np.float64) - scores.max(1, keepdims=True)
    shares = np.exp(shifted) / np.exp(shifted).sum(1, keepdims=True)
    return float(-(shares * np.log(shares + 1e-300)).sum(1).mean())


def _learning(subject: Subject, reset: str = "never") -> Subject:
    """The subject that learns fast, and forgets when it is told to, as far as it can do either."""
    wanted = {"learning_rate": RATE, "reset": reset}
    return subject.changed(**{name: wanted[name] for name in wanted if name in subject.options})


def _opened(subject: Subject, sample: Array | None = None) -> Any:
    made = subject.make()
    made.open(_source(subject), batch(0) if sample is None else sample, "y")
    return made


def _source(subject: Subject) -> Path:
    return subject.workshop.file(MODEL)
