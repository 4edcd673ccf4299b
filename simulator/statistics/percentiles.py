"""Percentiles, and how many samples they need, by the rules of MLPerf's LoadGen."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simulator.statistics import planning, special

PERCENTILES = (0.5, 0.9, 0.95, 0.97, 0.99, 0.999)
"""The percentiles that LoadGen reports."""

CONFIDENCE = 0.99
"""LoadGen's confidence for early stopping and for the number of queries."""

MS = 1e6
"""Nanoseconds in a millisecond."""

Values = Sequence[int] | NDArray[np.integer[Any]]
"""Latencies as integers, all in the same unit, in any order."""


def name(p: float) -> str:
    """Return the name of a percentile: ``p99.9`` for 0.999."""
    return f"p{100 * p:g}"


@cache
def samples_needed(p: float) -> int:
    """Return how many samples a percentile needs before it may be reported.

    Args:
        p: the percentile as a fraction, 0 < p <= 1.

    Returns:
        The smallest n with which *p* is below a sample at 99 % confidence, with one sample above
        it: 64 for 0.9, 662 for 0.99, 6636 for 0.999; 1 for the maximum, p = 1.

    Source:
        MLPerf LoadGen 6.0.17, results.cc, EarlyStopping: smallest h with
        betainc(h, t + 1, p) < 1 - 0.99, t = 1.
    """
    if p == 1:
        return 1
    fewest = planning.first(lambda below: _enough(below, 1, p), 1)
    assert fewest is not None
    return fewest + 1


def percentile(values: Values, p: float) -> int | None:
    """Return a percentile of a sample, if the sample is large enough.

    Args:
        values: need not be sorted.
        p: the percentile as a fraction, 0 < p <= 1.

    Returns:
        ``sorted(values)[int(n * p)]``, for p = 1 the maximum; None where n is below
        :func:`samples_needed`.

    Source:
        MLPerf LoadGen 6.0.17, results.cc, ProcessLatencies.
    """
    n = len(values)
    if n < samples_needed(p):
        return None
    return _ranked(values, min(n - 1, int(n * p)))


def early_stopping(values: Values, p: float) -> int | None:
    """Return LoadGen's estimate of a percentile, which tends to be too high.

    With 99 % confidence, at least the share *p* of all latencies, future ones included, is below
    it.

    Args:
        values: the latencies of a SingleStream run.
        p: the percentile as a fraction, 0 < p < 1.

    Returns:
        ``sorted(values)[n - t]``: t is the largest with h(t) + t <= n, h(t) the smallest h with
        betainc(h, t + 1, p) < 0.01. None where n < h(1) + 1, which is :func:`samples_needed`.

    Source:
        MLPerf LoadGen 6.0.17, results.cc and early_stopping.cc; MLPerf Inference Rules,
        appendix "Early Stopping Criterion".
    """
    n = len(values)
    if n < samples_needed(p):
        return None
    # h(t) <= n - t if and only if n - t is enough for t; larger t need more, so bisect.
    low, high = 1, n
    while high - low > 1:
        middle = (low + high) // 2
        if _enough(n - middle, middle, p):
            low = middle
        else:
            high = middle
    return _ranked(values, n - low)


def interval(values: Values, p: float, confidence: float = 0.95) -> tuple[int, int] | None:
    """Return a confidence interval of a percentile of all latencies, from order statistics.

    Args:
        values: independent latencies, of any distribution.
        p: the percentile as a fraction, 0 < p < 1.
        confidence: of the interval, at least; it is mostly a little more, as ranks are integers.

    Returns:
        The lower and upper end, two values of the sample; None where the sample is too small.

    Source:
        Conover, Practical Nonparametric Statistics, 3rd ed., section 3.2, as in
        ``scipy.stats.quantile_test``.
    """
    if not len(values):
        return None
    from scipy.stats import quantile_test

    found = quantile_test(np.asarray(values), p=p).confidence_interval(confidence)
    if np.isnan(found.low) or np.isnan(found.high):
        return None
    return found.low.item(), found.high.item()


def mlperf_queries(p: float) -> int:
    """Return how many queries MLPerf asks for to report a percentile of latency.

    Args:
        p: the percentile as a fraction, 0 < p < 1.

    Returns:
        The next multiple of 2**13 from z**2 p (1 - p) / m**2 on, with z of 99 % confidence and the
        margin m = (1 - p) / 20: 24,576 for 0.9, 270,336 for 0.99.

    Source:
        https://github.com/mlcommons/inference_policies/blob/master/inference_rules.adoc,
        section "Scenarios", table of inferences by tail latency percentile.
    """
    margin = (1 - p) / 20
    z = NormalDist().inv_cdf((1 + CONFIDENCE) / 2)
    exact = z**2 * p * (1 - p) / margin**2
    return math.ceil(exact / 2**13) * 2**13


def _enough(h: int, t: int, p: float) -> bool:
    """Whether h samples below and t above a latency show that the share *p* is below it."""
    chance = p**h * (1 + h * (1 - p)) if t == 1 else special.betainc(h, t + 1, p)  # the same
    return bool(chance < 1 - CONFIDENCE)


def _ranked(values: Values, rank: int) -> int:
    """Return ``sorted(values)[rank]``."""
    found: int = np.partition(np.asarray(values), rank)[rank].item()
    return found


def figures(ns: NDArray[np.int64]) -> dict[str, float | None]:
    """Return the latency figures of m inferences.

    Args:
        ns: (m,) nanoseconds.

    Returns:
        The percentiles of :data:`PERCENTILES`, ``mean``, ``min`` and ``max`` in ms; None for a
        percentile with too few inferences, and for all figures where m is 0.
    """
    if not ns.size:
        return dict.fromkeys((*map(name, PERCENTILES), "mean", "min", "max"))
    found: dict[str, float | None] = {name(p): percentile(ns, p) for p in PERCENTILES}
    found |= {"mean": float(ns.mean()), "min": int(ns.min()), "max": int(ns.max())}
    return {key: None if value is None else value / MS for key, value in found.items()}


def cannot_carry(samples: int, p: float) -> str:
    """Return the message for a percentile that needs more samples."""
    needed = samples_needed(p)
    return f"{samples:,} latencies cannot carry {name(p)}; it needs {needed - samples:,} more"


def not_carried(samples: int) -> dict[str, str]:
    """Return the percentiles that need more samples, by their names, with the message."""
    return {name(p): cannot_carry(samples, p) for p in PERCENTILES if samples < samples_needed(p)}
