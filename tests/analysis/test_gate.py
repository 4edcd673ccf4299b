import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.analysis import outcomes
from simulator.analysis.figures import by_name, figures
from simulator.analysis.gate import check, parse
from simulator.errors import UserError
from simulator.results.pair import PairSummary, pair_summary
from simulator.results.shared import RuleOutcome
from simulator.results.tail import TailSummary
from simulator.results.timed import LatencySummary, LoadSummary
from simulator.tasks.classification.compare import ClassificationFlips
from simulator.tasks.figures import Flips
from simulator.tasks.segmentation.change import SegmentationFlips
from simulator.typed import Share, Unit

SUMMARY = {
    "train": {"profile": "a", "metric": {"top1": 0.80}},
    "deploy": {"profile": "b", "metric": {"top1": 0.79}},
    "delta": {"top1": {"value": -0.01, "ci95": [-0.02, 0.001]}},
    "flips": {"count": 30, "rate": 0.03, "right_to_wrong": 12, "samples_for_tenth_point": 90_000},
    "latency_ms": {"deploy": {"total": {"p50": 4.0, "p90": 21.0}, "infer": {"p90": 12.5}}},
    "gate": {"passed": True},
}


TIMED = {
    "latency_ms": {
        "deploy": {"total": {"p50": 4.0, "p99": None, "p99.9": None, "mean": 5.0, "max": 31.0}},
        "ort-int8_2": {"total": {"p99": 21.0}, "infer": {"p90": 12.5}},
        "8bit": {"total": {"p50": 3.0}},
    },
    "percentiles": {"deploy": {"p50": {"ms": 4.0, "ci95": [3.5, 4.5], "needs": 0}}},
    "ratio": {"deploy": {"to": "train", "value": 1.25, "ci95": [1.1, 1.4]}},
    "spread": {"deploy": {"range": 0.12}},
    "tail": {
        "deploy": {
            "quality": 0.75, "tail_quality@99": 0.69, "tail_quality@95": None,
            "tail_quality@12ms": 0.5, "tail_quality@12.5ms": 0.55,
        },
        "ort-int8_2": {"quality": 0.7, "tail_quality@99": 0.71},
    },
    "missing": {
        "latency_ms.deploy.total.p99": "400 latencies cannot carry p99; it needs 262 more",
        "tail.deploy.tail_quality@95": "100 latencies cannot carry p95; it needs 30 more",
    },
}  # fmt: skip
"""Of the timed jobs; LoadGen's 662 samples carry a p99, 130 a p95."""


PAIR = (
    pair_summary(ClassificationFlips),
    {"metric": ["top1"], "delta": ["top1"], "stage": ["total", "infer"]},
)
"""The model of a pair's summary, and the names of its figures."""


def timed(shape, stacks):
    """The model of a timed job's summary, and the names of its figures."""
    thresholds = ["99", "95", "90", "12ms", "12.5ms"]
    return shape, {
        "stack": stacks, "other stack": stacks, "stage": ["total", "infer"],
        "percentile": ["p50", "p99"], "metric": ["top1"], "threshold": thresholds,
        "tail quality": [f"tail_quality@{name}" for name in thresholds],
    }  # fmt: skip


def evaluate(rules, summary, undecided="fail"):
    of_rounds = summary is TIMED or [*summary] == ["latency_ms"]
    shape = LoadSummary if "served" in summary else TailSummary if of_rounds else PAIR[0]
    return outcomes.evaluate(rules, summary, undecided, shape)


def checked(rule):
    """The rule as it is before a run: of a pair, or of rounds with a board that is called 8bit."""
    pair = rule.strip().startswith(("flip", "delta", "deploy.top1"))
    (found,) = check([parse(rule)], *(PAIR if pair else timed(TailSummary, STACKS)))
    return found


STACKS = ["train", "deploy", "8bit"]


def fails(rule, summary=SUMMARY):
    (outcome,) = evaluate([parse(rule)], summary)["rules"]
    return outcome["failed"]


@pytest.mark.parametrize(
    ("rule", "failed"),
    [
        ("flip_rate > 1%", True),
        ("flip_rate > 3%", False),
        ("flip_rate >= 3%", True),
        ("flips.rate > 2.9%", True),
        ("flip_rate>5%", False),
        ("delta.top1 < -0.5%", True),
        ("delta.top1 < -2%", False),
        ("delta.top1.ci95.0 < -1.5 %", True),
        ("delta.top1.low < -1.5 points", True),
        ("delta.top1.high < 0 points", False),
        ("delta.top1 < -1 point", False),
        ("deploy.top1 < 79%", False),
        ("deploy.top1 <= 79%", True),
        ("train.metric.top1 == 80 %", True),
        ("train.top1 != 80%", False),
        ("flips.right_to_wrong > 12", False),
        ("flips.right_to_wrong > 1e1", True),
        ("flips.samples_for_tenth_point > 100000", False),
        ("deploy.latency.p90 > 20ms", True),
        ("deploy.latency.infer.p90 > 12499us", True),
        ("latency_ms.deploy.total.p90 > 0.022 s", False),
    ],
)
def test_a_rule_fails_where_its_condition_holds(rule, failed):
    assert fails(rule) is failed


@pytest.mark.parametrize(
    ("rule", "failed"),
    [
        ("deploy.latency.p50 > 4ms", False),
        ("deploy.latency.p50 >= 4000us", True),
        ("deploy.latency.mean > 0.0049s", True),
        ("deploy.latency.max > 31ms", False),
        ("ort-int8_2.latency.p99 > 20ms", True),
        ("ort-int8_2.latency.infer.p90 > 12.5ms", False),
        ("8bit.latency.p50 > 2ms", True),
        ("percentiles.deploy.p50.ms > 3999us", True),
        ("percentiles.deploy.p50.ci95.1 > 4.4ms", True),
        ("deploy.tail_quality@99 < 70%", True),
        ("deploy.tail_quality@99 < 69%", False),
        ("ort-int8_2.tail_quality@99 < 70%", False),
        ("deploy.tail_quality@12ms < 51%", True),
        ("deploy.tail_quality@12ms < 50%", False),
        ("deploy.tail_quality@12.5ms < 51%", False),
        ("tail.deploy.tail_quality@12.5ms <= 55%", True),
        ("deploy.quality < 75%", False),
        ("ort-int8_2.quality < 75%", True),
        ("ratio.deploy.value > 1.2", True),
        ("ratio.deploy.ci95.1 > 1.4", False),
        ("spread.deploy.range > 10%", True),
    ],
)
def test_rules_of_the_timed_jobs(rule, failed):
    check([parse(rule)], *timed(TailSummary, ["deploy", "ort-int8_2", "8bit"]))
    assert fails(rule, TIMED) is failed


def test_a_rule_on_a_load():
    check([parse("deploy.qps < 150")], *timed(LoadSummary, ["deploy"]))
    assert fails("deploy.qps < 150", {"served": {"deploy": {"qps": 140.0}}})


@pytest.mark.parametrize(
    ("rule", "reason"),
    [
        ("deploy.latency.p99 > 20ms", "400 latencies cannot carry p99; it needs 262 more"),
        ("deploy.latency.p99 < 20ms", "400 latencies cannot carry p99; it needs 262 more"),
        ("deploy.tail_quality@95 < 70%", "100 latencies cannot carry p95; it needs 30 more"),
        ("deploy.latency.p99.9 > 20ms", "latency_ms.deploy.total.p99.9 has no value in this run"),
        ("deploy.latency.color.p50 > 1ms", "this run has no deploy.latency.color.p50"),
    ],
)
def test_a_figure_that_could_not_be_had_fails_whatever_the_rule(rule, reason):
    (got,) = evaluate([parse(rule)], TIMED)["rules"]

    assert (got["failed"], got["value"], got["reason"]) == (True, None, reason)


@pytest.mark.parametrize(
    ("rule", "unit"),
    [
        ("deploy.latency.p50 > 1s", "ms"),
        ("percentiles.deploy.p50.ms > 1ms", "ms"),
        ("deploy.tail_quality@12ms < 50%", "share"),
        ("deploy.quality < 50%", "share"),
        ("ratio.deploy.value > 2", "ratio"),
        ("nothing > 2", ""),
    ],
)
def test_the_unit_of_a_figure_is_told(rule, unit):
    (got,) = evaluate([parse(rule)], TIMED)["rules"]

    assert got["unit"] == unit


def test_parts_of_a_rule():
    rule = parse(" delta.top1 < -0.5% ")

    assert rule.text == "delta.top1 < -0.5%"
    assert (rule.name, rule.op, rule.limit) == ("delta.top1", "<", -0.005)
    assert checked(rule.text).name == "delta.top1.value"


@pytest.mark.parametrize(
    ("rule", "limit"),
    [("flip_rate > 0.1%", 0.001), ("deploy.latency.p50 > 300us", 0.3), ("flip_rate > 7%", 0.07)],
)
def test_units_do_not_round(rule, limit):
    assert parse(rule).limit == limit


@pytest.mark.parametrize(
    "rule", ["deploy.latency.p90 > 5", "percentiles.deploy.p50.ms >= 0.5", "train.latency.mean < 3"]
)
def test_a_time_without_a_unit_is_refused(rule):
    with pytest.raises(UserError, match=r"compares a time with a bare number; write [\d.]+ms, or"):
        checked(rule)
    assert checked(f"{rule}s").limit == 1000 * float(rule.split()[-1])
    assert checked("deploy.latency.p90 > 0").limit == 0


def test_one_failed_rule_fails_the_gate_and_each_is_told():
    rules = "flip_rate > 1%", "delta.top1 < -2%", "flips.count > 99"
    got = evaluate([*map(parse, rules)], SUMMARY)

    assert not got.passed
    assert [(one.rule, one.value, one.limit, one.unit, one.failed) for one in got.rules] == [
        (rules[0], 0.03, 0.01, Unit.SHARE, True),
        (rules[1], -0.01, -0.02, Unit.POINTS, False),
        (rules[2], 30, 99.0, Unit.COUNT, False),
    ]
    assert {(one.reason, one.undecided, one.judged) for one in got.rules} == {(None, False, True)}


def test_an_outcome_of_an_older_file_is_read_as_a_share():
    """They called shares and points fractions alike."""
    told = {"rule": "flip_rate > 1%", "value": 0.03, "limit": 0.01, "failed": True, "reason": None}

    assert RuleOutcome(**told, unit="fraction").unit is Unit.SHARE


def test_no_rule_passes():
    assert evaluate([], SUMMARY) == {"passed": True, "rules": []}


@pytest.mark.parametrize(
    ("rule", "value", "reason"),
    [
        ("delta.top1 < -1%", {"delta": {"top1": None}}, "has no value in this run"),
        ("flip_rate > 1%", {"flips": {"rate": float("nan")}}, "is nan, not a finite number"),
        ("flip_rate > 1%", {"flips": {"rate": float("inf")}}, "is inf, not a finite number"),
        ("flip_rate > 1%", {"flips": {"rate": "0.0"}}, "is '0.0', not a number"),
        ("gate.passed == 0", {"gate": {"passed": True}}, "is True, not a number"),
        ("flips > 1", {"flips": {"rate": 0.0, "count": 0}}, "name one of: flips.rate, flips.count"),
    ],
)
def test_what_cannot_be_judged_fails_and_says_why(rule, value, reason):
    got = evaluate([parse(rule)], value)

    assert (got["passed"], got["rules"][0]["failed"]) == (False, True)
    assert got["rules"][0]["value"] is None
    assert reason in got["rules"][0]["reason"]
    json.dumps(got.model_dump(), allow_nan=False)


@pytest.mark.parametrize(
    ("rule", "near"),
    [
        ("fliprate > 1%", "flip_rate"),
        ("flips.rigth_to_wrong > 3", "flips.right_to_wrong"),
        ("deploy.latency.p98 > 20ms", "deploy.latency.p9"),
        ("delta.top5.value < -1%", "delta.top1"),
        ("delta.top1.ci95.2 < -1%", "delta.top1.high"),
        ("zzz > 1", "see summary.json"),
    ],
)
def test_an_unknown_figure_names_the_nearest(rule, near):
    with pytest.raises(UserError, match="does not have") as caught:
        check([parse(rule)], *PAIR)

    assert near in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("rule", "near"),
    [
        ("deploy.latency.p98 > 20ms", "deploy.latency.p99"),
        ("dploy.latency.p99 > 20ms", "deploy.latency.p99"),
        ("ort-int8_2.latency.inver.p90 > 20ms", "ort-int8_2.latency.infer.p90"),
        ("deploy.tail_quality@13ms < 70%", "deploy.tail_quality@12ms"),
        ("deploy.tail_quality@p99 < 70%", "deploy.tail_quality@99"),
        ("deploy.tail_quality < 70%", "deploy.tail_quality@"),
        ("train.tail_quality@99 < 70%", ".tail_quality@99"),
        ("ratio.train.value > 1.1", "ratio.deploy"),
    ],
)
def test_an_unknown_figure_of_a_timed_job_names_the_nearest(rule, near):
    with pytest.raises(UserError, match="does not have") as caught:
        check([parse(rule)], *timed(TailSummary, ["deploy", "ort-int8_2"]))

    assert near in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "rule",
    [
        "",
        "flip_rate",
        "flip_rate > ",
        "> 1%",
        "flip_rate => 1%",
        "flip_rate = 1%",
        "flip_rate > 1 percent",
        "flip_rate > nan",
        "1% > flip_rate",
        "flip_rate > 1% and flips.count > 3",
        "flip_rate > 1,5%",
    ],
)
def test_bad_syntax_shows_an_example(rule):
    with pytest.raises(UserError, match="for example 'flip_rate > 1%'"):
        parse(rule)


@pytest.mark.parametrize(
    ("rule", "says"),
    [
        ("flip_rate > 1", "write 1% or 100%"),
        ("deploy.top1 < 75", "write 75% or 7500%"),
        ("flip_rate > 20ms", "flips.rate is not a time"),
        ("deploy.latency.p90 > 5%", "is a time: use us, ms or s"),
        ("flips.count > 1e999", "too large"),
        ("deploy.latency.infer.p90 > 5%", "is a time: use us, ms or s"),
        ("8bit.latency.mean > 5%", "is a time: use us, ms or s"),
        ("deploy.tail_quality@12ms < 70ms", "is not a time"),
        ("deploy.tail_quality@99 < 70", "write 70% or 7000%"),
        ("deploy.quality < 70", "write 70% or 7000%"),
    ],
)
def test_a_rule_that_cannot_mean_what_it_says_is_refused(rule, says):
    with pytest.raises(UserError, match=says):
        checked(rule)


@given(st.text(max_size=40))
def test_any_text_is_a_rule_or_a_user_error(text):
    try:
        rule = parse(text)
    except UserError:
        return
    assert rule.op in text


def test_every_number_of_a_summary_can_be_named():
    """Of dictionaries by the names that a job gives, of lists only where their length is fixed."""
    shape = pair_summary(SegmentationFlips)
    names = {"metric": ["mIoU"], "delta": ["mIoU"], "class": ["cat", "a.b c"], "stage": ["infer"]}

    known = {one.path for one in figures(shape, names)}

    assert {
        "samples", "seconds", "deploy.metric.mIoU", "delta.mIoU.ci95.0", "flips.right_to_wrong",
        "flips.class_rates.a.b c", "latency_ms.train.infer.p99.9", "controls.self.flips",
    } <= known  # fmt: skip
    assert not {name for name in known if name.startswith(("axes", "worst_flips", "gate", "task"))}
    assert not {"delta.mIoU.ci95.2", "latency_ms.train.total.p50", "deploy.metric.top1"} & known


def test_what_a_task_counts_can_be_named_without_a_type_of_its_own():
    names = {"flips": ["late", "early"]}

    known = {one.path: one.about.unit for one in figures(PairSummary, names)}
    assert {"flips.count", "flips.late", "flips.early"} <= set(known)
    assert known["flips.late"] is Unit.COUNT


class NearestFlips(Flips):
    """Of a task that counts nothing but the three best."""

    top3_agreement: Share | None


def test_a_share_of_a_task_is_a_share_whatever_its_name():
    shape = pair_summary(NearestFlips)

    (rule,) = check([parse("flips.top3_agreement < 99%")], shape, {})
    assert rule.limit == 0.99
    with pytest.raises(UserError, match="write 99% or 9900%"):
        check([parse("flips.top3_agreement < 99")], shape, {})


def test_a_group_of_figures_is_refused_before_the_run():
    with pytest.raises(UserError, match=r"flips is not one number; name one of: flips\.count"):
        check([parse("flips > 1")], *PAIR)


def test_a_figure_of_a_run_is_found_as_it_is_in_the_file():
    found = LatencySummary.model_fields["ratio"]

    assert found.description == "of every stack but the first"
    assert "ratio.deploy.ci95.1" in by_name(figures(*timed(LatencySummary, ["deploy"])))


@pytest.mark.parametrize(
    ("rule", "chance"),
    [
        ("delta.top1 < -0.5%", True),
        ("delta.top1 < -3%", False),
        ("delta.top1.low < -0.5%", None),
        ("flip_rate > 1%", None),
    ],
)
def test_a_limit_inside_the_interval_may_be_chance(rule, chance):
    (outcome,) = evaluate([parse(rule)], SUMMARY)["rules"]

    assert outcome["chance"] is chance


def test_a_figure_that_the_samples_do_not_give_is_undecided():
    rules = [parse("deploy.latency.p99 > 20ms"), parse("deploy.latency.p50 > 20ms")]

    strict, lenient = (evaluate(rules, TIMED, how) for how in ("fail", "pass"))

    assert [one["undecided"] for one in strict["rules"]] == [True, False]
    assert not strict["passed"] and lenient["passed"]
    assert lenient["rules"][0]["failed"] is False


def test_a_figure_that_the_run_lacks_fails_even_where_undecided_passes():
    found = evaluate([parse("deploy.latency.color.p50 > 1ms")], TIMED, "pass")

    assert not found["passed"]


@pytest.mark.parametrize(
    ("summary", "shape", "some"),
    [
        (SUMMARY, PAIR[0], {"flip_rate", "delta.top1.high", "deploy.top1", "deploy.latency.p90"}),
        (TIMED, TailSummary, {"deploy.latency.p99.9", "deploy.tail_quality@12.5ms"}),
    ],
)
def test_every_listed_name_is_a_rule_on_that_figure(summary, shape, some):
    listed = {one.names[0]: one for one in figures(shape, value=summary)}

    assert some <= {*listed}
    for name, one in listed.items():
        (outcome,) = evaluate([parse(f"{name} > 1")], summary)["rules"]
        assert outcome["value"] == one.value, name


@pytest.mark.parametrize(
    ("rule", "failed"),
    [
        ("deploy.latency.p50 > 1.1 * train.latency.p50", True),
        ("deploy.latency.p50 >= 1.2 * train.latency.p50", False),
        ("deploy.latency.p50 < 1 * train.latency.p90", True),
    ],
)
def test_a_limit_may_be_a_multiple_of_another_figure(rule, failed):
    """Deploy 22.5 ms against 20 and 30 ms of train."""
    latency = {"train": {"total": {"p50": 20.0, "p90": 30.0}}, "deploy": {"total": {"p50": 22.5}}}
    (outcome,) = evaluate([parse(rule)], {"latency_ms": latency})["rules"]
    assert outcome["failed"] is failed
    assert outcome["value"] == 22.5
    assert outcome["limit"] == float(rule.split(" * ")[0].split()[-1]) * (
        30 if "p90" in rule else 20
    )


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ("deploy.latency.p50 > 1.1 * train.quality", "which has another unit"),
        ("deploy.latency.p50 > train.latency.p50", "cannot read"),
        ("deploy.latency.p50 > 1.1 *", "cannot read"),
    ],
)
def test_a_multiple_of_something_else_is_refused(rule, message):
    with pytest.raises(UserError, match=message):
        checked(rule)


def test_a_multiple_of_a_figure_that_is_not_there_fails():
    rule = parse("deploy.latency.p50 > 1.1 * train.latency.p50")
    (outcome,) = evaluate([rule], {"latency_ms": {"deploy": {"total": {"p50": 1.0}}}})["rules"]
    assert outcome["failed"]
    assert outcome["reason"] == "this run has no train.latency.p50"
