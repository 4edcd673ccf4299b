"""Check the settings that a runtime reports against those requested and its real behaviour."""

from __future__ import annotations

import numpy as np

from simulator.contract import Array, Effective, Runtime
from simulator.testing import models
from simulator.testing.runtimes import precisions
from simulator.testing.subject import Subject, expect, words
from simulator.testing.work import opened, run, working

_FINE, _MIDDLE = 1 + 2**-12, 1 + 2**-9
"""FP32 represents both; FP16 and TF32 (10 bits) only the second; BF16 (7 bits) neither."""


def options_are_in_force(subject: Subject) -> str | None:
    """Each option that is read back equals the requested one; a remark lists those not reported."""
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
                expect(told[name] == want, f"{name} {want} requested, {told[name]} in use")
    return f"does not report {', '.join(sorted(untold))}" if untold else None


def precision_is_in_force(subject: Subject) -> str | None:
    """The arithmetic is what the runtime reports, or what was requested if it reports nothing.

    1 + 2^-12 and 1 + 2^-9 go through a convolution that multiplies by 1. The results distinguish
    FP32, FP16 (or TF32) and BF16. Weights are stored in FP32 here.
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
            f"{words(variant)}: {told or 'nothing'} reported, {asked} requested, but the "
            f"arithmetic is {felt}",
        )
        if told not in (asked, None):
            remarks.append(f"{asked} requested, runs {told} and reports it")
    return "; ".join(remarks) or None


def effective(runtime: Runtime) -> Effective:
    """Return the settings that a runtime reports while it runs on zeros."""
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
