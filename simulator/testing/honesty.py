"""Honesty: what a runtime says is in force, held against what was asked for and what it does."""

from __future__ import annotations

import numpy as np

from simulator.contract import Array, Effective, Runtime
from simulator.testing import models
from simulator.testing.runtimes import precisions
from simulator.testing.subject import Subject, expect, words
from simulator.testing.work import opened, run, working

_FINE, _MIDDLE = 1 + 2**-12, 1 + 2**-9
"""FP32 holds both; FP16 and TF32 (10 bits) only the second; BF16 (7 bits) neither."""


def options_are_in_force(subject: Subject) -> str | None:
    """Each option that is read back is the one asked for; what is not told is remarked."""
    untold = set()
    for variant in working(subject):
        with opened(variant, "hand") as runtime:
            told = effective(runtime).options
        for name, want in variant.options.items():
            if name in ("storage", "compute"):
                continue
            if told.get(name) is None:
                untold.add(name)
            else:
                expect(told[name] == want, f"{name} {want} asked for, {told[name]} in force")
    return f"does not tell {', '.join(sorted(untold))}" if untold else None


def precision_is_in_force(subject: Subject) -> str | None:
    """The arithmetic is what is told, and what was asked for where nothing is told.

    1 + 2^-12 and 1 + 2^-9 go through a convolution that multiplies by 1: what is left of them
    tells FP32, FP16 (or TF32) and BF16 apart. Weights are stored in FP32 here.
    """
    remarks = []
    for variant in precisions(subject):
        asked = variant.options.get("compute", "fp32")
        with opened(variant, "hand") as runtime:
            told = effective(runtime).compute
            felt = _felt(runtime)
        plain = asked != "int8" and variant.options.get("storage", "fp32") == "fp32"
        expect(
            (told or asked) == felt or not plain,
            f"{words(variant)}: {told or 'nothing'} told, {asked} asked for, and the arithmetic "
            f"is {felt}",
        )
        if told not in (asked, None):
            remarks.append(f"{asked} asked for, runs {told} and says so")
    return "; ".join(remarks) or None


def effective(runtime: Runtime) -> Effective:
    """What a runtime says of itself, at work on zeros."""
    return runtime.effective({runtime.inputs[0].name: np.zeros(models.shape("hand"), np.float32)})


def _felt(runtime: Runtime) -> str:
    left = [float(run(runtime, _first_channel(value))[0, 0, 3, 3]) for value in (_FINE, _MIDDLE)]
    if abs(left[0] - _FINE) < 2**-14:
        return "fp32"
    return "fp16" if abs(left[1] - _MIDDLE) < 2**-11 else "bf16"


def _first_channel(value: float) -> Array:
    x = np.zeros(models.shape("hand"), np.float32)
    x[:, 0] = value
    return x
