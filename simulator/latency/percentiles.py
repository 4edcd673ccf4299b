"""Percentiles, with the number of samples that they need."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from scipy.special import betainc

CONFIDENCE = 0.99


@cache
def samples_needed(p: float) -> int:
    """Return how many samples a percentile needs before it may be printed.

    Args:
        p: the percentile as a fraction, 0 < p < 1.

    Returns:
        The smallest n that carries *p* at 99 % confidence with one sample above it: 64 for
        0.9, 662 for 0.99, 6636 for 0.999.

    Source:
        MLPerf LoadGen early stopping: smallest h with betainc(h, t + 1, p) < 1 - 0.99, t = 1.
    """
    low, high = 1, 2
    while betainc(high, 2, p) >= 1 - CONFIDENCE:
        low, high = high, 2 * high
    while low < high:
        middle = (low + high) // 2
        if betainc(middle, 2, p) < 1 - CONFIDENCE:
            high = middle
        else:
            low = middle + 1
    return low + 1


def percentile(values: Sequence[int], p: float) -> int | None:
    """Return ``sorted(values)[int(n * p)]`` as LoadGen does, or None where n is too small."""
    if len(values) < samples_needed(p):
        return None
    return sorted(values)[min(len(values) - 1, int(len(values) * p))]
