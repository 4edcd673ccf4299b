"""Rates of a population that is sampled in parts."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from simulator.statistics.strata import Stratum, neyman, stratified

BITS = 32


def sampled(shares, rates, trials, rng):
    events = rng.binomial(trials, rates).tolist()
    return [Stratum(*one) for one in zip(shares, events, trials, strict=True)]


@pytest.mark.parametrize(("events", "trials"), [(0, 300), (7, 300), (300, 300)])
def test_one_stratum_has_the_exact_interval(events, trials):
    found = stratified([Stratum(1.0, events, trials)])
    exact = stats.binomtest(events, trials).proportion_ci(method="exact")
    assert (found.low, found.high) == pytest.approx((exact.low, exact.high))
    assert found.value == events / trials


def test_the_value_and_its_variance_by_hand():
    """0.75 * 1/10 + 0.25 * 4/8; 0.75² * 0.09 / 9 + 0.25² * 0.25 / 7."""
    found = stratified([Stratum(0.75, 1, 10), Stratum(0.25, 4, 8)])
    assert found.value == pytest.approx(0.2)
    assert found.variance == pytest.approx(0.5625 * 0.01 + 0.0625 * 0.25 / 7)


def test_what_was_seen_nowhere_is_bounded_by_the_thinnest_sample():
    """
    Half of the population has 30 trials, the other 300: all faults may sit in the first half. A
    rate of r there is missed with (1 - r)^30 = 0.025 at r = 0.116, which is 5.8 % of the whole;
    taken as one with 60 trials: 1 - 0.025^(1/60) = 6.0 %.
    """
    found = stratified([Stratum(0.5, 0, 30), Stratum(0.5, 0, 300)])
    assert (found.value, found.low) == (0.0, 0.0)
    assert found.high == pytest.approx(1 - 0.025 ** (1 / 60))


SCENES = {
    "one hot bit": ([1 / BITS] * BITS, [0.0] * 31 + [0.5], [100] * BITS),
    "every bit a little": ([1 / BITS] * BITS, [0.01] * BITS, [30] * BITS),
    "rare everywhere": ([1 / BITS] * BITS, [0.001] * BITS, [30] * BITS),
    "a rare bit that was sampled thinly": (
        [1 / BITS] * BITS, [0.05] + [0.0] * 30 + [0.9], [35] * 31 + [2000],
    ),
    "layers of many sizes": ([0.5, 0.3, 0.15, 0.05], [0.01, 0.001, 0.0, 0.3], [250] * 4),
}  # fmt: skip


@pytest.mark.parametrize("name", SCENES)
def test_the_interval_covers_the_truth(name):
    """Of 1000 campaigns at least 945 (95 %, less 0.7 standard errors), each end missed rarely."""
    shares, rates, trials = SCENES[name]
    truth = float(np.dot(shares, rates))
    rng = np.random.default_rng(20221)
    found = [stratified(sampled(shares, rates, trials, rng)) for _ in range(1000)]
    below = sum(truth < one.low for one in found)
    above = sum(truth > one.high for one in found)
    assert below + above <= 55
    assert np.mean([one.value for one in found]) == pytest.approx(truth, rel=0.1)


def test_the_estimate_does_not_depend_on_the_allocation():
    """The mean of 500 campaigns with most trials on a hot bit; unweighted it would be 0.25."""
    shares, rates, trials = [0.9, 0.1], [0.01, 0.5], [100, 100]
    rng = np.random.default_rng(3)
    found = [stratified(sampled(shares, rates, trials, rng)).value for _ in range(500)]
    assert np.mean(found) == pytest.approx(0.059, abs=0.002)


def test_neyman_beats_equal_allocation_beats_none():
    """
    One hot bit of 32 and 32,000 faults, as in ROBUSTNESS.md's table: standard errors of 7e-4
    without strata (p = 1/64), 5e-4 with as many of each bit, 1e-4 where only the hot one varies.
    """
    shares, pilot = [1 / BITS] * BITS, [0] * 31 + [500]
    weights = neyman([Stratum(1 / BITS, k, 1000) for k in pilot])
    errors = []
    for trials in (
        [1000] * BITS,
        np.rint(np.array(weights) / sum(weights) * 32_000).astype(int).tolist(),
    ):
        events = [n // 2 if k else 0 for k, n in zip(pilot, trials, strict=True)]
        strata = [Stratum(*one) for one in zip(shares, events, trials, strict=True)]
        errors.append(stratified(strata).variance ** 0.5)
    none = (1 / 64 * 63 / 64 / 32_000) ** 0.5
    assert errors[0] < 0.8 * none
    assert errors[1] < 0.5 * errors[0]


@pytest.mark.parametrize(
    "impossible",
    [
        lambda: stratified([Stratum(0.5, 0, 10)]),
        lambda: stratified([Stratum(1.0, 11, 10)]),
        lambda: stratified([Stratum(1.0, 0, 0)]),
        lambda: stratified([]),
    ],
)
def test_the_impossible_is_refused(impossible):
    with pytest.raises(ValueError, match=r"must|stratum|few"):
        impossible()
