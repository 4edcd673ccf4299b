"""The bootstrap over images: all figures of a comparison use the same resampled images.

A resampled figure is a vector (1 + R,): its value on all images, then on each of R resamples.
Differences and sums of such vectors are resampled figures, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from simulator.spent import Work, spending

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]
Figure = Callable[[Counts], Floats]
"""A function from (r, n) counts (how often each image was drawn) to the figure's (r,) values."""

RESAMPLES = 4000
_BATCH = 2_000_000
"""How many counts are in memory at once."""
ROUNDING = 1e-12
"""Smaller absolute values are treated as 0: they are float64 rounding errors."""


@dataclass(frozen=True, slots=True)
class Resamples:
    """R draws of n images out of n with replacement; every iteration gives the same draws.

    Attributes:
        images: n, the number of images.
        seed: of the draws.
        number: R, the number of draws.
    """

    images: int
    seed: int = 0
    number: int = RESAMPLES

    def __iter__(self) -> Iterator[Counts]:
        """Yield the counts in batches of (r, n) int64."""
        rng, n = np.random.default_rng(self.seed), self.images
        batch = max(1, _BATCH // max(n, 1))
        for start in range(0, self.number, batch):
            size = min(batch, self.number - start)
            yield rng.multinomial(n, np.full(n, 1 / n), size=size)

    def of(self, figure: Figure) -> Floats:
        """Return the figure on all images and on each resample, (1 + R,)."""
        return self.of_each([figure])[0]

    def of_each(self, figures: Sequence[Figure]) -> list[Floats]:
        """Return each figure on all images and on each resample, (1 + R,); drawn once for all."""
        whole = np.ones((1, self.images), np.int64)
        with spending(Work.STATISTICS):
            parts = [[figure(counts) for figure in figures] for counts in chain([whole], self)]
            return [np.concatenate(one) for one in zip(*parts, strict=True)]


@dataclass(frozen=True, slots=True)
class Effect:
    """A figure with its paired bootstrap interval.

    Attributes:
        value: on all images.
        ci95: percentile interval; NaN where no resample defines the figure.
        p: two-sided bootstrap p-value against zero, at least 2 / (R + 1) and 2 / 2^n of n images.
    """

    value: float
    ci95: tuple[float, float]
    p: float


def effect(figure: Floats, images: int) -> Effect:
    """Return a resampled figure's value, interval and p-value.

    The p-value is at least that of a sign-flip test in which all n images agree, 2 / 2^n: the
    bootstrap draws from what was seen, and of few images it makes too much.

    Args:
        figure: (1 + R,); resamples in which it is not defined (NaN) are left out.
        images: n, how many carry the figure.

    Source:
        Efron and Tibshirani 1993, percentile intervals; Davison and Hinkley 1997, section 4.4,
        for the p-value with one added to both counts.
    """
    drawn = _defined(figure)
    tail = min((drawn <= 0).sum(), (drawn >= 0).sum())
    p = 2 * (int(tail) + 1) / (drawn.size + 1)
    return Effect(float(figure[0]), interval(figure), min(1.0, max(p, 2.0 ** (1 - images))))


def interval(figure: Floats) -> tuple[float, float]:
    """Return a resampled figure's percentile interval of 95 %; NaN where no resample defines it."""
    drawn = _defined(figure)
    if not drawn.size:
        return float("nan"), float("nan")
    low, high = np.quantile(drawn, [0.025, 0.975])
    return float(low), float(high)


def _defined(figure: Floats) -> Floats:
    """The resamples that define a figure, rounding errors as 0."""
    drawn = np.where(np.abs(figure[1:]) < ROUNDING, 0.0, figure[1:])
    return drawn[~np.isnan(drawn)]


def resampled_mean(values: Floats, seed: int, number: int = RESAMPLES) -> Floats:
    """Return the mean of values, and of *number* resamples of them, (1 + number,).

    How often each value is drawn is multinomial, and so is how often all equal ones are together:
    what can be drawn is what :class:`Resamples` draws, in less time where few values differ.

    Args:
        values: (n,), one per image.
        seed: of the draws.
        number: of resamples.
    """
    rng, n = np.random.default_rng(seed), len(values)
    different, counts = np.unique(values, return_counts=True)
    parts = [np.array([values.mean()])]
    batch = max(1, _BATCH // len(different))
    with spending(Work.STATISTICS):
        for start in range(0, number, batch):
            size = min(batch, number - start)
            parts.append(rng.multinomial(n, counts / n, size=size) @ different / n)
    return np.concatenate(parts)


def ratio(numerators: Floats, denominators: Floats) -> Figure:
    """Return the figure sum(numerators) / sum(denominators) over images.

    Args:
        numerators: (n,), one per image.
        denominators: (n,), likewise; where their sum is 0 the figure is NaN.
    """
    both = np.stack([numerators, denominators], axis=1)

    def figure(counts: Counts) -> Floats:
        above, below = (counts @ both).T
        share: Floats = np.full(len(counts), np.nan)
        np.divide(above, below, out=share, where=below != 0)
        return share

    return figure
