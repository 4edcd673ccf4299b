"""What a normalization's numbers are called, if they are not those of the training.

A slip is what was computed in place of ``(x / 255 - mean) / std``. Its scale and zero follow from
the training's own numbers, so that it is recognized whatever these are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from simulator.contract import Array
from simulator.diagnose.finding import Difference
from simulator.identify.affine import Affine
from simulator.identify.numbers import errors, tidied

_TOP = 255.0
_NTH = ("first", "second", "third")


@dataclass(frozen=True, slots=True, eq=False)
class Numbers:
    """A normalization: (level - mean) / std.

    Attributes:
        mean: (3,) on 0-255, in the order of the tensor's channels.
        std: (3,) likewise.
    """

    mean: Array
    std: Array

    def of(self, channels: Sequence[int]) -> Numbers:
        """Return the numbers in another order of channels."""
        picked = list(channels)
        return Numbers(self.mean[picked], self.std[picked])


RIGHT = "(x / 255 - mean) / std with the training's mean and std"


def found_in(fit: Affine) -> Numbers:
    """Return the normalization that a fit shows, its numbers with the digits that it supports."""
    return Numbers(*map(np.array, tidied(fit)))


def named(fit: Affine, right: Numbers, channels: Sequence[str]) -> list[Difference]:
    """Name in which a normalization differs; nothing where it does not.

    Args:
        fit: of the tensors to the levels of pixels, each channel to one.
        right: the training's, for the same channels.
        channels: their names.
    """
    off, far = errors(fit)

    def same(std: Array, mean: Array) -> bool:
        return bool(
            np.allclose(fit.std, std, rtol=max(off, 1e-5), atol=0)
            and np.allclose(fit.zero, mean, rtol=1e-5, atol=far)
        )

    if same(right.std, right.mean):
        return []
    for name, code, std, mean in _slips(right):
        if same(std, mean):
            return [Difference(name, code)]
    return _apart(fit, right, channels)


def _slips(right: Numbers) -> Iterator[tuple[str, str, Array, Array]]:
    """Yield slips and what undoes each, with the std and the zero that they give."""
    m, s, top = right.mean, right.std, _TOP
    ones, none, half = np.ones(3), np.zeros(3), top / 2 * np.ones(3)
    yield "255 forgotten", "divide pixels by 255 before normalizing", s / top, m / top
    yield "divided by 255 twice", "divide pixels by 255 only once", s * top, m * top
    yield "pixels of [0, 255] without a normalization", f"use {RIGHT}", ones, none
    yield "scaled to [0, 1] and not normalized", f"use {RIGHT}", top * ones, none
    yield "scaled to [-1, 1] and not by mean and std", f"use {RIGHT}", half, half
    for power, how in ((top, "numbers for [0, 1]"), (1.0, "numbers for [0, 255]")):
        yield "normalized twice", f"normalize only once ({how})", s * s / power, m + s * m / power
        text = "divided by std before the mean is subtracted"
        yield text, "subtract the mean first", s, m * s / power
    yield "normalized, then divided by 255", "do not divide a normalized tensor", s * top, m
    for std in (top * top / s, 1 / s):
        text = "multiplied by std in place of divided"
        yield text, "do not multiply by std, but divide", std, m
    yield "mean added in place of subtracted", "subtract the mean", s, -m
    yield "variance in place of standard deviation", "take the root", s * s / top, m
    yield "mean and std exchanged", "exchange them", m, s
    for std, how in ((ones, "[0, 255]"), (top * ones, "[0, 1]")):
        yield f"not divided by std, mean of {how}", "divide by std", std, m
    yield "mean not subtracted", "subtract the mean", s, none
    way = "give mean and std on one scale"
    for unit, other, factor in (("[0, 1]", "[0, 255]", 1 / top), ("[0, 255]", "[0, 1]", top)):
        yield f"mean of {unit} with std of {other}", way, s, m * factor
        yield f"mean of {other} with std of {unit}", way, s * factor, m
    backward = right.of((2, 1, 0))
    text = "mean and std in the other channel order"
    yield text, "reverse mean and std", backward.std, backward.mean


def _apart(fit: Affine, right: Numbers, channels: Sequence[str]) -> list[Difference]:
    """Name what is wrong with the mean, and with the std, each alone; else scale and offset."""
    off, far = errors(fit)
    shown = found_in(fit)
    mean = _Compared("mean", shown.mean, right.mean, right.std, far + 1e-5 * np.abs(right.mean))
    std = _Compared("std", shown.std, right.std, right.mean, max(off, 1e-5) * np.abs(right.std))
    found = [one.named() for one in (mean, std) if one.wrong.any()]
    names = [one for one in found if one is not None]
    wrong = np.flatnonzero(mean.wrong | std.wrong)
    if len(names) == len(found) and not (len(found) == 2 and len(wrong) == 1):
        return names
    added = right.mean / right.std - fit.zero / fit.std
    near = far / right.std.min() + 1e-5
    if not std.wrong.any() and np.ptp(added) <= 2 * near:
        return [_zero_point(float(added.mean()), fit.step)]
    if np.abs(added).max() <= near and (alone := std.named()) is not None:
        return [alone]
    gain = right.std / fit.std
    offset = right.mean - gain * fit.zero
    if (plain := _levels(gain, offset, off, far)) is not None:
        return [plain]
    if len(wrong) > 1 and (one := _other(shown, right, fit.error)) is not None:
        return [one]
    if len(wrong) == 3 and np.ptp(gain) < 0.01 and np.ptp(offset) < 0.5:
        parts = [f"scale {gain.mean():.4g} and offset {offset.mean():.3g} levels in all channels"]
    else:
        parts = [
            f"scale {gain[at]:.4g} and offset {offset[at]:.3g} levels in channel {channels[at]}"
            for at in map(int, wrong)
        ]
    code = f"normalize with mean {listed(right.mean)} and std {listed(right.std)} (of 0-255)"
    return [Difference("; ".join(parts), code, figures=True)]


def _zero_point(added: float, step: float) -> Difference:
    """Name one number that is added to every value, in the tensor's units and steps."""
    steps = f", {added / step:.3g} steps" if step else ""
    text = f"a zero point is ignored ({added:.4g} is added to every value{steps})"
    return Difference(text, "subtract the zero point before multiplying by the scale")


KNOWN = {
    "CLIP": ((0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711)),
    "ImageNet": ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
    "CIFAR-10": ((0.4914, 0.4822, 0.4465), (0.247, 0.2435, 0.2616)),
    "Inception": ((0.5, 0.5, 0.5), (0.5, 0.5, 0.5)),
}
"""Mean and std, on 0-1, that people copy from one model to another."""


def _levels(gain: Array, offset: Array, off: float, far: float) -> Difference | None:
    """Name what was done to the levels of all channels alike, before the training's numbers."""
    if np.ptp(gain) > max(1e-4, 4 * off) or np.ptp(offset) > max(1e-2, 4 * far):
        return None
    scale, start = float(gain.mean()), float(offset.mean())
    near = max(0.6, far)  # of a level, which whole levels lose
    if abs(start) <= near and scale > 0:
        for top in (127.5, 256.0, 254.0, 128.0, 127.0):
            if abs(_TOP / scale / top - 1) < max(1e-5, 2 * off):
                return Difference(f"divided by {top:g} in place of 255", "divide by 255")
        text = f"levels times {scale:.4g} in all channels"
        return Difference(text, "leave the brightness as it is decoded")
    if abs(scale + 1) < 0.005 and abs(start - _TOP) < near:
        return Difference("levels are inverted (255 - x)", "do not invert the image")
    if 0 < scale < 1 and abs(start - _TOP * (1 - scale)) < near:
        text = f"blended with white: {100 * (1 - scale):.3g} %"
        return Difference(text, "leave transparency and brightness as they are")
    return None


def _other(shown: Numbers, right: Numbers, error: float) -> Difference | None:
    """Another model's mean and std."""
    for name, (mean, std) in KNOWN.items():
        theirs = Numbers(_TOP * np.array(mean), _TOP * np.array(std))
        near = np.allclose(shown.std, theirs.std, rtol=max(1e-4, 6 * error), atol=0)
        if near and np.allclose(shown.mean, theirs.mean, rtol=0, atol=max(0.02, 600 * error)):
            told = f"mean {_unit(theirs.mean)} and std {_unit(theirs.std)}"
            text = f"{name}'s mean and std in place of the model's ({told})"
            code = f"normalize with mean {_unit(right.mean)} and std {_unit(right.std)} of [0, 1]"
            return Difference(text, code)
    return None


@dataclass(frozen=True, slots=True, eq=False)
class _Compared:
    """Three means, or three standard deviations, against the training's."""

    what: str
    got: Array
    right: Array
    other: Array
    error: Array

    @property
    def wrong(self) -> Array:
        return np.asarray(np.abs(self.got - self.right) > self.error)

    def _is(self, numbers: Array) -> bool:
        return bool((np.abs(self.got - numbers) <= self.error).all())

    def named(self) -> Difference | None:
        """Return what is wrong; None where it is no slip that has a name."""
        right, what = self.right, self.what
        code = f"write {what} {listed(right)} (of pixels 0-255) in place of {listed(self.got)}"
        if self._is(right[::-1]):
            return Difference(f"{what} in the other channel order", f"reverse the {what}")
        one = np.full(3, self.got.mean())
        wrong = np.flatnonzero(self.wrong)
        if len(wrong) > 1 and self._is(one):
            if not np.ptp(right):
                text = f"{what} {listed(one[:1])} in place of {listed(right[:1])}"
            elif what == "mean":
                text = f"one mean for three ({listed(one[:1])} for {listed(right)})"
            else:
                fits = f"fits {_unit(one[:1])} for {_unit(right)}"
                text = f"one scale for three standard deviations ({fits})"
            return Difference(text, code)
        if len(wrong) != 1:
            return None
        at = int(wrong[0])
        also = np.flatnonzero(np.abs(self.got[at] - self.other) <= self.error[at])
        kind = "standard deviation" if what == "mean" else "mean"
        twin = f", which is the {_NTH[also[0]]} {kind}" if also.size else ""
        text = f"{listed(self.got[[at]])} for {listed(right[[at]])}{twin}"
        return Difference(f"a typing error in the {_NTH[at]} {what} ({text})", code)


def _unit(values: Sequence[float] | Array) -> str:
    return ", ".join(f"{value / _TOP:.3g}" for value in values)


def listed(values: Sequence[float] | Array) -> str:
    """Return numbers as a person writes them."""
    return ", ".join(f"{value:.6g}" for value in values)
