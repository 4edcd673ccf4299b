"""Figures of latencies: by scipy and by hand, and what is said where there is none."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from simulator.latency import figures
from simulator.latency.stream import ABSENT, Round
from simulator.latency.times import NEVER, Times

MS = 1_000_000
NAMES = ["p50", "p90", "p95", "p97", "p99", "p99.9"]


def times(total, source="", **stages):
    return Times(np.array(total, np.int64), {k: np.array(v) for k, v in stages.items()}, source)


def normal(seed, rounds=6, samples=40, mean=5 * MS, slow=0.0):
    rng = np.random.default_rng(seed)
    drift = 1 + 0.2 * np.sin(np.arange(rounds))[:, None]
    return times((mean * (1 + slow) * drift * rng.normal(1, 0.05, (rounds, samples))).astype(int))


def test_percentiles_are_loadgens_in_milliseconds():
    """Of the 1000 values 1 to 1000 ms, sorted[int(n p)] is n p + 1; 6636 would carry p99.9."""
    total = np.random.default_rng(0).permutation(np.arange(1, 1001)).reshape(10, 100) * MS

    found = figures.table({"deploy": times(total)})["deploy"]["total"]

    assert found == {
        "p50": 501, "p90": 901, "p95": 951, "p97": 971, "p99": 991, "p99.9": None,
        "mean": 500.5, "min": 1, "max": 1000,
    }  # fmt: skip


def test_every_stage_has_its_row():
    one = times([[4 * MS, 8 * MS]], infer=[[3 * MS, 5 * MS]], decode=[[MS, 3 * MS]])

    found = figures.table({"deploy": one})["deploy"]

    assert list(found) == ["total", "infer", "decode"]
    assert [found[stage]["mean"] for stage in found] == [6, 4, 2]


def test_what_never_came_is_in_no_figure():
    total, infer = np.full((2, 40), 2 * MS), np.full((2, 40), 2 * MS)
    total[0, 3] = NEVER
    infer[0, 3] = ABSENT
    one = {"deploy": times(total, infer=infer)}

    for stage in ("total", "infer"):
        row = figures.table(one)["deploy"][stage]
        assert row["min"] == row["max"] == row["mean"] == row["p90"] == 2
    assert figures.percentiles(one)["deploy"]["p90"]["ms"] == 2
    assert figures.spread(one)["deploy"]["medians_ms"] == [2, 2]
    assert figures.ratios({"a": times(np.full((2, 40), MS)), **one})["deploy"]["value"] == 2


@pytest.mark.parametrize(
    ("samples", "none", "needs"),
    [
        (63, ["p90", "p95", "p97", "p99", "p99.9"], [0, 1, 67, 156, 599, 6573]),
        (64, ["p95", "p97", "p99", "p99.9"], [0, 0, 66, 155, 598, 6572]),
        (662, ["p99.9"], [0, 0, 0, 0, 0, 5974]),
        (6636, [], [0, 0, 0, 0, 0, 0]),
    ],
)
def test_a_percentile_that_is_not_carried_is_none_with_the_reason(samples, none, needs):
    """Needed are so many that at most one is above the percentile in less than 1 % of cases."""
    for p, needed in zip(NAMES, (11, 64, 130, 219, 662, 6636), strict=True):
        above = 1 - float(p[1:]) / 100
        assert stats.binom.cdf(1, needed, above) < 0.01 <= stats.binom.cdf(1, needed - 1, above)
    one = {"deploy": times([np.arange(samples) + MS], infer=[np.arange(samples)])}

    table, why = figures.table(one)["deploy"], figures.missing(one)
    bounds = figures.percentiles(one)["deploy"]

    for stage in ("total", "infer"):
        assert [name for name in NAMES if table[stage][name] is None] == none
    assert list(why) == [f"latency_ms.deploy.{s}.{p}" for s in ("total", "infer") for p in none]
    assert [bounds[name]["needs"] for name in NAMES] == needs
    for name, needed in zip(NAMES, needs, strict=True):
        known = [bounds[name][key] is not None for key in ("ms", "early_stopping_ms")]
        assert known == [not needed] * 2
        assert not needed or bounds[name]["ci95"] is None
        if needed:
            reason = why[f"latency_ms.deploy.total.{name}"]
            assert reason == f"{samples:,} latencies cannot carry {name}; it needs {needed:,} more"


def test_where_no_answer_came_every_figure_is_none_and_says_so():
    one = {"deploy": times([[NEVER, NEVER]])}

    table, why = figures.table(one)["deploy"]["total"], figures.missing(one)

    assert {table[name] for name in table} == {None}
    assert set(why) == {f"latency_ms.deploy.total.{name}" for name in table}
    assert why["latency_ms.deploy.total.mean"] == "every inference failed"
    assert why["latency_ms.deploy.total.p90"].startswith(
        "0 latencies cannot carry p90; it needs 64"
    )
    assert figures.spread(one)["deploy"] == {"medians_ms": [], "range": None}
    assert figures.percentiles(one)["deploy"]["p50"]["ms"] is None


def test_a_percentile_lies_between_its_bounds():
    """Order statistics by scipy; early stopping errs upwards."""
    total = np.random.default_rng(1).gamma(3, MS, 2000).astype(np.int64)

    for name, row in figures.percentiles({"deploy": times([total])})["deploy"].items():
        p = float(name[1:]) / 100
        if row["ms"] is None:
            assert name == "p99.9"
            continue
        low, high = row["ci95"]
        by_rank = stats.binom.cdf(np.searchsorted(np.sort(total) / MS, [low, high]), 2000, p)
        assert by_rank[0] <= 0.05 and by_rank[1] >= 0.95
        assert low <= row["ms"] <= high
        assert row["ms"] <= row["early_stopping_ms"] <= np.max(total) / MS


def test_the_ratio_is_the_paired_t_of_logarithms():
    first, other = normal(0), normal(1, slow=0.3)

    found = figures.ratios({"a": first, "b": other})

    logs = [
        np.log(sum(o.tolist())) - np.log(sum(f.tolist()))
        for f, o in zip(first.total, other.total, strict=True)
    ]
    test = stats.ttest_1samp(logs, 0)
    assert list(found) == ["b"]
    assert found["b"]["to"] == "a" and found["b"]["rounds"] == 6
    assert found["b"]["value"] == pytest.approx(stats.gmean(np.exp(logs)))
    assert found["b"]["ci95"] == pytest.approx(np.exp(test.confidence_interval(0.95)))
    assert found["b"]["value"] == pytest.approx(1.3, rel=0.02)


def test_drift_that_both_have_cancels():
    """Rounds differ by 40 %, and the interval is of 2 %."""
    ratio = figures.ratios({"a": normal(0), "b": normal(1, slow=0.3)})["b"]

    assert figures.spread({"a": normal(0)})["a"]["range"] > 0.3
    assert ratio["ci95"][1] - ratio["ci95"][0] < 0.05


@given(st.lists(st.lists(st.integers(1, 10**12), min_size=3, max_size=3), min_size=1, max_size=6))
@settings(deadline=None)
def test_equal_times_have_the_ratio_1(total):
    found = figures.ratios({"a": times(total), "b": times(total)})["b"]

    assert found["value"] == 1
    assert found["ci95"] == ([1, 1] if len(total) > 1 else None)


def test_a_constant_ratio_has_an_interval_of_no_width(recwarn):
    """And no warning that precision was lost."""
    found = figures.ratios({"a": times([[3], [5], [7]]), "b": times([[6], [10], [14]])})["b"]

    assert found["value"] == pytest.approx(2) and found["ci95"] == pytest.approx([2, 2])
    assert not recwarn.list


def test_one_round_has_no_interval():
    found = figures.ratios({"a": times([[2, 4]]), "b": times([[3, 6]])})["b"]

    assert found == {"to": "a", "value": pytest.approx(1.5), "ci95": None, "rounds": 1}


def test_samples_that_failed_in_either_are_left_out_of_both():
    """Left are 10 against 20 and 30 against 90; the last round has nothing left."""
    first = times([[10, 1000, NEVER], [NEVER, 30, 5], [1, 2, 3]])
    other = times([[20, NEVER, 1000], [7, 90, NEVER], [NEVER] * 3])

    found = figures.ratios({"a": first, "b": other})["b"]

    assert found["value"] == pytest.approx(np.sqrt(2 * 3))
    assert found["rounds"] == 2
    assert figures.ratios({"a": first.split(2, 1), "b": other.split(2, 1)}) == {}


@pytest.mark.parametrize(
    ("first", "other"),
    [
        (times([[1, 2]], "log.csv"), times([[1, 2]])),
        (times([[1, 2]]), times([[1, 2]], "log.csv")),
        (times([[1, 2]], "log.csv"), times([[1, 2]], "log.csv")),
        (times([[1, 2]]), times([[1, 2], [3, 4]])),
    ],
)
def test_what_was_not_measured_together_has_no_ratio(first, other):
    assert figures.ratios({"a": first, "b": other}) == {}


def test_every_further_stack_is_held_against_the_first():
    found = figures.ratios({"a": times([[2]]), "b": times([[4]]), "c": times([[1]])})

    assert {side: (one["to"], one["value"]) for side, one in found.items()} == {
        "b": ("a", pytest.approx(2)), "c": ("a", pytest.approx(0.5)),
    }  # fmt: skip
    assert figures.ratios({"a": times([[2]])}) == {}


def test_spread_is_the_range_of_medians_by_their_median():
    """Medians 2, 5 and 4 ms: (5 - 2) / 4. The failed one is no 9 ms."""
    total = np.array([[1, 2, 9], [5, 4, 6], [4, 4, 0]]) * MS
    total[2, 2] = NEVER

    found = figures.spread(
        {"deploy": times(total), "one": times([[MS]]), "none": times([[0], [0]])}
    )

    assert found["deploy"] == {"medians_ms": [2, 5, 4], "range": 0.75}
    assert found["one"] == {"medians_ms": [1], "range": None}
    assert found["none"] == {"medians_ms": [0, 0], "range": None}


def told(count, ms, longest, samples, preempted, load, mhz):
    pauses = {"count": count, "ms": ms, "longest_ms": longest, "samples": samples}
    return Round(0, None, None, {}, {
        "collections": pauses, "preempted": preempted, "load": load, "mhz": mhz,
    })  # fmt: skip


def test_conditions_are_added_up():
    rounds = [
        told(2, 1.5, 1.0, 1, 3, 0.5, [2400.0, 1800.0]),
        told(1, 4.0, 4.0, 1, 5, 2.5, [3000.0]),
    ]

    assert figures.conditions(rounds) == {
        "collections": {"count": 3, "ms": 5.5, "samples": 2, "longest_ms": 4.0},
        "preempted": 8, "load": [0.5, 2.5], "mhz": [1800.0, 3000.0],
    }  # fmt: skip


def test_conditions_of_a_machine_that_does_not_tell_its_frequency():
    assert figures.conditions([told(0, 0, 0, 0, 0, 1.0, [])])["mhz"] is None


def test_where_nothing_was_measured_there_are_no_conditions():
    assert figures.conditions([]) is None
