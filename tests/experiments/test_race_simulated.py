"""What tools/race_table.py simulates is what races do; wrong they are in 5 % of runs at most."""

import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))
import race_table

from simulator.analysis.gate import parse
from simulator.experiments.search.questions import CheapestPassing, PassingOptions, WorstOption
from simulator.experiments.search.stopping import rounds
from simulator.tasks.settings import Network
from simulator.tasks.task import TASKS

CLASSIFICATION = TASKS["classification"](None, Network())
OPTIONS = dict.fromkeys("abcd", "train")
RUNS = 2000
CHANCE = stats.binom.isf(1e-4, RUNS, 0.05)
"""More wrong runs than these of RUNS, of which 5 % may be wrong, have a probability of 1e-4."""


def run(race, records):
    """Feed a race with (options, samples) pairs of records, in rounds; return the images used."""
    names, used = list(race.alive), 0
    for start, stop in rounds(len(records[0])):
        if race.done or not race.alive:
            break
        for at in range(start, stop):
            race.add({name: records[names.index(name)][at] for name in race.alive})
        race.judge()
        used = stop
    return used


def flipped(changed):
    return [[({}, {"changed": int(one)}) for one in row] for row in changed]


def right(values):
    """The first stack is right where a cell loses, and wrong where it gains."""
    return [[({"correct": one > 0}, {"correct": one < 0}) for one in row] for row in values]


@pytest.mark.parametrize("question", ["worst-flips", "worst-drop"])
def test_the_simulated_worst_is_that_of_the_code(question):
    random, rates = np.random.default_rng(0), (0.3, 0.25, 0.05, 0.02)
    draw = race_table.drawn if question == "worst-flips" else race_table.lost
    values = draw(rates, 3, 300, random).astype(np.int8)
    span = 1.0 if question == "worst-flips" else 2.0

    left, leader, used, work, _ = race_table.worst(values, span=span)

    for at, own in enumerate(values):
        race = WorstOption(question, {name: f"train/{name}" for name in "abcd"}, CLASSIFICATION)
        assert run(race, (flipped if question == "worst-flips" else right)(own)) == used[at]
        assert {"abcd".index(one) for one in race.alive} == {*np.flatnonzero(left[at])}
        assert (race.early(300).runs, "abcd"[leader[at]]) == (work[at], race.answer()[0])
    assert len({*used}) > 1 or not left.all()


@pytest.mark.parametrize("ordered", [False, True])
def test_the_simulated_gates_are_those_of_the_code(ordered):
    flips = race_table.drawn((0.15, 0.03, 0.0, 0.0), 1, 400, np.random.default_rng(1))

    found, used, work = race_table.raced(*race_table.decided(flips), 400, ordered)

    for at, own in enumerate(flips):
        rules = [parse("flip_rate >= 2%")]
        race = (
            CheapestPassing(OPTIONS, rules, CLASSIFICATION, rank="abcd".index)
            if ordered
            else PassingOptions(OPTIONS, rules, CLASSIFICATION)
        )
        assert run(race, flipped(own)) == used[at]
        assert race.early(400).runs == work[at]
        dropped = {one.option: one.why for one in race.dropped}
        for one, how in zip("abcd", found[at], strict=True):
            assert (how == 1) == dropped.get(one, "").startswith("it passes"), one
            assert (how == -1) == dropped.get(one, "").startswith("it fails"), one


@pytest.mark.parametrize("rates", [(0.2, 0.2, 0.2, 0.2), (0.2, 0.19, 0.1, 0.05)])
def test_the_true_worst_is_seldom_dropped(rates):
    flips = race_table.drawn(rates, RUNS, 400, np.random.default_rng(0))

    assert race_table.sweep_runs(rates, flips).wrong.sum() <= CHANCE


def test_the_cell_that_loses_most_is_seldom_dropped():
    rates = (0.2, 0.18, 0.1)
    values = race_table.lost(rates, RUNS, 400, np.random.default_rng(0))

    assert race_table.cell_runs(rates, values).wrong.sum() <= CHANCE


@pytest.mark.parametrize("rates", [(0.02, 0.02, 0.02, 0.02), (0.03, 0.025, 0.015, 0.0)])
def test_a_stack_that_fails_is_seldom_the_answer_and_one_that_passes_seldom_lost(rates):
    flips = race_table.drawn(rates, RUNS, 600, np.random.default_rng(0))

    assert race_table.repair_runs(rates, flips).wrong.sum() <= CHANCE


@pytest.mark.parametrize(
    ("passing", "failing", "answer"),
    [
        ([0, 1, 1], [1, 0, 0], 1),
        ([0, 1, 0], [0, 0, 1], -2),  # the first is not decided
        ([0, 0, 0], [1, 1, 1], -1),
        ([0, 0, 0], [1, 1, 0], -2),
        ([1, 0, 0], [0, 0, 0], 0),
    ],
)
def test_the_cheapest_is_known_where_all_before_it_fail(passing, failing, answer):
    one, other = np.array([passing], bool), np.array([failing], bool)

    assert race_table.first_passing(one, other).tolist() == [answer]
