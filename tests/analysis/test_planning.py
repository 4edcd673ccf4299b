"""How many more samples would decide a rule, against SciPy and formulas written out here."""

from math import sqrt

import pytest
from scipy.stats import binomtest, norm

from simulator.analysis import gate, outcomes
from simulator.report import rules
from simulator.results.faults import FaultsSummary
from simulator.results.pair import PairSummary
from simulator.statistics import planning
from simulator.statistics.paired import bonett_price


def judged(rule, **summary):
    shape = FaultsSummary if "stacks" in summary else PairSummary
    (outcome,) = outcomes.evaluate([gate.parse(rule)], summary, shape=shape).rules
    return outcome


def flips(count, units):
    ends = binomtest(count, units).proportion_ci()
    return {"count": count, "units": units, "rate": count / units, "ci95": [ends.low, ends.high]}


@pytest.mark.parametrize(("count", "units", "limit"), [(0, 10, 0.01), (1, 50, 0.1), (3, 40, 0.02)])
def test_of_a_rate_the_next_whole_sample_of_that_rate_is_decided(count, units, limit):
    more = planning.for_rate(count, units, limit)

    for times in range(1, 200):  # whole numbers of flips only
        ends = binomtest(count * times, units * times).proportion_ci()
        decided = not ends.low <= limit <= ends.high
        assert decided == (units * times >= units + more)


@pytest.mark.parametrize(("lost", "won", "limit"), [(0, 0, -0.01), (3, 1, 0.0), (2, 2, -0.05)])
def test_of_a_difference_the_discordant_pairs_are_told_from_the_interval(lost, won, limit):
    value = (won - lost) / 60
    more = planning.for_difference(value, bonett_price(lost, won, 60), 60, limit)

    def ends(n):  # Bonett and Price 2012, equation 4
        one, other = (lost / 60 * n + 1) / (n + 2), (won / 60 * n + 1) / (n + 2)
        half = norm.ppf(0.975) * sqrt((one + other - (other - one) ** 2) / (n + 2))
        return other - one - half, other - one + half

    low, high = ends(60 + more)
    assert not low <= limit <= high
    low, high = ends(60 + more - 1)
    assert low <= limit <= high


def test_at_the_limit_no_number_decides():
    assert planning.for_rate(1, 100, 0.01) is None
    assert planning.for_difference(0.0, (-0.1, 0.1), 30, 0.0) is None
    assert planning.by_root(0.1, (0.0, 0.2), 30, 0.1) is None


def test_an_interval_that_narrows_with_the_root_needs_four_times_for_half():
    assert planning.by_root(0.1, (0.0, 0.3), 25, 0.2) == 75


def test_a_pass_on_ten_images_says_what_cannot_be_excluded():
    found = judged("flip_rate > 1%", samples=10, sample_unit="image", flips=flips(0, 10))

    assert not found.failed and found.chance
    assert rules.got(found) == (
        "got 0 %, but 30.85 % cannot be excluded; 358 more images would decide it if the figure "
        "stays"
    )
    assert binomtest(0, 368).proportion_ci().high < 0.01 < binomtest(0, 367).proportion_ci().high


def test_a_failure_that_chance_may_explain_says_the_other_end():
    found = judged("flip_rate > 1%", samples=50, flips=flips(2, 50))

    assert found.failed and found.chance
    assert rules.got(found).startswith(
        "got 4 %, which chance may explain: 0.4881 % cannot be excluded; "
    )


def test_what_the_interval_excludes_needs_no_more():
    found = judged("flip_rate > 1%", samples=1000, flips=flips(0, 1000))

    assert (found.chance, found.more) == (False, None)
    assert rules.got(found) == "got 0 %"


def test_an_end_that_is_named_decides():
    found = [judged(f"flip_rate.{end} > 1%", samples=50, flips=flips(2, 50)) for end in
             ("low", "high")]  # fmt: skip

    assert [one.failed for one in found] == [False, True]
    assert [one.chance for one in found] == [None, None]


@pytest.mark.parametrize(("name", "failed"), [("SDC", False), ("SDC.high", True)])
def test_a_rule_on_faults_means_what_a_rule_on_flips_means(name, failed):
    ends = binomtest(0, 40).proportion_ci()
    sdc = {"rate": 0.0, "ci95": [ends.low, ends.high], "count": 0, "of": 40}
    found = judged(f"deploy.{name} > 1%", samples=8, stacks={"deploy": {"SDC": sdc}})

    assert found.failed is failed
    if not failed:
        assert (found.more, found.more_of) == (328, "fault")
