"""Quality at the tail: deadlines, halves, forecasts, curves, and when enough was measured."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from tail_cases import IMAGES, MS, answered, labelled, latencies, one_side

from simulator.data.truth import Boxes
from simulator.errors import DataError
from simulator.latency import quality as late_quality
from simulator.latency import tail_figures as analysis
from simulator.latency.tail_figures import better, convergence, tail, thresholds
from simulator.latency.times import NEVER, Times
from simulator.results.tail import Curve
from simulator.tasks.detection.boxes import Detections


def test_all_late_is_worthless_and_none_late_is_the_plain_metric(quality):
    times = latencies(3, rounds=4, images=6, failing=0)

    found, _ = one_side(times, quality, [0.001, 1000])

    none, whole = found["thresholds"]["0.001ms"], found["thresholds"]["1000ms"]
    assert (none["late"], none["best"], none["worst"], none["mean"]) == (1, 0, 0, 0)
    assert whole["late"] == 0
    assert found["quality"] > 0.2
    for key in ("best", "worst", "mean"):
        assert whole[key] == pytest.approx(found["quality"])
    assert whole["forecast"] == {
        "mean": pytest.approx(found["quality"]), "worst": pytest.approx(found["quality"]),
        "ci95": pytest.approx([found["quality"]] * 2),
    }  # fmt: skip
    assert none["forecast"] == {"mean": 0, "worst": 0, "ci95": [0, 0]}


def test_the_curve_has_a_point_for_every_deadline(quality):
    """From the fastest answer to the slowest, and what each gives by itself."""
    times = latencies(4, rounds=5, images=6)
    came = times.total[times.total != NEVER]

    curve = one_side(times, quality, [5.0])[0]["curve"]

    ms = curve["ms"]
    assert ms == sorted(set(ms)) and 5.0 in ms and len(ms) <= 57
    assert (ms[0] * MS, ms[-1] * MS) == pytest.approx((came.min(), came.max()))
    for at in (0, 7, ms.index(5.0), -1):
        own = one_side(times, quality, [ms[at]])[0]["thresholds"][f"{ms[at]:.15g}ms"]
        assert [curve[key][at] for key in ("best", "worst", "mean")] == pytest.approx(
            [own[key] for key in ("best", "worst", "mean")]
        )


def test_thresholds_lie_on_the_curve(quality):
    """A picture of both must not contradict itself, however far apart the slowest answers are."""
    times = latencies(4, rounds=5, images=6)
    slow = Times(np.where(times.total == times.answered().max(), 10**10, times.total), {})
    many = Times(np.tile(slow.total, (30, 1)), {})

    found = one_side(many, quality, [])[0]

    for name in ("90", "95", "99"):
        one, curve = found["thresholds"][name], found["curve"]
        at = curve["ms"].index(one["ms"])
        assert {key: curve[key][at] for key in ("best", "worst", "mean")} == {
            key: one[key] for key in ("best", "worst", "mean")
        }


def test_of_two_stacks_the_curves_have_the_same_deadlines(classify):
    quality = labelled(classify, [1] * 6)
    times = {"a": latencies(4, 5, 6), "b": latencies(5, 5, 6)}

    found, _ = tail(times, {"a": quality, "b": quality}, [], 0, 10)

    assert found["a"]["curve"]["ms"] == found["b"]["curve"]["ms"]
    assert len(found["a"]["curve"]["ms"]) > 41


def test_judging_many_rounds_is_judging_each(quality, monkeypatch):
    """In batches, and where rounds are late alike."""
    late = np.random.default_rng(0).random((40, 6)) < 0.3
    alone = {
        name: [quality.each(row[None])[name][0] for row in late] for name in quality.each(late)
    }

    for batch in (1, 7, 10**6):
        monkeypatch.setattr(late_quality, "BATCH", batch)
        monkeypatch.setattr(analysis, "BATCH", batch)
        for name, values in quality.each(late).items():
            assert values == pytest.approx(alone[name])
        assert quality.of(late) == pytest.approx(next(iter(alone.values())))


@given(st.integers(0, 2**32 - 1), st.lists(st.floats(0.1, 20), min_size=2, max_size=4))
@settings(max_examples=30, deadline=None)
def test_more_time_never_makes_top1_worse(classify, seed, deadlines):
    times = latencies(seed, rounds=3, images=20)
    right = np.random.default_rng(seed).random(20) < 0.7

    found, _ = one_side(times, labelled(classify, right), deadlines, number=5)

    for key in ("best", "worst", "mean"):
        assert (np.diff(found["curve"][key]) >= 0).all()
    ranked = [found["thresholds"][f"{ms:.15g}ms"]["worst"] for ms in sorted(deadlines)]
    assert ranked == sorted(ranked)


def test_thresholds_are_loadgens_percentiles_of_all_rounds_together():
    """Of 1 to 720 ms, whichever round they are in: sorted[int(720 p)]."""
    total = np.random.default_rng(0).permutation(np.arange(1, 721)).reshape(12, 60) * MS

    assert thresholds(Times(total, {}), [12, 0.5]) == {
        "99": 713, "95": 685, "90": 649, "12ms": 12, "0.5ms": 0.5,
    }  # fmt: skip


def test_a_threshold_that_is_not_carried_is_none_with_the_reason(classify):
    """130 answers carry p95 and not p99; half of them carry p90 and not p95."""
    times = Times(np.arange(1, 131).reshape(13, 10) * MS, {})

    found, why = one_side(times, labelled(classify, [1] * 10))

    assert found["thresholds"]["99"] is found["tail_quality@99"] is None
    assert found["thresholds"]["95"]["ms"] == 124
    assert found["split"]["thresholds"]["99"] is found["split"]["thresholds"]["95"] is None
    assert why == {
        "tail.deploy.thresholds.99": "130 latencies cannot carry p99; it needs 532 more",
        "tail.deploy.tail_quality@99": "130 latencies cannot carry p99; it needs 532 more",
        "tail.deploy.split.thresholds.99": "60 latencies cannot carry p99; it needs 602 more",
        "tail.deploy.split.thresholds.95": "60 latencies cannot carry p95; it needs 70 more",
        "tail.deploy.split.thresholds.90": "60 latencies cannot carry p90; it needs 4 more",
    }


@pytest.mark.parametrize("ns", [1_000_001, 8_031_000, 123_456_789, 999_999_999_999_999])
def test_an_answer_at_its_deadline_is_in_time(classify, ns):
    """1.000001 * 1e6 is below 1,000,001: a percentile in ms must not make its own answer late."""
    total = np.full((11, 60), ns)
    total[:, 0] += 1

    found, _ = one_side(Times(total, {}), labelled(classify, [1] * 60), [ns / MS])

    for name in ("95", "90", f"{ns / MS:.15g}ms"):
        assert found["thresholds"][name]["late"] == pytest.approx(1 / 60)
        assert found["thresholds"][name]["worst"] == pytest.approx(59 / 60)
    assert found["curve"]["mean"] == pytest.approx([59 / 60, 1])


def test_an_answer_that_never_comes_is_late_for_every_deadline(classify):
    """Sample 0 never came; sample 1 in half of the rounds; the forecast knows it too."""
    total = np.full((10, 4), 5 * MS)
    total[:, 0] = total[::2, 1] = NEVER

    found, _ = one_side(Times(total, {}), labelled(classify, [1] * 4), [1e9], number=400)

    one = found["thresholds"]["1000000000ms"]
    assert (one["late"], one["best"], one["worst"]) == (0.375, 0.75, 0.5)
    assert one["forecast"]["mean"] == pytest.approx(0.625, abs=0.03)
    assert one["forecast"]["worst"] == 0.5


def test_where_no_answer_came_there_is_no_curve(classify):
    found, why = one_side(Times(np.full((2, 3), NEVER), {}), labelled(classify, [1] * 3))

    assert found["curve"] == {"ms": [], "best": [], "worst": [], "mean": []}
    assert set(found["thresholds"].values()) == {None}
    assert why["tail.deploy.tail_quality@90"] == "0 latencies cannot carry p90; it needs 64 more"


def test_constant_latencies_have_defined_figures(classify):
    found, _ = one_side(Times(np.full((20, 60), 5 * MS), {}), labelled(classify, [1, 0] * 30), [4])

    assert {found[f"tail_quality@{name}"] for name in ("99", "95", "90")} == {0.5}
    assert found["tail_quality@4ms"] == 0
    assert found["split"]["rjsd"] == pytest.approx(
        {"pooled": 0, "median": 0, "train": 0, "test": 0, "alternating": 0}, abs=1e-6
    )
    assert found["split"]["thresholds"]["95"]["delta"] == {"best": 0, "worst": 0, "mean": 0}


def test_the_forecast_is_the_worst_of_so_many_binomials(classify):
    """200 images, all late in one of four rounds: of four rounds the worst by scipy."""
    total = np.where(np.arange(4)[:, None] == np.arange(200) % 4, 9, 5) * MS

    found, _ = one_side(Times(total, {}), labelled(classify, [1] * 200), [6], number=4000)

    told = found["thresholds"]["6ms"]["forecast"]
    expected = [stats.binom.ppf(1 - (1 - q) ** (1 / 4), 200, 0.75) / 200
                for q in (0.025, 0.5, 0.975)]  # fmt: skip
    assert [told["ci95"][0], told["worst"], told["ci95"][1]] == pytest.approx(expected, abs=0.0101)
    assert told["mean"] == pytest.approx(0.75, abs=0.002)


def test_a_forecast_is_the_same_again_and_another_by_another_seed(classify):
    times, quality = latencies(0), labelled(classify, [1] * IMAGES)
    first, again, other = (one_side(times, quality, [5], seed=seed)[0] for seed in (1, 1, 2))

    assert first == again
    assert first["thresholds"]["5ms"]["forecast"] != other["thresholds"]["5ms"]["forecast"]
    plain = [one["thresholds"]["5ms"]["metrics"] for one in (first, other)]
    assert plain[0] == plain[1]


def test_halves_are_the_first_and_the_last_rounds(classify):
    """Of seven rounds three and three; in round r every r-th answer is in time at 6 ms."""
    total = np.full((7, 12), 9 * MS)
    for number, good in enumerate((12, 6, 9, 0, 3, 6, 4)):
        total[number, :good] = 5 * MS

    split = one_side(Times(total, {}), labelled(classify, [1] * 12), [6])[0]["split"]

    one = split["thresholds"]["6ms"]
    assert split["rounds"] == 3
    assert one["train"] == pytest.approx({"best": 1, "worst": 0.5, "mean": 0.75})
    assert one["test"] == pytest.approx({"best": 0.5, "worst": 0.25, "mean": 13 / 36})
    assert one["delta"] == pytest.approx({"best": -0.5, "worst": -0.25, "mean": 13 / 36 - 0.75})


def test_thresholds_of_a_split_come_from_training_rounds_only(classify):
    """The rounds after them may take what they like."""
    quality = labelled(classify, [1, 0, 1] * 20)
    times = latencies(6, rounds=25)
    other = times.total.copy()
    other[12:] = np.where(other[12:] == NEVER, NEVER, other[12:] // 3)

    first, second = (one_side(one, quality)[0] for one in (times, Times(other, {})))

    pooled = np.sort(times.total[:12][times.total[:12] != NEVER])
    assert first["thresholds"]["90"]["ms"] != second["thresholds"]["90"]["ms"]
    for name, p in (("99", 0.99), ("95", 0.95), ("90", 0.9)):
        one, same = (found["split"]["thresholds"][name] for found in (first, second))
        assert one["ms"] == pytest.approx(pooled[int(len(pooled) * p)] / MS)
        for key in ("ms", "train", "forecast"):
            assert one[key] == same[key]
        assert one["test"] != same["test"]


def test_equal_halves_are_not_apart_and_disjoint_ones_are(classify):
    half = latencies(7, rounds=6, failing=0).total
    quality = labelled(classify, [1] * IMAGES)

    def rjsd(later):
        times = Times(np.concatenate([half, half[:1], later]), {})
        return one_side(times, quality)[0]["split"]

    equal = rjsd(half)
    odd_from_even = equal["rjsd"].alternating
    assert 0 < odd_from_even < 1
    assert equal["rjsd"] == {
        "pooled": 0, "median": 0, "train": None, "test": 0, "alternating": odd_from_even,
    }  # fmt: skip
    assert {
        tuple(one["delta"][key] for key in one["delta"])
        for one in equal["thresholds"].values()
        if one
    } == {(0, 0, 0)}
    apart = rjsd(half * 1000)["rjsd"]
    assert apart["median"] > 0.999 and 0.98 < apart["pooled"] <= 1


def test_halves_of_one_round_carry_no_rjsd_of_an_image(classify):
    found, why = one_side(latencies(1, rounds=3), labelled(classify, [1] * IMAGES))

    rjsd = found["split"]["rjsd"]
    assert (rjsd.test, rjsd.median, rjsd.alternating) == (None, None, None)
    assert 0 < rjsd.pooled <= 1
    assert "a half is one round" in why["tail.deploy.split.rjsd.test"]


def test_samples_of_a_batch_are_late_together(classify):
    """Two batches of 100, late in half of the rounds: by chance a round has 0, 1 or 2 of them."""
    total = np.repeat([[9, 5], [5, 9]], 100, axis=1) * MS
    times = Times(total, {}, together=100)

    found, _ = one_side(times, labelled(classify, [1] * 200), [6], number=4000)

    told = found["thresholds"]["6ms"]["forecast"]
    assert (told["worst"], told["ci95"]) == (0.5, [0, 1])
    assert (times.inferences, sorted(times.answered() // MS)) == (2, [5, 5, 9, 9])


def test_divergences_of_a_split_are_means_over_images_as_in_the_papers_table_2(classify):
    """Of four images one is 1 ms later in the later half, constant in each: rJSD 1, so mean 1/4.

    Another takes 5 ms in two rounds and 50 ms in five: the fit of seven rounds is 10^7 times wider
    than that of the first two, the only earlier ones, so that they hardly overlap: 1/4 as well.
    """
    half = np.full((7, 4), 5.0 * MS)
    half[2:, 0] = 50 * MS
    later = half.copy()
    later[:, 1] += 1 * MS

    split = one_side(Times(np.concatenate([half, later]).astype(np.int64), {}),
                     labelled(classify, [1] * 4))[0]["split"]  # fmt: skip

    assert split["rjsd"]["train"] == pytest.approx(1 / 4, abs=1e-4)
    assert split["rjsd"]["test"] == pytest.approx(1 / 4, abs=1e-4)
    assert split["rjsd"]["median"] == 0


def test_one_round_cannot_be_split(classify):
    found, why = one_side(latencies(0, rounds=1), labelled(classify, [1] * IMAGES))

    assert found["split"] is None
    assert why["tail.deploy.split"] == "one round cannot be split into training and test rounds"


def test_images_without_an_object_cannot_be_judged(detect):
    none = np.empty(0)
    truth = Boxes(np.empty((0, 4)), none.astype(int), none.astype(bool), none, none.astype(bool))
    nothing = Detections(np.empty((0, 4)), none, none.astype(np.int64))

    with pytest.raises(DataError, match="no ground truth to measure mAP on"):
        answered(detect, [nothing], [truth])


def curves(one, other):
    ms = [float(at + 1) for at in range(len(one))]
    return {
        name: Curve(ms=ms, best=mean, worst=mean, mean=mean)
        for name, mean in {"a": list(one), "b": list(other)}.items()
    }


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ([0, 0.5, 0.75, 0.5], [0, 0.25, 0.25, 0.75], [("a", 2, 3, 0.5), ("b", 4, None, 0.25)]),
        ([0.25, 0.5, 0.5], [0.5, 0.75, 1], [("b", 1, None, 0.5)]),
        ([0.5, 0.25, 0.5, 0.25], [0.25] * 4, [("a", 1, 1, 0.25), ("a", 3, 3, 0.25)]),
        ([0.5, 0, 1], [0, 0.5, 0], [("a", 1, 1, 0.5), ("b", 2, 2, 0.5), ("a", 3, None, 1)]),
        ([0.5, 0.5], [0.5, 0.5], []),
        ([0.1 + 0.2], [0.3], []),
        ([], [], []),
    ],
)
def test_which_stack_is_better_where(one, other, expected):
    """0.1 + 0.2 is 0.3, up to float64."""
    found = better(curves(one, other))

    keys = "stack", "from_ms", "to_ms", "by"
    assert found == [dict(zip(keys, words, strict=True)) for words in expected]


def test_better_is_for_two_stacks():
    both = curves([1], [0])

    assert better({"a": both["a"]}) == []
    assert better({**both, "c": both["b"]}) == []


def test_times_of_one_distribution_have_settled_after_55_rounds():
    """One normal distribution an instance; three in a hundred may need a few rounds more."""
    total = np.random.default_rng(0).normal(5e6, 1e5, (55, 100)).astype(np.int64)

    found = convergence({"a": Times(total, {}), "b": Times(total[:54], {})})

    assert found["a"]["settled"] >= 97
    assert found["a"]["inferences"] == 5500 and found["a"]["rounds"] == 55
    assert found["b"]["settled"] == 0 and found["b"]["done_after"] is None
    assert {one["instances"] for one in found.values()} == {100}
    assert {one["mlperf"] for one in found.values()} == {270_336}


def test_constant_times_are_done_at_the_earliest():
    one = convergence({"a": Times(np.full((60, 3), 5 * MS), {})})["a"]

    assert (one["done_after"], one["settled"], one["inferences"]) == (55, 3, 180)


def test_failures_do_not_keep_a_run_from_settling():
    """The longest answer stands in for the only one that never came."""
    total = np.full((60, 2), 5 * MS)
    total[20, 1] = NEVER

    assert convergence({"a": Times(total, {})})["a"]["done_after"] == 55
