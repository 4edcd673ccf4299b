"""A spectrogram with its axes: frequencies in Hz from bottom to top, seconds from left to right."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from simulator.report.sections.embedded import Shown

LEFT, TOP, RIGHT, BOTTOM = 52, 8, 16, 20
"""Margins around the picture, in pixels: room for the words of the axes."""
_APART = 20
"""Pixels from one word of the frequencies to the next, at least."""
_TIMES = 5
"""Steps between the words of the seconds, at most."""


@dataclass(frozen=True, slots=True)
class Tick:
    """A word beside an axis: how many pixels right of the picture's left, or below its top."""

    at: float
    words: str


@dataclass(frozen=True, slots=True)
class Spectrogram:
    """A picture and what is written beside it.

    Attributes:
        shown: the picture.
        words: what it is, for those who do not see it.
        frequencies: from the lowest; empty where they are not known.
        times: from the first.
    """

    shown: Shown
    words: str
    frequencies: Sequence[Tick]
    times: Sequence[Tick]
    left: int = LEFT
    top: int = TOP

    @property
    def size(self) -> tuple[int, int]:
        """Width and height with both axes, in pixels."""
        return LEFT + self.shown.width + RIGHT, TOP + self.shown.height + BOTTOM


def frequencies(hertz: Sequence[float], high: int) -> list[Tick]:
    """Return the axis of frequencies: 1, 2 and 5 times powers of ten, as far as there is room.

    Args:
        hertz: the center of each band, the lowest first; each band has the same height.
        high: rows of the picture.
    """
    if not hertz:
        return []
    rows = [(len(hertz) - at - 0.5) * high / len(hertz) for at in range(len(hertz))]
    round_ones = [one for one in _round(max(hertz[0], 1)) if hertz[0] <= one <= hertz[-1]]
    chosen = round_ones if len(round_ones) > 1 else [hertz[0], hertz[-1]]
    found: list[Tick] = []
    for one in dict.fromkeys(chosen):
        at = float(np.interp(one, hertz, rows))
        if not found or found[-1].at - at >= _APART:
            found.append(Tick(at, _hertz(one)))
    return found


def times(seconds: float, wide: int) -> list[Tick]:
    """Return the axis of time, from 0 in equal steps.

    Args:
        seconds: that all columns last.
        wide: columns of the picture.
    """
    if seconds <= 0:
        return []
    step = next(one for one in _round(seconds / 100) if seconds / one <= _TIMES)
    number = math.floor(seconds / step + 1e-9)
    return [Tick(at * step / seconds * wide, f"{at * step:g} s") for at in range(number + 1)]


def _round(least: float) -> Iterator[float]:
    """1, 2 and 5 times powers of ten, from the last power below *least* to nine above it."""
    first = math.floor(math.log10(least))
    for power in range(first, first + 9):
        for factor in (1, 2, 5):
            yield float(f"{factor}e{power}")


def _hertz(value: float) -> str:
    return f"{value / 1000:.3g} kHz" if value >= 1000 else f"{value:.3g} Hz"
