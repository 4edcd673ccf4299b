"""Gradients: checks of scores, of the way back from them, and of invalid models."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from simulator.contract import Array
from simulator.errors import UserError
from simulator.testing import models
from simulator.testing.subject import Subject, expect, refused
from simulator.testing.work import Job, Work
from simulator.testing.workshop import refusing

NEAR = 5e-4
"""Error of scores, as a share of the largest: that of runtimes with approximated exponentials."""
SMOOTH = (
    "conv", "depthwise", "gemm", "matmul", "average_pool", "global_average_pool", "batch_norm",
    "sigmoid", "gelu", "softmax", "transpose", "reshape", "resize_nearest", "resize_linear",
    "conv_transpose", "layer_norm",
)  # fmt: skip
"""Families without corners, near which a difference says nothing."""
STEP = 1e-2
"""Half the distance of a central difference. It costs a smooth function a share of 1e-4 by its
third derivative, and float32 one of 1e-5."""
SLOPE = 2e-3
"""Error of a slope, as a share of the steepest: ten times what the difference costs."""


class Following(Work):
    """A job is the input of a 1x1 convolution; the result is its output, and a way back."""

    @contextmanager
    def _open(self) -> Iterator[Any]:
        with closing(_opened(self.subject, "work")) as made:
            yield made

    def _jobs(self) -> list[Job]:
        return [(x,) for x in models.inputs("work")]

    def _do(self, made: Any, job: Job) -> Job:
        scores, pull = made.at(job[0])
        return scores, pull(np.linspace(-1, 1, scores.size, dtype=np.float32))


def scores_agree_with_onnx_reference(subject: Subject) -> str | None:
    """One small model per operator family gives the numbers of the ONNX reference evaluator."""
    lacks = []
    for model in subject.workshop.families:
        made = _made(subject, model)
        if made is None:
            lacks.append(model)
            continue
        x = models.inputs(model)[0]
        want = models.reference(model, x).reshape(-1)
        for what, got in (("scores", made.scores(x)), ("at", made.at(x)[0])):
            expect(got.shape == want.shape, f"{model}: {what}: {want.shape} scores, {got.shape}")
            off = np.abs(got - want).max() / np.abs(want).max()
            expect(off <= NEAR, f"{model}: {what}: off by {off:.2g} of the largest score")
    return f"lacks {', '.join(lacks)}" if lacks else None


def agrees_with_differences(subject: Subject) -> None:
    """The way back gives slopes that central differences of the reference evaluator have.

    In the direction of the gradient itself, and in two others.
    """
    rng = np.random.default_rng(0)
    for model in (one for one in SMOOTH if one in subject.workshop.families):
        made = _made(subject, model)
        if made is None:
            continue
        x = models.inputs(model)[0]
        scores, pull = made.at(x)
        cotangent = rng.normal(size=scores.size).astype(np.float32)
        gradient = pull(cotangent).astype(np.float64)
        ways = [gradient, *rng.normal(size=(2, *x.shape))]
        for way in ways:
            unit = way / max(float(np.sqrt((way**2).mean())), 1e-12)
            ends = [models.reference(model, _moved(x, unit, step)) for step in (STEP, -STEP)]
            slope = float(((ends[0] - ends[1]).reshape(-1) * cotangent).sum()) / (2 * STEP)
            got = float((gradient * unit).sum())
            steepest = float(np.linalg.norm(gradient) * np.linalg.norm(unit))
            expect(
                abs(got - slope) <= SLOPE * max(steepest, abs(slope)),
                f"{model}: a slope of {slope:.4g} expected, got {got:.4g}",
            )


def the_way_back_stays(subject: Subject) -> None:
    """It may be taken again, also after another input was seen, and gives the same."""
    made, (first, second, *_) = _opened(subject, "conv"), models.inputs("conv")
    scores, pull = made.at(first)
    cotangents = np.random.default_rng(1).normal(size=(2, scores.size)).astype(np.float32)
    want = [np.array(pull(cotangent)) for cotangent in cotangents]
    made.at(second)[1](cotangents[0])
    for one, again in zip(want, map(pull, cotangents), strict=True):
        expect(np.array_equal(one, again), "the way back gives another gradient the second time")


def bad_models_are_refused(subject: Subject) -> None:
    """Noise, half a model and a missing file do not open, and the reason is one line."""
    good = subject.workshop.file("conv", subject.options["format"])
    for what, file in subject.workshop.bad_models(good):
        refused(what, _open, subject, file)


def _opened(subject: Subject, model: str) -> Any:
    return _open(subject, subject.workshop.file(model, subject.options["format"]))


def _open(subject: Subject, file: Path) -> Any:
    with refusing(f"{subject.backend.name} cannot open {file.name}"):
        return subject.make(file)


def _made(subject: Subject, model: str) -> Any:
    """An opened model of a family; None where it is refused in one line that names an operator."""
    try:
        return _opened(subject, model)
    except UserError as error:
        reason, known = str(error), models.operators(model)
        expect(
            "\n" not in reason and any(one.lower() in reason.lower() for one in known),
            f"{model} is refused, but not in one line that names {' or '.join(sorted(known))}: "
            f"{reason[:300]}",
        )
        return None


def _moved(x: Array, unit: Array, step: float) -> Array:
    return np.asarray(x + step * unit, np.float32)
