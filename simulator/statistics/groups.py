"""The difference of two groups of repetitions, of which each is measured on the same samples."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from simulator.statistics import special
from simulator.statistics.bootstrap import Effect, Floats


def mixed(ones: Sequence[Floats], others: Sequence[Floats], number: int) -> Effect | None:
    """Return the mean of one group less that of another, as of groups of other repetitions.

    Samples and repetitions (the seeds of a training) both are drawn at random. The variance is the
    sum of that of the difference over resamples, which is paired, and of those of both means over
    repetitions; degrees of freedom are Welch and Satterthwaite's, with none lost to resamples. What
    one repetition alone owes to the samples is in both terms: the interval is rather too wide.

    Args:
        ones: (1 + R + n,) of each repetition, a resampled figure.
        others: likewise, on the same resamples.
        number: R.

    Returns:
        The difference, its 95 % interval and the two-sided p-value of Student's t; None where a
        group has but one repetition, which does not tell how far others would lie.

    Source:
        F. E. Satterthwaite, Biometrics Bulletin 2 (1946) 110-114.
    """
    if min(len(ones), len(others)) < 2:
        return None
    drawn = np.mean(ones, axis=0) - np.mean(others, axis=0)
    value = float(drawn[0])
    groups = [np.array([one[0] for one in group]) for group in (ones, others)]
    parts = [float(group.var(ddof=1)) / len(group) for group in groups]
    total = float(drawn[1 : 1 + number].var()) + sum(parts)
    if total == 0:
        return Effect(value, (value, value), 1.0 if value == 0 else 0.0)
    lost = sum(part**2 / (len(group) - 1) for part, group in zip(parts, groups, strict=True))
    freedom = total**2 / lost if lost else math.inf
    freedom = min(freedom, 1e9)
    half = float(special.stdtrit(freedom, 0.975)) * math.sqrt(total)
    p = 2 * float(special.stdtr(freedom, -abs(value) / math.sqrt(total)))
    return Effect(value, (value - half, value + half), min(1.0, p))
