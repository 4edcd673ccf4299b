"""Casts and quantizers to numbers with an exponent: values worked out by hand."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import onnx
from onnx import helper

from simulator.contract import Array, Stage
from simulator.testing import models
from simulator.testing.subject import Subject, expect, words
from simulator.testing.work import working

_E4M3 = {448.0: 448.0, 19.0: 20.0, 17.0: 16.0, -18.9: -18.0, 0.3: 0.3125, 2**-9: 2**-9,
         3 * 2**-10: 2**-8, 2**-10: 0.0}  # fmt: skip
_E5M2 = {57344.0: 57344.0, 9.0: 8.0, 11.0: 12.0, -9.1: -10.0, 0.3: 0.3125, 2**-16: 2**-16,
         3 * 2**-17: 2**-15, 2**-17: 0.0}  # fmt: skip
_E2M3 = {7.5: 7.5, 4.25: 4.0, 4.75: 5.0, -4.3: -4.5, 0.3: 0.25, 0.1875: 0.25, 0.0625: 0.0}
_E3M2 = {28.0: 28.0, 9.0: 8.0, 11.0: 12.0, -9.1: -10.0, 0.3: 0.3125, 0.09375: 0.125, 0.03125: 0.0}
_E2M1 = {6.0: 6.0, 5.0: 4.0, 3.5: 4.0, -2.5: -2.0, 1.25: 1.0, 0.75: 1.0, 0.25: 0.0, 5.1: 6.0}
_NVFP4 = {6.0: 6.0, 5.1: 6.0, 3.4: 3.0, -2.6: -3.0, 1.2: 1.0, 0.8: 1.0, 0.2: 0.0}
_NF4 = {1.0: 1.0, -1.0: -1.0, 0.9: 1.0, 0.8: 0.7229568, -0.3: -0.2844414, 0.04: 0.0795803,
        0.03: 0.0}  # fmt: skip
BY_HAND: Mapping[str, Mapping[float, float]] = {
    "fp8_e4m3": _E4M3, "mxfp8_e4m3": _E4M3, "fp8_e5m2": _E5M2, "mxfp8_e5m2": _E5M2,
    "mxfp6_e2m3": _E2M3, "mxfp6_e3m2": _E3M2, "mxfp4": _E2M1, "nvfp4": _NVFP4, "nf4": _NF4,
}  # fmt: skip
"""By format: numbers and what they become behind a scale of 1. The first is the largest; ties go
to an even mantissa; NVFP4 multiplies by a reciprocal, which moves ties, so that it has none here.

Source:
    OCP 8-bit Floating Point Specification 1.0, table 1; OCP Microscaling Formats 1.0, tables 2 to
    5; QLoRA, https://arxiv.org/abs/2305.14314, appendix E.
"""
BY_MODE = {
    "floor": {6.5: (6.0, 0.5), 7.0: (6.0, 0.5)},
    "rceil": {6.5: (6.0, 0.0), 7.0: (8.0, 0.0)},
    "even": {6.5: (6.0, 0.5), 7.0: (8.0, 0.0)},
}
"""What the largest number of an MXFP4 block, and 0.5 beside it, become by each ``scale_mode``."""
_BEYOND = {"fp8_e4m3": float("nan"), "fp8_e5m2": float("inf")}
_OWN_SCALES = 0.125
"""What the second block of 32 is multiplied by, where blocks have scales of their own."""


def numbers_by_hand(subject: Subject) -> str | None:
    """A format with an exponent rounds to the nearest number, ties to even, in every block."""
    maker, seen = subject.offer.make, False
    for variant in working(subject):
        options = variant.options
        weights = subject.offer.stage == Stage.CAST
        name = options.get("storage" if weights else "activations")
        if name not in BY_HAND:
            continue
        if getattr(maker, "gives", None):
            return "no evaluator for this format"
        seen = True
        mode = options.get("scale_mode") if name == "mxfp4" else None
        fed, want = _row(str(name), mode)
        if weights:
            made = _made(variant, fed[:, None], fed)
            got = models.evaluate(made, np.eye(len(fed), dtype=np.float32))[:, 0]
            _near(variant, got, want)
            continue
        made = _made(variant, np.eye(len(fed), dtype=np.float32), fed)
        _near(variant, models.evaluate(made, fed[None])[0], want)
        if options.get("ranges") == "calibrated" and name in _BEYOND:
            beyond = np.zeros((1, len(fed)), np.float32)
            beyond[0, 0] = 2 * fed.max()
            held = options["overflow"] == "saturate"
            got = models.evaluate(made, beyond)[0, :1]
            _near(variant, got, np.array([fed.max() if held else _BEYOND[name]]))
    return None if seen else "no format with an exponent"


def _row(name: str, mode: str | None) -> tuple[Array, Array]:
    """Two blocks of 32, each twice the numbers by hand; for a mode of scales two more."""
    pairs = list(BY_HAND[name].items())
    first = np.array([pairs[n % 16 % len(pairs)] for n in range(32)], np.float32)
    rows: list[Array] = [
        first,
        first * np.float32(_OWN_SCALES if name.startswith(("mx", "nv")) else 1),
    ]
    for largest, (becomes, beside) in BY_MODE[mode].items() if mode else ():
        block = np.zeros((32, 2), np.float32)
        block[0], block[1] = (largest, becomes), (0.5, beside)
        rows.append(block)
    fed, want = np.concatenate(rows).T
    return fed, want


def _made(variant: Subject, weights: Array, calibration: Array) -> onnx.ModelProto:
    """Let the maker change a product of x (n, K) and weights (K, N)."""
    node = helper.make_node("MatMul", ["x", "w"], ["y"], name="product")
    rows, columns = weights.shape
    shapes = {"x": ["n", rows]}, {"y": ["n", columns]}
    model = models.model("product", [node], *shapes, {"w": weights})
    source = variant.workshop.scratch("source.onnx")
    target = variant.workshop.scratch("made.onnx")
    onnx.save(model, str(source))
    if variant.offer.stage == Stage.CAST:
        variant.make().cast(source, target)
    else:
        variant.make().quantize(source, target, iter([{"x": calibration[None]}]))
    return onnx.load(str(target))


def _near(variant: Subject, got: Array, want: Array) -> None:
    same = np.isclose(got, want, rtol=1e-6, atol=0, equal_nan=True)
    expect(
        bool(same.all()),
        f"{words(variant)}: {want[~same][:3].tolist()} expected, got {got[~same][:3].tolist()}",
    )
