"""Intervals of figures over images: exact where images count 0 or 1, else of the bootstrap.

A resampled figure is a vector (1 + R + n,): its value on all images, on each of R resamples, and on
each of the n images alone, NaN there for a figure that is no plain mean over images. Differences
and sums of such vectors are resampled figures, too, and all figures of a comparison use the same
resampled images. So one place, :func:`interval`, sees what a figure is made of: a mean of zeros and
ones gets Clopper and Pearson's interval, a paired difference of two such means Bonett and Price's,
and any other the percentiles of its resamples.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simulator.spent import Work, spending
from simulator.statistics import special
from simulator.statistics.paired import bonett_price, clopper_pearson, mcnemar_exact

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]
Figure = Callable[[Counts], Floats]
"""A function from (r, n) counts (how often each image was drawn) to the figure's (r,) values."""

Bounds = tuple[float, float]
"""The least and the greatest value that a figure can have."""
RATE: Bounds = (0.0, 1.0)
DIFFERENCE: Bounds = (-1.0, 1.0)
INTERACTION: Bounds = (-2.0, 2.0)
"""Of a difference of two differences."""
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
        """Return the figure on all images, each resample and each image alone, (1 + R + n,)."""
        return self.of_each([figure])[0]

    def of_each(self, figures: Sequence[Figure]) -> list[Floats]:
        """Return each of several figures as :meth:`of` does; drawn once for all."""
        whole = np.ones((1, self.images), np.int64)
        with spending(Work.STATISTICS):
            parts = [[figure(counts) for figure in figures] for counts in chain([whole], self)]
            drawn = zip(*parts, strict=True)
            return [
                np.concatenate([*one, self._alone(figure)])
                for one, figure in zip(drawn, figures, strict=True)
            ]

    def _alone(self, figure: Figure) -> Floats:
        return figure.each if isinstance(figure, Ratio) else np.full(self.images, np.nan)


@dataclass(frozen=True, slots=True)
class Effect:
    """A figure with its interval and its test.

    Attributes:
        value: on all images.
        ci95: see :func:`interval`; NaN where no resample defines the figure.
        p: two-sided p-value against zero: McNemar's exact one of a paired difference, else of the
            bootstrap, at least 2 / (R + 1) and 2 / 2^n of n images.
        exact: whether both are exact, Bonett and Price's and McNemar's.
    """

    value: float
    ci95: tuple[float, float]
    p: float
    exact: bool = False

    @property
    def method(self) -> str:
        """How interval and p were worked out."""
        return "Bonett-Price" if self.exact else "bootstrap over samples"

    def told(self) -> dict[str, Any]:
        """Return value, interval and p, as summaries have them."""
        return {"value": self.value, "ci95": list(self.ci95), "p": self.p}


def effect(
    figure: Floats, number: int, bounds: Bounds | None = DIFFERENCE, judged: int | None = None
) -> Effect:
    """Return a resampled figure's value, interval and p-value.

    A p-value of the bootstrap is at least that of a sign-flip test in which all n images agree,
    2 / 2^n: the bootstrap draws from what was seen, and of few images it makes too much.

    Args:
        figure: (1 + R + n,); resamples in which it is not defined (NaN) are left out.
        number: R.
        bounds: see :func:`interval`.
        judged: how many images carry the figure; n by default.

    Source:
        Efron and Tibshirani 1993, percentile intervals; Davison and Hinkley 1997, section 4.4,
        for the p-value with one added to both counts.
    """
    ends = interval(figure, number, bounds, judged)
    if (each := _counted(figure, number, bounds)) is not None:
        p = mcnemar_exact(int((each < 0).sum()), int((each > 0).sum()))
        return Effect(float(figure[0]), ends, p, exact=True)
    drawn = _defined(figure, number)
    tail = min((drawn <= 0).sum(), (drawn >= 0).sum())
    p = 2 * (int(tail) + 1) / (drawn.size + 1)
    least = 2.0 ** (1 - _judged(figure, number, judged))
    return Effect(float(figure[0]), ends, min(1.0, max(p, least)))


def interval(
    figure: Floats,
    number: int,
    bounds: Bounds | None,
    judged: int | None = None,
    confidence: float = 0.95,
) -> tuple[float, float]:
    """Return a resampled figure's interval.

    Of a mean of zeros and ones it is exact (Clopper and Pearson's), of a paired difference of two
    such means Bonett and Price's, else that of the percentiles. Where all resamples agree, images
    that were not seen may not: after n that agree, a share of at most 3 / n differs (the rule of
    three, for 95 %), each by at most what the bounds leave.

    Args:
        figure: (1 + R + n,), or (1,) of a constant.
        number: R.
        bounds: :data:`RATE` of a mean of fractions, :data:`DIFFERENCE` of two; None of ratios and
            other figures that no formula and no rule of three is for.
        judged: how many images carry the figure; n by default.
        confidence: two-sided.

    Returns:
        Both ends; NaN where no resample defines the figure.

    Source:
        J. A. Hanley and A. Lippman-Hand, JAMA 249 (1983) 1743-1745, for the rule of three.
    """
    each = _counted(figure, number, bounds)
    if each is not None and bounds == RATE:
        return clopper_pearson(int(each.sum()), each.size, confidence)
    if each is not None:
        lost, won = int((each < 0).sum()), int((each > 0).sum())
        return bonett_price(lost, won, each.size, confidence)
    drawn = _defined(figure, number)
    if not drawn.size:
        return float("nan"), float("nan")
    tail = (1 - confidence) / 2
    low, high = (float(end) for end in np.quantile(drawn, [tail, 1 - tail]))
    if bounds is not None and high - low < ROUNDING:
        unseen = min(1.0, -math.log(1 - confidence) / max(_judged(figure, number, judged), 1))
        return low - unseen * (low - bounds[0]), high + unseen * (bounds[1] - high)
    return low, high


def _counted(figure: Floats, number: int, bounds: Bounds | None) -> Floats | None:
    """What each image counts, where that is 0 or 1 (of a difference -1, 0 or 1), else None."""
    whole = {RATE: (0.0, 1.0), DIFFERENCE: (-1.0, 0.0, 1.0)}.get(bounds) if bounds else None
    alone = figure[1 + number :]
    each = alone[~np.isnan(alone)]
    each = np.where(np.abs(each - np.rint(each)) < ROUNDING, np.rint(each), each)
    if whole is None or not each.size or not np.isin(each, whole).all():
        return None
    return each if abs(each.mean() - figure[0]) < ROUNDING else None


def _judged(figure: Floats, number: int, judged: int | None) -> int:
    return max(0, len(figure) - 1 - number) if judged is None else judged


def _defined(figure: Floats, number: int) -> Floats:
    """The resamples that define a figure, rounding errors as 0."""
    drawn = figure[1 : 1 + number]
    drawn = np.where(np.abs(drawn) < ROUNDING, 0.0, drawn)
    return drawn[~np.isnan(drawn)]


def resampled_mean(values: Floats, seed: int) -> Floats:
    """Return the mean of values as a resampled figure, (1 + :data:`RESAMPLES` + n,).

    How often each value is drawn is multinomial, and so is how often all equal ones are together:
    what can be drawn is what :class:`Resamples` draws, in less time where few values differ.

    Args:
        values: (n,), one per image.
        seed: of the draws.
    """
    rng, n = np.random.default_rng(seed), len(values)
    different, counts = np.unique(values, return_counts=True)
    parts = [np.array([values.mean()])]
    batch = max(1, _BATCH // len(different))
    with spending(Work.STATISTICS):
        for start in range(0, RESAMPLES, batch):
            size = min(batch, RESAMPLES - start)
            parts.append(rng.multinomial(n, counts / n, size=size) @ different / n)
    return np.concatenate([*parts, values])


class Ratio:
    """The figure sum(numerators) / sum(denominators) over images.

    Args:
        numerators: (n,), one per image.
        denominators: (n,), likewise; where their sum is 0 the figure is NaN.

    Attributes:
        each: (n,), what each image counts; NaN where its denominator is 0, and everywhere unless
            all denominators are 0 or 1: the figure is no plain mean over images then.
    """

    def __init__(self, numerators: Floats, denominators: Floats) -> None:
        self._both = np.stack([numerators, denominators], axis=1)
        plain = np.isin(denominators, (0, 1)).all()
        self.each: Floats = np.where(plain & (denominators == 1), numerators, np.nan)

    def __call__(self, counts: Counts) -> Floats:
        """Return (r,) values of (r, n) counts."""
        above, below = (counts @ self._both).T
        share: Floats = np.full(len(counts), np.nan)
        np.divide(above, below, out=share, where=below != 0)
        return share


Strata = Sequence[Sequence[Floats]]
"""Repetitions by what they repeat: (1 + R + n,) of each, a resampled figure."""


def mixed(ones: Strata, others: Strata, number: int) -> Effect | None:
    """Return the mean of one group less that of another, as of groups of other repetitions.

    Samples and repetitions (the seeds of a training) both are drawn at random. The variance is the
    sum of that of the difference over resamples, which is paired, and of those of both means over
    repetitions of the same; degrees of freedom are Welch and Satterthwaite's, with none lost to
    resamples. What one repetition alone owes to the samples is in both terms: the interval is
    rather too wide.

    Args:
        ones: of one group.
        others: of the other, on the same resamples.
        number: R.

    Returns:
        The difference, its 95 % interval and the two-sided p-value of Student's t; None where
        something has but one repetition, which does not tell how far others would lie.

    Source:
        F. E. Satterthwaite, Biometrics Bulletin 2 (1946) 110-114.
    """
    if min(len(same) for same in (*ones, *others)) < 2:
        return None
    whole = [[one for same in group for one in same] for group in (ones, others)]
    drawn = np.mean(whole[0], axis=0) - np.mean(whole[1], axis=0)
    value = float(drawn[0])
    parts, sizes = [], []
    for group, every in zip((ones, others), whole, strict=True):
        for same in group:
            spread = float(np.var([one[0] for one in same], ddof=1))
            parts.append(spread * len(same) / len(every) ** 2)
            sizes.append(len(same))
    total = float(drawn[1 : 1 + number].var()) + sum(parts)
    if total == 0:
        return Effect(value, (value, value), 1.0 if value == 0 else 0.0)
    lost = sum(part**2 / (size - 1) for part, size in zip(parts, sizes, strict=True))
    freedom = total**2 / lost if lost else math.inf
    freedom = min(freedom, 1e9)
    half = float(special.stdtrit(freedom, 0.975)) * math.sqrt(total)
    p = 2 * float(special.stdtr(freedom, -abs(value) / math.sqrt(total)))
    return Effect(value, (value - half, value + half), min(1.0, p))
