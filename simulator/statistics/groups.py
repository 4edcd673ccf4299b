"""The difference of two groups of repetitions, of which each is measured on the same samples."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from simulator.statistics import special
from simulator.statistics.bootstrap import Effect, Floats

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
