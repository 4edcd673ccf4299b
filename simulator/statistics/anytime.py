"""Tests of a mean that may be looked at after every sample, with their error bound kept.

A gate asks whether a mean lies above a limit. Somebody bets against each of the two answers: before
each sample he stakes a share of his capital at odds that are fair if the answer is true. Where it
is, his capital exceeds ``1 / alpha`` at any time with a probability of at most *alpha* (Ville's
inequality). So as soon as it does, the answer is refuted, and the run may stop.

The bettor divides his capital among alternatives *q* on the other side of the limit *m*, one unit
of *x* in [0, 1] being worth ``x q / m + (1 - x) (1 - q) / (1 - m)``. Of zeros and ones that is the
likelihood ratio of *q* to *m*, and the alternatives are spread as Jeffreys' prior, Beta(1/2, 1/2),
cut off at *m*.

Source:
    J. Ville, Étude critique de la notion de collectif, 1939; I. Waudby-Smith and A. Ramdas,
    Estimating means of bounded random variables by betting, JRSS B 86 (2024) 1-27; H. Robbins,
    Statistical methods related to the law of the iterated logarithm, Ann. Math. Stat. 41 (1970).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from simulator.statistics import planning, special

ALTERNATIVES = 1024
_LEAST = 1e-9
"""Ends of confidence sequences are sought no nearer to the ends of the range."""
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Range:
    """The smallest and the largest value that a sample can have."""

    low: float
    high: float

    def scaled(self, value: float) -> float:
        """Return where a value lies, from 0 to 1.

        Raises:
            ValueError: it lies outside.
        """
        if not self.low <= value <= self.high:
            raise ValueError(f"{value} is not between {self.low} and {self.high}")
        return (value - self.low) / (self.high - self.low)


class Evidence:
    """What the samples say of one mean, in whatever order they come.

    Args:
        values: the range of one sample's value.
        seen: values of samples, each within the range.
    """

    def __init__(self, values: Range, seen: Iterable[float] = ()) -> None:
        self._range = values
        self._counts: Counter[float] = Counter()
        for value in seen:
            self.add(value)

    def add(self, value: float) -> None:
        """Take one more sample.

        Raises:
            ValueError: the value lies outside the range.
        """
        self._counts[self._range.scaled(value)] += 1

    @property
    def samples(self) -> int:
        """How many samples were seen."""
        return self._counts.total()

    @property
    def mean(self) -> float:
        """The mean of what was seen; NaN before the first sample."""
        return self._range.low + self._scaled_mean * self._span

    @property
    def _scaled_mean(self) -> float:
        if not self.samples:
            return math.nan
        return sum(at * count for at, count in self._counts.items()) / self.samples

    @property
    def _span(self) -> float:
        return self._range.high - self._range.low

    def against(self, limit: float) -> tuple[float, float]:
        """Return the logarithms of the capital of two bettors.

        Args:
            limit: in the unit of the samples; outside the range one answer is impossible.

        Returns:
            Of him who bets that the mean is above the limit, and of him who bets that it is below:
            the first refutes "at most the limit", the second "at least the limit".
        """
        at = (limit - self._range.low) / self._span
        if at < 0:
            return math.inf, -math.inf
        if at > 1:
            return -math.inf, math.inf
        return self._capital(at, above=True), self._capital(at, above=False)

    def interval(self, alpha: float) -> tuple[float, float]:
        """Return the means that are not refuted: a confidence sequence of level ``1 - alpha``.

        Args:
            alpha: the probability that it ever leaves out the true mean; each end has half of it.
        """
        if not self.samples:
            return self._range.low, self._range.high
        needed = math.log(2 / alpha)
        ends = (self._crossing(needed, far, above=far == 0) for far in (0.0, 1.0))
        low, high = (self._range.low + end * self._span for end in ends)
        return low, high

    def further(self, limit: float, alpha: float) -> int | None:
        """Return how many more samples would refute one answer, if they are as those so far.

        Args:
            limit: that the mean is held against.
            alpha: see :meth:`interval`; here one end has all of it.

        Returns:
            None: no number would, as where the mean lies at the limit.
        """
        at, needed = (limit - self._range.low) / self._span, -math.log(alpha)
        if not self.samples or not 0 < at < 1 or self._scaled_mean == at:
            return None
        above = self._scaled_mean > at

        def refuted(samples: int) -> bool:
            return self._capital(at, above=above, times=samples / self.samples) >= needed

        found = planning.first(refuted, self.samples)
        return None if found is None else found - self.samples

    def _capital(self, at: float, *, above: bool, times: float = 1.0) -> float:
        """The logarithm of one bettor's capital, after all samples *times* over.

        *at* is the scaled limit.
        """
        if not self._counts:
            return 0.0
        if at in (0.0, 1.0):
            return self._at_the_end(at, above)
        values = np.array(list(self._counts))
        counts = np.array(list(self._counts.values()), np.float64)
        other = _alternatives(at, above)
        worth = np.outer(values, other / at) + np.outer(1 - values, (1 - other) / (1 - at))
        with np.errstate(divide="ignore"):
            total = times * counts @ np.log(worth)
        return float(special.logsumexp(total) - math.log(len(other)))

    def _at_the_end(self, at: float, above: bool) -> float:
        """A mean at an end of the range is refuted by any other value; none lies beyond it."""
        if above != (at == 0.0):
            return -math.inf
        return math.inf if any(value != at for value in self._counts) else 0.0

    def _crossing(self, needed: float, far: float, *, above: bool) -> float:
        """Where a bettor has what he needs, between an end of the range and the mean."""
        from scipy import optimize  # takes longer than many a run

        def short(at: float) -> float:
            return min(self._capital(at, above=above), 1e9) - needed

        near = min(max(self._scaled_mean, _LEAST), 1 - _LEAST)
        far = min(max(far, _LEAST), 1 - _LEAST)
        if short(far) <= 0 or short(near) >= 0:
            return round(far)
        return float(optimize.brentq(short, far, near, xtol=1e-9))


@lru_cache(maxsize=1024)
def _alternatives(at: float, above: bool) -> Floats:
    """Quantiles of Beta(1/2, 1/2), cut off at the limit: uniform in the arc sine of the root."""
    angle = math.asin(math.sqrt(at))
    low, high = (angle, math.pi / 2) if above else (0.0, angle)
    middles = (np.arange(ALTERNATIVES) + 0.5) / ALTERNATIVES
    return np.asarray(np.sin(low + (high - low) * middles) ** 2, np.float64)
