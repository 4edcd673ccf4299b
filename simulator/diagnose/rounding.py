"""Differences of rounding alone: FP16, fractions of a level, another order of arithmetic."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from simulator.contract import Array
from simulator.diagnose.finding import Certainty, Difference, Finding, Part
from simulator.diagnose.levels import WHOLE, levels_of
from simulator.diagnose.normalization import Numbers
from simulator.identify.affine import ULPS, affine

BRAIN: Mapping[str, Callable[[Array], Array]] = {
    "input in BF16": lambda x: _brain(x.view(np.uint32) + 0x7FFF + (x.view(np.uint32) >> 16 & 1)),
    "input in BF16, cut and not rounded": lambda x: _brain(x.view(np.uint32)),
}
"""Of float32, what has the 16 highest bits only."""


def _brain(bits: Array) -> Array:
    return np.asarray((bits & np.uint32(0xFFFF0000)).astype(np.uint32).view(np.float32))


_LEVELS = 256
"""Values at most of a tensor of 8 bits, whatever its channels."""


def rounded(before: Sequence[Array], after: Sequence[Array], right: Numbers) -> Finding | None:
    """Name a rounding, where nothing else differs.

    Args:
        before: the training's tensors, each (3, H, W).
        after: the deployment's.
        right: the training's normalization.
    """
    largest = max(float(np.abs(a - b).max()) for a, b in zip(before, after, strict=True))
    size = max(float(np.abs(one).max()) for one in before)
    ulp = float(np.spacing(np.float32(size)))
    evidence = f"the largest difference is {largest:.2g}, of values up to {size:.3g}"

    def finding(name: str, certainty: Certainty, code: str) -> Finding:
        left = 0.0 if certainty is Certainty.EXACT else largest
        return Finding(Part.FRONT_END, name, (evidence,), certainty, left, {}, code)

    pairs = list(zip(before, after, strict=True))
    if all(np.array_equal(a.astype(np.float16).astype(np.float32), b) for a, b in pairs):
        return finding("input in FP16", Certainty.EXACT, "give the network float32")
    if largest <= ULPS * ulp:
        text = f"equal up to rounding ({largest:.2g}): another order of the same arithmetic"
        return finding(text, Certainty.ROUNDING, "")
    for name, made in BRAIN.items():
        if all(np.array_equal(made(a), b) for a, b in pairs):
            return finding(name, Certainty.EXACT, "give the network float32")
    fit = affine(after, [levels_of(one, right) for one in before])
    scaled = np.abs(fit.std / right.std - 1).max() > 1e-3
    if fit.exact and (fit.step or scaled):
        return None  # a normalization, or a grid
    fraction = _fractions(before, after, right) if largest * right.std.max() <= 1.01 else None
    return finding(fraction.name, Certainty.ROUNDING, fraction.code) if fraction else None


def _fractions(
    before: Sequence[Array], after: Sequence[Array], right: Numbers
) -> Difference | None:
    """Name what one stack does to the fractions of a level that a resize gives."""
    a, b = (np.concatenate([levels_of(p, right).ravel() for p in some]) for some in (before, after))
    whole = [bool(np.abs(one - np.rint(one)).max() < WHOLE) for one in (a, b)]
    keep = "keep the resize's fractions: resize floats"
    if whole == [False, True] and np.abs(a - b).max() < 0.5 + WHOLE:
        return Difference("resized pixels are rounded to whole levels", keep)
    if whole == [False, True] and (b <= a + WHOLE).all():
        return Difference("resized pixels are cut to whole levels", keep)
    quantized = np.unique(np.stack(after)).size <= _LEVELS
    if whole == [True, False] and not quantized:
        code = "round the resized pixels to whole levels"
        return Difference("resized pixels are not rounded to whole levels", code)
    return None
