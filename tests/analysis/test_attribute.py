"""Blame, held against games that were worked out on paper."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simulator.analysis import attribute
from simulator.statistics.bootstrap import Ratio, Resamples, effect
from simulator.tasks.score import compare, mean_score

AXES = ["decoder", "color", "resize", "precision"]


def game(function, n=3):
    return lambda s: np.full(n, float(function(s)))


def test_glove_game():
    """
    Players L1, L2 hold left gloves, R a right one; a pair is worth 1. By hand over the six
    orders R gets 4/6, each L 1/6 (Osborne & Rubinstein, A Course in Game Theory, ch. 14).
    """
    value = game(lambda s: "R" in s and bool({"L1", "L2"} & s))

    shares = attribute.shapley(["L1", "L2", "R"], value).values

    assert shares[:, 0] == pytest.approx([1 / 6, 1 / 6, 4 / 6])


def test_interaction_is_split_evenly():
    """INT8 alone costs 0, resize alone 0, together -1: each is charged half."""
    value = game(lambda s: -1 if {"resize", "precision"} <= s else 0)

    shares = attribute.shapley(AXES, value).values[:, 0]
    pairs = attribute.interactions(AXES, value)

    assert shares == pytest.approx([0, 0, -0.5, -0.5])
    assert pairs["resize", "precision"][0] == -1
    assert pairs["decoder", "color"][0] == 0


def test_swap_in_out_and_waterfall_by_hand():
    """v = -2 [resize] - 1 [precision] - 4 [both]."""
    value = game(
        lambda s: -2 * ("resize" in s) - 1 * ("precision" in s) - 4 * ({"resize", "precision"} <= s)
    )
    axes = ["resize", "precision"]

    assert attribute.swap_in(axes, value)[:, 0].tolist() == [-2, -1]
    assert attribute.swap_out(axes, value)[:, 0].tolist() == [6, 5]
    assert attribute.waterfall(axes, value)[:, 0].tolist() == [-2, -5]


weights = st.floats(-5, 5, allow_nan=False)


@settings(deadline=None, max_examples=60)
@given(st.integers(1, 8).flatmap(lambda k: st.lists(weights, min_size=k, max_size=k)), st.data())
def test_additive_games_charge_each_axis_its_own_cost(costs, data):
    """In an additive game an axis' Shapley value is its cost, and a null axis' is zero."""
    null = data.draw(st.integers(0, len(costs) - 1))
    costs[null] = 0.0
    axes = [f"axis{i}" for i in range(len(costs))]
    value = game(lambda s: sum(costs[axes.index(a)] for a in s))

    shares = attribute.shapley(axes, value).values[:, 0]

    assert shares == pytest.approx(costs, abs=1e-9)
    assert shares[null] == pytest.approx(0, abs=1e-12)


@settings(deadline=None, max_examples=40)
@given(st.integers(1, 10), st.integers(0, 2**32 - 1))
def test_shares_sum_to_the_total(k, seed):
    """Efficiency: to 1e-9 for random games, exact (k <= 8) and sampled (k > 8) alike."""
    rng = np.random.default_rng(seed)
    axes = [f"axis{i}" for i in range(k)]
    table = {s: rng.normal(size=5) for s in attribute.subsets(axes)}

    found = attribute.shapley(axes, table.__getitem__, permutations=4)

    total = table[frozenset(axes)] - table[frozenset()]
    assert found.values.sum(axis=0) == pytest.approx(total, abs=1e-9)
    assert (found.error > 0) == (k > attribute.EXACT_AXES)


def test_sampling_is_unbiased_within_its_stated_error():
    """Nine axes, one pairwise interaction of 1: two axes get 1/2 each, the others nothing."""
    axes = [f"axis{i}" for i in range(9)]
    value = game(lambda s: float({"axis0", "axis8"} <= s))

    found = attribute.shapley(axes, value, permutations=200)

    assert found.values[:, 0] == pytest.approx([0.5, *[0] * 7, 0.5], abs=4 * found.error + 1e-9)


def test_bootstrap_interval_of_a_mean():
    """900 zeros and 100 ones: the standard error is sqrt(.1 * .9 / 1000) = 0.0095."""
    draws = Resamples(1000)
    ones = np.array([1.0] * 100 + [0.0] * 900)

    rate = effect(draws.of(Ratio(3 * ones, 3 * np.ones(1000))), draws.number)

    assert rate.value == 0.1
    assert rate.ci95 == pytest.approx((0.1 - 1.96 * 0.0095, 0.1 + 1.96 * 0.0095), abs=0.003)
    assert rate.p < 0.01
    assert rate.method == "bootstrap over samples"


@pytest.mark.parametrize(("images", "p"), [(2, 0.5), (5, 0.0625), (60, 2 / 4001)])
def test_few_images_that_agree_prove_no_more_than_a_sign_test(images, p):
    """All got worse: two heads in a row, or two tails, have a chance of 1/2; five 1/16."""
    draws = Resamples(images)
    worse = effect(draws.of(Ratio(-np.full(images, 2.0), np.full(images, 2.0))), draws.number)

    assert (worse.value, worse.p) == (-1.0, pytest.approx(p))


@pytest.mark.parametrize(("images", "p"), [(2, 0.5), (5, 0.0625)])
def test_the_delta_of_a_pair_counts_the_images_that_carry_it(images, p):
    """Three more without truth carry no metric."""
    truths = [*range(images), None, None, None]

    def scored(points):
        records = [
            {"iou": None if truth is None else points, "changed": 1, "units": 1} for truth in truths
        ]
        return mean_score(["iou"], records, truths)

    found = compare(scored(1.0), scored(0.0), ["iou"], [], Resamples(len(truths)))

    assert found["delta"]["iou"]["value"] == -1.0
    assert found["delta"]["iou"]["p"] == pytest.approx(p)


def test_holm_by_hand():
    """p = .01, .04, .03 -> .03, max(.03, .06) = .06, max(.06, .04) = .06."""
    assert attribute.holm({"a": 0.01, "b": 0.04, "c": 0.03}) == pytest.approx(
        {"a": 0.03, "c": 0.06, "b": 0.06}
    )
