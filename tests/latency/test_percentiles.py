"""Percentiles against definitions, tables and binomial probabilities; LoadGen: test_loadgen.py."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from simulator.statistics.percentiles import (
    PERCENTILES,
    early_stopping,
    interval,
    mlperf_queries,
    percentile,
    samples_needed,
)

SOME = st.sampled_from(PERCENTILES)


def shuffled(n):
    """0 to n - 1, so that a value is its own rank."""
    return np.random.default_rng(n).permutation(n)


@pytest.mark.parametrize(("p", "needed"), [(0.9, 64), (0.99, 662), (0.999, 6636), (1, 1)])
def test_samples_needed(p, needed):
    """The first two stand in LoadGen's own summaries: "Need to process at least 64 queries"."""
    assert samples_needed(p) == needed


@pytest.mark.parametrize(
    ("p", "rank", "late"),
    [(0.5, 350, None), (0.9, 630, 50), (0.97, 679, None), (0.99, 693, 0), (1, 699, None)],
)
def test_percentiles_and_estimates_are_loadgens(p, rank, late):
    """LoadGen 6.0.17 of 700 queries: "Would discard 50 highest latency queries" of the 90th."""
    assert percentile(shuffled(700), p) == rank
    if late is not None:
        assert early_stopping(shuffled(700), p) == 699 - late


@pytest.mark.parametrize("p", PERCENTILES)
def test_one_sample_too_few_has_neither_percentile_nor_estimate(p):
    enough = samples_needed(p)

    assert (percentile(range(enough), p), early_stopping(range(enough), p)) == (
        int(enough * p),
        enough - 1,
    )
    assert percentile(range(enough - 1), p) is None
    assert early_stopping(range(enough - 1), p) is None


@given(n=st.integers(1, 5000), p=SOME)
def test_early_stopping_discards_what_the_binomial_allows(n, p):
    late = np.arange(1, n + 1)
    allowed = late[binom.cdf(late, n, 1 - p) < 0.01]

    assert early_stopping(shuffled(n), p) == (n - allowed.max() if allowed.size else None)


@given(st.lists(st.integers(0, 50), min_size=64, max_size=200))
def test_lists_with_ties_are_left_alone(values):
    before = list(values)

    found = percentile(values, 0.9), early_stopping(values, 0.9)

    assert values == before
    assert found[0] == sorted(values)[int(len(values) * 0.9)]
    assert {type(value) for value in found} == {int}


@pytest.mark.parametrize(
    ("n", "ranks"),
    [(0, None), (5, None), (6, (1, 6)), (10, (2, 9)), (20, (6, 15)), (100, (40, 61))],
)
def test_intervals_of_the_median(n, ranks):
    """Of the usual table; all of 5 samples hold the median with 1 - 2 / 2**5 = 93.75 % only."""
    assert interval(shuffled(n) + 1, 0.5) == ranks


@given(n=st.integers(1, 3000), p=SOME, confidence=st.sampled_from([0.9, 0.95, 0.99]))
def test_an_interval_holds_the_percentile_as_often_as_said(n, p, confidence):
    found = interval(shuffled(n), p, confidence)

    half = (1 - confidence) / 2
    if found is None:  # then the least or the largest is no end
        assert binom.pmf(0, n, p) > half or binom.pmf(n, n, p) > half
    else:  # as many samples as the binomial says are below the percentile
        low, high = found
        assert binom.cdf(low, n, p) <= half < binom.cdf(low + 1, n, p)
        assert binom.sf(high, n, p) <= half < binom.sf(high - 1, n, p)


@pytest.mark.parametrize(
    ("p", "queries"), [(0.9, 24_576), (0.95, 57_344), (0.97, 90_112), (0.99, 270_336)]
)
def test_the_number_of_queries_is_that_of_the_rules(p, queries):
    """MLPerf Inference Rules, section "Scenarios".

    https://github.com/mlcommons/inference_policies/blob/master/inference_rules.adoc
    """
    assert mlperf_queries(p) == queries
