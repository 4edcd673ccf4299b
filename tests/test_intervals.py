"""Intervals of every task, held against SciPy and formulas written out here."""

from math import sqrt
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import binomtest, norm

from simulator.analysis import gate, outcomes
from simulator.results.repair import Judged
from simulator.statistics.bootstrap import DIFFERENCE, RATE, Ratio, Resamples, effect, interval
from simulator.tasks.generation.task import Generation, Written
from simulator.tasks.multiple_choice.task import Chosen, MultipleChoice
from simulator.tasks.next_word.task import NextWord, Word
from simulator.tasks.score import compare, mean_score
from simulator.tasks.settings import Network

NETWORK = Network(None, SimpleNamespace(vocabulary=4, max_length=8))
ANSWERS = {
    MultipleChoice: (Chosen((-1.0, -2.0)), Chosen((-2.0, -1.0)), 0),
    NextWord: (Word(True, -1.0, (1,)), Word(False, -2.0, (2,)), "w"),
    Generation: (Written((1,), "yes"), Written((2,), "no"), "yes"),
}
"""A right answer, a wrong one, and the truth."""


def exact(count, of):
    ends = binomtest(count, of).proportion_ci(method="exact")
    return [ends.low, ends.high]


def adjusted_wald(lost, won, of):
    """Bonett and Price 2012, equation 4, written out."""
    one, other = (lost + 1) / (of + 2), (won + 1) / (of + 2)
    half = norm.ppf(0.975) * sqrt((one + other - (other - one) ** 2) / (of + 2))
    return [max(-1, other - one - half), min(1, other - one + half)]


def compared(task, pairs, draws=50):
    """Two stacks on as many samples; a pair says whether train and deploy are right."""
    right, wrong, truth = ANSWERS[task]
    made = task(task.Output.model_construct(tokens=4, stop=[]), NETWORK)
    rows = [made.records([right if one else wrong for one in pair], truth) for pair in pairs]
    sides = [made.score([row[side] for row in rows], [truth] * len(rows)) for side in (0, 1)]
    return made.compare(*sides, Resamples(len(rows), number=draws))


@pytest.mark.parametrize("task", ANSWERS)
@pytest.mark.parametrize(("lost", "won", "same"), [(0, 0, 5), (3, 1, 16), (1, 0, 199), (4, 0, 0)])
def test_texts_have_exact_intervals(task, lost, won, same):
    pairs = [(1, 0)] * lost + [(0, 1)] * won + [(1, 1)] * same
    found = compared(task, pairs)
    delta, n = found["delta"][task.metrics[0]], len(pairs)

    assert found["flips"]["ci95"] == pytest.approx(exact(lost + won, n), abs=1e-12)
    assert delta["ci95"] == pytest.approx(adjusted_wald(lost, won, n), abs=1e-12)
    p = binomtest(lost, lost + won).pvalue if lost + won else 1.0
    assert delta["p"] == pytest.approx(p)
    assert delta["method"] == "Bonett-Price"


@pytest.mark.parametrize("task", ANSWERS)
def test_five_answers_that_stay_prove_little(task):
    found = compared(task, [(1, 1)] * 5)
    rules = [f"delta.{task.metrics[0]}.low < -1 points", "flip_rate.high > 5%"]
    asked = [gate.parse(rule) for rule in rules]
    judged = outcomes.evaluate(asked, found, shape=Judged)["rules"]

    assert [(one["failed"], one["undecided"]) for one in judged] == [(True, False)] * 2


@pytest.mark.parametrize("n", [2, 5, 60])
def test_where_all_resamples_agree_a_share_of_three_by_n_is_left_open(n):
    """No formula is for parts of samples: six objects in each, none changed."""
    draws = Resamples(n, number=100)
    figure = draws.of(Ratio(np.zeros(n), np.full(n, 6.0)))
    open_ = min(1, 3 / n)

    assert interval(figure, 100, RATE) == pytest.approx((0, open_), rel=0.01)
    assert effect(figure, 100).ci95 == pytest.approx((-open_, open_), rel=0.01)


@pytest.mark.parametrize("moved", [0.0, 0.2])
def test_a_metric_of_fractions_that_moves_alike_everywhere_has_an_interval(moved):
    """Of 12 samples with truth among 20; all that were not drawn may move from -1 to 1."""
    truths = [1] * 12 + [None] * 8

    def scored(points):
        records = [{"iou": truth and points, "changed": 0, "units": 9} for truth in truths]
        return mean_score(["iou"], records, truths)

    draws = Resamples(20, number=100)
    found = compare(scored(0.5), scored(0.5 + moved), ["iou"], [], draws)
    wanted = [moved - 0.25 * (1 + moved), moved + 0.25 * (1 - moved)]

    got = found["delta"]["iou"]["ci95"]
    assert got == pytest.approx(wanted if moved else adjusted_wald(0, 0, 12), rel=0.01)
    assert found["flips"]["ci95"] == pytest.approx([0, 0.15], rel=0.01)


def test_a_difference_of_differences_is_no_paired_difference():
    """It can be 2; of +1, 0 and -1 alone it is drawn all the same."""
    draws = Resamples(40, seed=1, number=200)
    figure = draws.of(Ratio(np.array([1.0] * 9 + [-1.0] * 3 + [0.0] * 28), np.ones(40)))

    assert effect(figure, 200, DIFFERENCE).exact
    assert not effect(figure, 200, (-2.0, 2.0)).exact


def test_a_ratio_of_two_metrics_is_no_rate():
    """A stack by itself is 1 whatever is drawn, and stays 1 for all other samples too."""
    draws = Resamples(30, number=50)
    one = draws.of(Ratio(np.array([1.0] * 20 + [0.5] * 10), np.ones(30)))

    assert interval(one / one, 50, None) == (1, 1)
