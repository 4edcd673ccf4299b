"""Rates of fault campaigns."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from simulator.analysis.faults import clustered, exceeding, further, lasting, mean, paired, rate


@pytest.mark.parametrize(("events", "trials"), [(0, 300), (18, 1000), (900, 50_000), (5, 5)])
def test_a_rate_has_the_exact_interval(events, trials):
    found = rate(events, trials)
    exact = stats.binomtest(events, trials).proportion_ci(method="exact")
    assert found.ci95 == pytest.approx((exact.low, exact.high), rel=1e-9)
    assert found.value == events / trials


@pytest.mark.parametrize(("events", "trials", "width"), [(10, 1000, 0.002), (0, 50, 0.01)])
def test_so_many_more_faults_are_needed_and_no_fewer(events, trials, width):
    """The interval is looked up at the number of faults that was asked for, and one before."""
    total = trials + further(events, trials, width)

    def wide(n):
        k = events / trials * n
        low = stats.beta.ppf(0.025, k, n - k + 1) if events else 0.0
        return stats.beta.ppf(0.975, k + 1, n - k) - low

    assert wide(total) <= width < wide(total - 1)


def test_a_tenth_of_a_point_at_one_percent_needs_38_thousand_faults():
    """38,031 by the normal approximation, 1.96² * 0.01 * 0.99 / 0.001²; a little more exactly."""
    assert 38_031 < 100 + further(1, 100, 0.002) < 1.03 * 38_031
    assert further(1, 100, 0.2) == 0


def test_no_width_is_no_request():
    with pytest.raises(ValueError, match="width must be above 0"):
        further(1, 100, 0.0)


def test_faults_on_one_image_are_not_independent():
    """
    20 images with 50 faults each, all or none of which are silent: the interval is that of 20
    images, several times wider than that of 1000 faults.
    """
    images = np.repeat(np.arange(20), 50).tolist()
    silent = [image < 5 for image in images]
    found, alone = clustered(silent, images), rate(sum(silent), 1000)
    assert found.value == alone.value == 0.25
    assert found.ci95[1] - found.ci95[0] > 5 * (alone.ci95[1] - alone.ci95[0])
    expected = stats.binom.ppf([0.025, 0.975], 20, 0.25) / 20
    assert found.ci95 == pytest.approx(tuple(expected), abs=0.051)


def test_one_fault_that_lasts_does_not_narrow_what_none_would_give():
    """30 faults, 8 inferences each; the ends for none and for one whole fault are binomtest's."""
    faults = np.repeat(np.arange(30), 8).tolist()
    counts = (0, 1, 2, 8)
    found = [lasting([at < count for at in range(240)], faults) for count in counts]

    highs = [one.ci95[1] for one in found]
    assert highs == sorted(highs)
    for one, whole in ((found[0], 0), (found[-1], 1)):
        exact = stats.binomtest(whole, 30).proportion_ci(method="exact")
        assert one.ci95 == pytest.approx((exact.low, exact.high), rel=1e-9)
    assert [one.events for one in found] == list(counts)
    assert found[1].value == 1 / 240


@pytest.mark.parametrize(("faults", "share"), [(30, 0.1), (100, 0.05)])
def test_the_interval_of_lasting_faults_covers(faults, share):
    """A fault in so many harms, each inference then with a chance of its own, of mean 1/6."""
    rng = np.random.default_rng(7)
    owners, covered, drawn = np.repeat(np.arange(faults), 20).tolist(), 0, 200
    for _ in range(drawn):
        chance = np.where(rng.random(faults) < share, rng.beta(0.3, 1.5, faults), 0)
        silent = (rng.random((faults, 20)) < chance[:, None]).ravel().tolist()
        low, high = lasting(silent, owners, 400).ci95
        covered += low <= share / 6 <= high
    assert covered >= stats.binom.ppf(0.001, drawn, 0.95)


def test_two_stacks_are_compared_on_the_same_faults():
    """Nine faults are silent on the first only, one on the second only, two on both, of 100."""
    first = [True] * 11 + [False] * 89
    second = [True] * 2 + [False] * 9 + [True] + [False] * 88
    found = paired(first, second)
    assert (found.both, found.only_first, found.only_second, found.neither) == (2, 9, 1, 88)
    assert found.delta == -0.08
    exact = stats.binomtest(1, 10).pvalue
    assert found.p == pytest.approx(exact - stats.binom.pmf(1, 10, 0.5))
    assert found.ci95[0] < -0.08 < found.ci95[1] < 0


def test_faults_that_do_not_pair_are_refused():
    with pytest.raises(ValueError, match="2 faults on the first stack and 1 on the second"):
        paired([True, False], [True])


def test_a_mean_leaves_out_what_is_not_defined_and_says_how_many():
    found = mean([1.0, None, 3.0, 3.0, 1.0])
    assert (found.value, found.events, found.undefined) == (2.0, 4, 1)
    assert 1.0 <= found.ci95[0] < 2.0 < found.ci95[1] <= 3.0
    assert mean([None, None]).value is None
    assert mean([4.0]).ci95 is None


def test_the_share_of_faults_above_each_level():
    """A level of 0 is any persistent area at all; 0.15 is not above 0.15."""
    found = exceeding([0.0, 0.001, 0.15, 0.2], [0.0, 0.05, 0.15])
    assert [one.events for one in found] == [3, 2, 1]
    assert {one.trials for one in found} == {4}
