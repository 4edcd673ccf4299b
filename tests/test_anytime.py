"""Tests that may stop at any moment: held against formulas, enumeration and simulation."""

import math
from functools import cache
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special, stats

from simulator.statistics.anytime import Evidence, Range

SHARE, DELTA = Range(0.0, 1.0), Range(-1.0, 1.0)
NEEDED = math.log(20)


def flipped(flips, samples):
    return Evidence(SHARE, [1.0] * flips + [0.0] * (samples - flips))


def mixture(flips, samples, limit):
    """Capital under a Beta(1/2, 1/2) mixture cut off at the limit, by its closed form."""
    whole = special.betaln(flips + 0.5, samples - flips + 0.5) - special.betaln(0.5, 0.5)
    null = flips * math.log(limit) + (samples - flips) * math.log1p(-limit)
    after, before = stats.beta(flips + 0.5, samples - flips + 0.5), stats.beta(0.5, 0.5)
    return (
        whole + after.logsf(limit) - before.logsf(limit) - null,
        whole + after.logcdf(limit) - before.logcdf(limit) - null,
    )


@pytest.mark.parametrize(
    ("flips", "samples"), [(0, 1), (0, 380), (3, 100), (12, 300), (40, 2000), (30, 5000)]
)
@pytest.mark.parametrize("limit", [0.01, 0.02, 0.3])
def test_flips_are_tested_by_the_mixture_of_beta(flips, samples, limit):
    found, wanted = flipped(flips, samples).against(limit), mixture(flips, samples, limit)
    for one, other in zip(found, wanted, strict=True):
        assert one == pytest.approx(other, abs=0.05) if other > -1 else one < -0.5


@pytest.mark.parametrize("limit", [0.1, 0.35])
@pytest.mark.parametrize("side", [0, 1])
def test_the_bet_is_fair_where_the_mean_is_the_limit(limit, side):
    """Over all 2^8 sequences the capital is 1 on average: nobody can bet better than that."""
    mean = 0.0
    for sequence in product([0.0, 1.0], repeat=8):
        ones = sum(sequence)
        weight = limit**ones * (1 - limit) ** (8 - ones)
        mean += weight * math.exp(Evidence(SHARE, sequence).against(limit)[side])
    assert mean == pytest.approx(1, abs=1e-9)


def test_the_bet_on_a_difference_is_fair_too():
    """Answers turn right with 1/8 and wrong with 3/8: a mean of -1/4."""
    chances = {1.0: 1 / 8, -1.0: 3 / 8, 0.0: 1 / 2}
    for side in (0, 1):
        mean = 0.0
        for sequence in product(chances, repeat=5):
            weight = math.prod(chances[value] for value in sequence)
            mean += weight * math.exp(Evidence(DELTA, sequence).against(-0.25)[side])
        assert mean == pytest.approx(1, abs=1e-9)


@given(st.lists(st.sampled_from([-1.0, 0.0, 1.0]), min_size=1, max_size=60), st.randoms())
def test_the_order_does_not_count_and_the_bound_holds_the_mean(values, random):
    found = Evidence(DELTA, values)
    mixed = list(values)
    random.shuffle(mixed)
    low, high = found.interval(0.05)
    assert Evidence(DELTA, mixed).against(0.1) == pytest.approx(found.against(0.1))
    assert -1 <= low <= found.mean + 1e-6 and found.mean - 1e-6 <= high <= 1


@given(st.integers(0, 40), st.integers(1, 400))
def test_the_bound_is_where_the_test_refutes(flips, more):
    evidence = flipped(flips, flips + more)
    low, high = evidence.interval(0.1)
    if low > 1e-6:
        assert evidence.against(low * 0.99)[0] > NEEDED > evidence.against(low * 1.01)[0]
    if high < 1 - 1e-6:
        assert evidence.against(high + 0.002)[1] > NEEDED


def test_far_from_the_limit_few_samples_are_enough():
    """ROBUSTNESS.md E: 380 samples without a flip decide "flip_rate > 1%"."""
    assert flipped(0, 376).against(0.01)[1] < NEEDED <= flipped(0, 380).against(0.01)[1]


@pytest.mark.parametrize("rate", [0.02, 0.03, 0.015])
def test_at_most_one_of_twenty_decisions_is_wrong(rate):
    """2,000 runs of 1,500 samples, looked at after every sample; the limit is 2 %."""
    limit, samples, runs = 0.02, 1500, 2000
    fails, passes = bounds(limit, samples)
    drawn = np.random.default_rng(1).random((runs, samples)) < rate
    flips = np.cumsum(drawn, axis=1)
    above, below = flips >= fails, flips <= passes
    first = [np.where(one.any(1), one.argmax(1), samples) for one in (above, below)]
    failed, passed = first[0] < first[1], first[1] < first[0]
    wrong = (failed | passed) if rate == limit else passed if rate > limit else failed
    limit_of_chance = 0.05 + 2.33 * math.sqrt(0.05 * 0.95 / runs)
    assert wrong.mean() <= (2 if rate == limit else 1) * limit_of_chance
    assert (failed | passed).any()


@cache
def bounds(limit, most):
    """The fewest flips that fail and the most that pass, for 1 to *most* samples."""
    fails, passes, few, many = [], [], 0, -1
    for samples in range(1, most + 1):
        while few <= samples and flipped(few, samples).against(limit)[0] < NEEDED:
            few += 1
        while many < samples and flipped(many + 1, samples).against(limit)[1] >= NEEDED:
            many += 1
        fails.append(few)
        passes.append(many)
    return np.array(fails), np.array(passes)


@pytest.mark.parametrize(
    ("limit", "wanted"),
    [(0.0, (math.inf, -math.inf)), (1.0, (-math.inf, math.inf)), (-0.1, (math.inf, -math.inf))],
)
def test_limits_at_the_ends(limit, wanted):
    assert flipped(1, 2).against(limit) == wanted


def test_nothing_was_seen():
    empty = Evidence(DELTA)
    assert math.isnan(empty.mean) and empty.interval(0.05) == (-1, 1)
    assert empty.against(0.0) == (0, 0)
    with pytest.raises(ValueError, match="not between"):
        empty.add(2.0)


@pytest.mark.parametrize(("ones", "zeros", "limit"), [(0, 40, 0.01), (3, 60, 0.02), (2, 30, 0.2)])
def test_what_would_decide_is_what_decides_samples_of_that_rate(ones, zeros, limit):
    """The same samples as often as are named refute one answer; one time less does not."""

    def seen(times):
        return Evidence(Range(0.0, 1.0), ([1.0] * ones + [0.0] * zeros) * times)

    samples = ones + zeros
    more = seen(1).further(limit, 0.05)

    for times in range(1, 60):
        decided = max(seen(times).against(limit)) >= -math.log(0.05)
        assert decided == (samples * times >= samples + more)


def test_a_mean_at_the_limit_is_never_decided():
    assert Evidence(Range(0.0, 1.0), [1.0, 0.0, 0.0, 0.0]).further(0.25, 0.05) is None
