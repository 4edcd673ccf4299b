"""Exporters, casts and quantizers: checks of their source, refusals, and numbers."""

from __future__ import annotations

import numpy as np
import onnx

from simulator.contract import Stage
from simulator.testing import models
from simulator.testing.runtimes import STORAGE
from simulator.testing.subject import Subject, expect, refused, words
from simulator.testing.work import first_job, make, source, working
from simulator.testing.workshop import refusing

QUANTIZED = 0.15
"""Mean error of a quantized convolution, as a share of the largest output: percentile and entropy
calibration clip, and on four samples they clip much."""


def proved_on(subject: Subject) -> str:
    """Return the model that a maker changes: a convolution, unless it says otherwise."""
    return getattr(subject.offer.make, "proved_on", "conv")


def the_source_is_left_alone(subject: Subject) -> None:
    """The source file does not change."""
    file = source(subject, proved_on(subject))
    before = file.read_bytes()
    make(subject, subject.make(), file)
    expect(file.read_bytes() == before, "the source was written to")


def the_same_twice(subject: Subject) -> None:
    """A second conversion gives the same bytes."""
    again = make(subject, subject.make(), source(subject, proved_on(subject))).read_bytes()
    expect(
        first_job(subject)[0].tobytes() == again, "two conversions of one file give different bytes"
    )


def noise_is_refused(subject: Subject) -> None:
    """A source that is not a model is refused with a reason of one line."""
    good = source(subject, proved_on(subject))
    bad = subject.workshop.noise(good.suffix)

    def attempt() -> None:
        with refusing(subject.backend.name):
            make(subject, subject.make(), bad)

    refused("noise", attempt)


def the_numbers_stay_near(subject: Subject) -> str | None:
    """An ONNX file keeps its ports, and its outputs stay near those of the source."""
    maker = subject.offer.make
    if maker.format != "onnx" or maker.gives or not getattr(maker, "portable", True):
        return "no evaluator for this format; the checks of runtimes cover its numbers"
    x = models.inputs("conv")[0]
    want = models.reference("conv", x)
    for variant in working(subject):
        made = onnx.load_from_string(first_job(variant)[0].tobytes())
        onnx.checker.check_model(made)
        for port in (*made.graph.input, *made.graph.output):
            kind = port.type.tensor_type.elem_type
            expect(kind == onnx.TensorProto.FLOAT, f"{port.name} is not float32 any more")
        off = np.abs(models.evaluate(made, x) - want).mean() / np.abs(want).max()
        limit = STORAGE[variant.options.get("storage", "int8")]
        if subject.offer.stage == Stage.QUANTIZE:
            limit = QUANTIZED
        expect(off <= limit, f"{words(variant)}: {off:.1e} off, within {limit:.0e} expected")
    return None
