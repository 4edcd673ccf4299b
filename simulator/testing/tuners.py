"""Fine-tuning: checks that a network learns, goes on where it stopped, and is written as it is."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from simulator.contract import Array
from simulator.testing import models
from simulator.testing.subject import Subject, expect, refused
from simulator.testing.work import Job, Work
from simulator.testing.workshop import refusing

MODEL = "gemm"
COUNT, EPOCHS = 32, 6
FALLS = 0.8
"""What is left of the loss after :data:`EPOCHS` on a task that a linear layer can learn."""
NEAR = 0.02
"""Mean difference of the written file's answers, as a share of the largest: rounding to 8 bits
moves an answer by a step where a sum differs in its last bit."""


class Tuning(Work):
    """A job is the seed of examples; the result is the loss of an epoch, and the answers."""

    def _jobs(self) -> list[Job]:
        return [(np.array([seed]),) for seed in range(4)]

    def _do(self, made: Any, job: Job) -> Job:
        inputs, labels = examples(int(job[0][0]))
        made.open(_source(self.subject), inputs)
        loss = made.epoch(0, inputs, labels, np.arange(COUNT))
        return np.array([loss]), made.answers(inputs)

    @contextmanager
    def _open(self) -> Iterator[Any]:
        yield _made(self.subject)


def the_loss_falls(subject: Subject) -> None:
    """A task that the network can learn is learned: the loss falls to 0.8 of what it was."""
    made = _opened(_longer(subject))
    losses = _epochs(made, range(EPOCHS))
    expect(
        np.isfinite(losses).all() and losses[-1] <= FALLS * losses[0],
        f"a loss of {losses[0]:.4g} is {losses[-1]:.4g} after {EPOCHS} epochs",
    )


def it_goes_on_where_it_stopped(subject: Subject) -> None:
    """Another one with the state of the first goes on as the first does, to the bit."""
    longer = _longer(subject)
    whole, begun = _opened(longer), _opened(longer)
    wanted = _epochs(whole, range(4))
    _epochs(begun, range(2))
    state = begun.state()
    resumed = _opened(longer)
    resumed.restore(state)
    found = _epochs(resumed, range(2, 4))
    expect(found == wanted[2:], f"losses of {wanted[2:]} expected after the stop, got {found}")
    files = [_written(subject, one).read_bytes() for one in (whole, resumed)]
    expect(files[0] == files[1], "the files of a run and of one that was stopped differ")


def the_file_is_what_learned(subject: Subject) -> None:
    """The file that is written answers as the network does."""
    made = _opened(_longer(subject))
    _epochs(made, range(2))
    model = onnx.load(_written(subject, made))
    onnx.checker.check_model(model)
    inputs, _ = examples(7)
    wanted = made.answers(inputs)
    found = np.concatenate([models.evaluate(model, one[None]) for one in inputs])
    off = np.abs(found - wanted).mean() / np.abs(wanted).max()
    expect(off <= NEAR, f"the file is off by {off:.2g} of the largest answer in the mean")


def the_source_is_left_alone(subject: Subject) -> None:
    """The file that is learned from does not change."""
    source = _source(subject)
    before, made = source.read_bytes(), _made(_longer(subject))
    made.open(source, examples(0)[0])
    _epochs(made, range(1))
    _written(subject, made)
    expect(source.read_bytes() == before, "the source was written to")


def noise_is_refused(subject: Subject) -> None:
    """A source that is not a model is refused with a reason of one line."""
    bad = subject.workshop.noise(".onnx")

    def attempt() -> None:
        with refusing(subject.backend.name):
            _made(subject).open(bad, examples(0)[0])

    refused("noise", attempt)


def examples(seed: int) -> tuple[Array, Array]:
    """Return inputs (32, 4, 8, 8), and which of five fixed directions each is longest in."""
    ways = np.random.default_rng(99).normal(size=(256, 5))
    inputs = np.random.default_rng(seed).normal(size=(COUNT, *models.SHAPE[1:]))
    labels = (inputs.reshape(COUNT, -1) @ ways).argmax(1).astype(np.int64)
    return inputs.astype(np.float32), labels


def _longer(subject: Subject) -> Subject:
    return subject.changed(epochs=EPOCHS, batch=8)


def _made(subject: Subject) -> Any:
    """An implementation; the learning rate is a number without a list of values."""
    return subject.offer.make({**subject.options, "learning_rate": 0.05, "seed": 0})


def _opened(subject: Subject) -> Any:
    made = _made(subject)
    made.open(_source(subject), examples(0)[0])
    return made


def _epochs(made: Any, numbers: range) -> list[float]:
    inputs, labels = examples(0)
    orders = (np.random.default_rng(number).permutation(COUNT) for number in numbers)
    pairs = zip(numbers, orders, strict=True)
    return [float(made.epoch(number, inputs, labels, order)) for number, order in pairs]


def _source(subject: Subject) -> Path:
    return subject.workshop.file(MODEL)


def _written(subject: Subject, made: Any) -> Path:
    target = subject.workshop.scratch("tuned.onnx")
    made.write(target)
    return target
