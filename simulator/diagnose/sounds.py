"""Name what differs between the spectrograms that two stacks give the network, for equal sounds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from simulator.contract import Array, Recording
from simulator.diagnose.finding import Certainty, Difference, Finding
from simulator.modalities.audio.card import AudioCard, AudioInput
from simulator.modalities.audio.steps import PER_BEL

_SHIFTS = sorted(range(-8, 9), key=abs)
"""Frames by which one spectrogram may be behind the other."""
_ROUNDING = 1e-3
"""Of the values' spread: logarithms of small powers are far apart where these are rounded."""
_EXPLAINED = 0.5
_NEAR = 1e-3
_USUAL = (4000, 8000, 11025, 16000, 22050, 24000, 32000, 44100, 48000)
_KINDS = {"ln": "ln", "log10": "log10", "db": "decibels"}


@dataclass(frozen=True, slots=True)
class _Fit:
    """The deployment's values are *gain* times the training's plus *offset*, *shift* frames on."""

    shift: int
    gain: float
    offset: float
    largest: float
    share: float


def name_sounds(
    train: Sequence[Array], deploy: Sequence[Array], card: AudioCard, sounds: Sequence[Recording]
) -> list[Finding]:
    """Name the difference, by solving alone.

    Args:
        train: the log-mel spectrogram of each sound, of the card's layout.
        deploy: likewise, of the same sounds.
        card: of the model.
        sounds: the files.

    Returns:
        Nothing where the network takes no spectrograms, or nothing explains the difference.
    """
    if card.input.features != "log_mel":
        return []
    before, after = ([_rows(one, card.input) for one in some] for some in (train, deploy))
    fits = [one for one in (_fit(before, after, by) for by in _SHIFTS) if one is not None]
    best = min(fits, key=lambda one: one.largest, default=None)
    solved = best is not None and best.share < _EXPLAINED
    names = list(_frames(before, after, card.input, sounds, best.shift if solved and best else 0))
    if best is not None and solved:
        names += _logarithm(best, card)
    certainty, left = Certainty.NEAREST, None
    if best is not None and solved:
        left = best.largest
        spread = float(np.concatenate([one.ravel() for one in after]).std())
        if best.largest <= _ROUNDING * spread:
            certainty = Certainty.ROUNDING if best.largest else Certainty.EXACT
    return [one.finding(certainty, left) for one in names]


def _rows(value: Array, spec: AudioInput) -> Array:
    """(bands, frames) float64."""
    rows = value.reshape(value.shape[-2:]).astype(np.float64)
    return rows.T if spec.layout.endswith("TM") else rows


def _fit(before: Sequence[Array], after: Sequence[Array], shift: int) -> _Fit | None:
    """Least squares over the frames that both have."""
    pairs = [_shifted(a, b, shift) for a, b in zip(before, after, strict=True)]
    x, y = (np.concatenate([one[side].ravel() for one in pairs]) for side in (0, 1))
    if x.size < 2 or not x.std() or not y.std():
        return None
    gain, offset = np.polyfit(x, y, 1)
    left = np.abs(y - gain * x - offset)
    return _Fit(shift, float(gain), float(offset), float(left.max()), float(left.std() / y.std()))


def _shifted(a: Array, b: Array, shift: int) -> tuple[Array, Array]:
    """The frames of the training from *shift* on, and as many of the deployment's."""
    a, b = a[:, max(shift, 0) :], b[:, max(-shift, 0) :]
    count = min(a.shape[1], b.shape[1])
    return a[:, :count], b[:, :count]


def _frames(
    before: Sequence[Array], after: Sequence[Array], spec: AudioInput,
    sounds: Sequence[Recording], shift: int,
) -> Iterator[Difference]:  # fmt: skip
    """Yield why there are more or fewer frames, or others."""
    assert spec.n_fft is not None and spec.hop is not None
    counts = [(a.shape[1], b.shape[1]) for a, b in zip(before, after, strict=True)]
    if not shift and all(a == b for a, b in counts):
        return
    told = (f"frames: {', '.join(f'{b:,} for {a:,}' for a, b in counts)}",)
    sizes = [one.frames * spec.rate / one.rate for one in sounds]
    padded, plain = (
        [1 + int(size - less) // spec.hop for size in sizes] for less in (0, spec.n_fft)
    )
    ours, theirs = ([one[side] for one in counts] for side in (0, 1))
    first = f"{theirs[0]:,} frames for {ours[0]:,}"
    if _near(ours, padded) and _near(theirs, plain) and shift >= 0:
        code = "pad half a transform on both sides of the sound before it is cut into frames"
        yield Difference(f"no center padding ({first})", code, {"stft.center": True}, told)
        return
    if _near(ours, plain) and _near(theirs, padded) and shift <= 0:
        code = "cut the sound into frames as it is"
        name = f"center padding, which training has not ({first})"
        yield Difference(name, code, {"stft.center": False}, told)
        return
    rates = [b / a for a, b in counts]
    if all(abs(1 - r * one.rate / spec.rate) < 0.02 or abs(1 - r * spec.rate / one.rate) < 0.02
           for r, one in zip(rates, sounds, strict=True)) and abs(rates[0] - 1) > 0.05:  # fmt: skip
        got = f"{sounds[0].rate:,} Hz taken for {spec.rate:,} Hz, {first}"
        code = f"resample to {spec.rate:,} Hz before the spectrogram"
        yield Difference(f"the sound is not resampled ({got})", code, {}, told)
        return
    steps = [(b - 1) / max(a - 1, 1) for a, b in counts]  # one frame less: the hops between them
    slack = max(0.02, 1.5 / min(ours))
    step = round(float(np.median(steps)), 2)
    if max(steps) - min(steps) < slack * max(steps) and abs(step - 1) > max(0.05, slack):
        code = f"use the training's rate of {spec.rate:,} Hz and hop of {spec.hop:,}"
        here, taken = _usual(spec.rate * step), _usual(spec.rate / step)
        other = f"sounds of {here:,.0f} Hz, or taken for {taken:,.0f} Hz"
        name = f"{step:.3g} times the frames: {other}, where {spec.rate:,} Hz are expected"
        yield Difference(f"{name}; or another hop", code, {}, told)
    elif not shift and min(theirs) != max(theirs) and len({b > a for a, b in counts}) == 1:
        more = "more" if theirs[0] > ours[0] else "fewer"
        yield Difference(f"{more} frames at the end ({first})", "frame as in training", {}, told)
    else:
        where = f", {abs(shift)} {'later' if shift > 0 else 'earlier'}" if shift else ""
        yield Difference(f"other frames ({first}{where})", "frame as in training", {}, told)


def _usual(rate: float) -> float:
    """The usual sample rate that is near; the rate itself where none is."""
    nearest = min(_USUAL, key=lambda one: abs(one - rate))
    return nearest if abs(nearest / rate - 1) < 0.06 else rate


def _near(some: Sequence[int], expected: Sequence[int]) -> bool:
    """Whether counts are those of a formula; a stack may leave out the last frame."""
    return all(0 <= b - a <= 1 for a, b in zip(some, expected, strict=True))


def _logarithm(fit: _Fit, card: AudioCard) -> Iterator[Difference]:
    """Yield what was done to the values."""
    told = (f"each value is {fit.gain:.5g} times the training's, and {fit.offset:.4g} more",)
    own = card.trained.log.kind if card.trained.log else "ln"
    for kind, per in PER_BEL.items():
        if kind != own and abs(fit.gain * PER_BEL[own] / per - 1) < _NEAR:
            name = f"{_KINDS[kind]} in place of {_KINDS[own]}"
            yield Difference(name, f"take the logarithm as {_KINDS[own]}", {"log.kind": own}, told)
            return
    loud = 2 * np.log10(32768) * PER_BEL[own]
    if abs(fit.gain - 1) < _NEAR and abs(fit.offset / loud - 1) < _NEAR:
        name = "samples of 16 bits are not divided by 32768"
        yield Difference(name, "divide samples by 32768", {"read.scale": "unit"}, told)
    elif abs(fit.gain - 1) >= _NEAR or abs(fit.offset) > _NEAR:
        name = f"scale {fit.gain:.4g} and offset {fit.offset:.3g} of the logarithms"
        yield Difference(name, "normalize as in training", {}, told)
