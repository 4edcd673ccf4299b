"""Runs that stop when their gate is decided."""

import io
import math
import shutil
from contextlib import redirect_stdout

import pytest
import tiny
from stopping import StopsAt

import simulator
from simulator import cli
from simulator.analysis.gate import parse
from simulator.analysis.outcomes import evaluate
from simulator.command.options import Progress
from simulator.errors import UserError
from simulator.experiments.job import Result
from simulator.experiments.search.gate import SequentialGate
from simulator.experiments.search.stopping import LEAST
from simulator.results.pair import PairSummary
from simulator.results.read import read_summary
from simulator.results.shared import STOPPED
from simulator.statistics.anytime import Evidence, Range
from simulator.tasks.settings import Network
from simulator.tasks.task import TASKS

SAMPLES = 42
PAIR = ("pillow_fp32", "opencv_fp32")
BGR = "deploy.color.order=bgr"


FAR, NEAR = "flip_rate > 40%", "flip_rate > 1%"
"""A limit that 30 samples without a flip exclude, and one that 42 do not."""


@pytest.fixture(scope="module")
def card(tmp_path_factory):
    return tiny.card(tmp_path_factory.mktemp("card") / "model")


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    """Forty-two images in three colors; no stack changes an answer."""
    return tiny.data(tmp_path_factory.mktemp("many") / "data", SAMPLES // 3)


def run(card, many, out, *rules, **more):
    return simulator.compare(
        *PAIR, model=card, data=many, out=out, quick=True, fail_on=rules, until_decided=True, **more
    )


@pytest.fixture(scope="module")
def early(card, many, tmp_path_factory):
    """A finished run that was decided early; what it printed."""
    folder = tmp_path_factory.mktemp("early") / "run"
    words = ["--train", PAIR[0], "--deploy", PAIR[1], "--model", card, "--data", many, "--quick",
             "--fail-on", FAR, "--until-decided", "--out", folder]  # fmt: skip
    with redirect_stdout(io.StringIO()) as said:
        assert cli.main([*map(str, words)]) == 0
    return Result(read_summary(folder)[1], folder), " ".join(said.getvalue().split())


def test_a_gate_that_no_sample_endangers_passes_early(early):
    result, said = early
    found, flips = result.summary.decided, result.summary.flips
    (rule,) = result.summary.gate.rules
    assert result.passed and found.decided
    assert result.summary.samples == found.samples == LEAST < found.of == SAMPLES
    assert rule.chance is False
    last = found.bounds[FAR][-1]
    assert (last.samples, last.value, last.low) == (LEAST, 0, 0) and last.high < 0.4
    assert "Decided after 30 of 42 images" in " ".join(result.summary.verdict.lost)
    assert "Decided after 30" in result.report.read_text() and "Decided after 30 of 42" in said
    low, high = flips.ci95
    assert (low, high) == tuple(Evidence(Range(0.0, 1.0), [0.0] * LEAST).interval(0.1))
    assert high < 0.4 and rule.ci95 == [low, high]
    assert f"0.00% (0.00% to {high:.2%} at any time, each end with 95 %)" in said
    assert "95 % interval" not in said.partition("Worst")[0].partition("top-5")[0]


def test_a_limit_too_near_is_undecided_after_all_samples_and_stays_so(card, many, tmp_path, capsys):
    """A gate later keeps what the run decided, though 0 % of all samples is below 1 %."""
    result = run(card, many, tmp_path / "run", NEAR)
    (rule,) = result.summary.gate.rules
    assert not result.summary.decided.decided and result.summary.samples == SAMPLES
    assert rule.undecided and not result.passed
    assert "42 samples leave it between 0.00 and" in rule.reason
    assert run(card, many, tmp_path / "two", NEAR, undecided="pass").passed

    folder = str(result.folder)
    capsys.readouterr()
    assert cli.main(["gate", folder, "--fail-on", "flip_rate>1%"]) == cli.GATE_FAILED
    out = " ".join(capsys.readouterr().out.split())
    assert f"gate undecided {NEAR}: 42 samples leave it between" in out
    assert cli.main(["gate", folder, "--fail-on", NEAR, "--undecided", "pass"]) == cli.PASS


def test_another_rule_later_gets_a_note(early, capsys):
    folder = str(early[0].folder)
    for rule, noted in ((FAR, False), ("flip_rate > 30%", True)):
        assert cli.main(["gate", folder, "--fail-on", rule]) == cli.PASS
        assert (f"note: {STOPPED}" in capsys.readouterr().out) is noted


def test_the_order_is_drawn_from_the_seed(early, card, many, tmp_path):
    def order(result):
        return [row["sample"] for row in result.records().to_pylist()]

    first = order(early[0])
    assert first == order(run(card, many, tmp_path / "two", FAR, seed=0))
    assert first != order(run(card, many, tmp_path / "three", FAR, seed=1))
    assert first != sorted(first)


class Late(Progress):
    """Is interrupted when the last sample that decides is kept, and before the summary."""

    def say(self, text):
        if text == "figures and pictures":
            raise KeyboardInterrupt


class Count(Progress):
    most = 0

    def advance(self, done, total):
        self.most = max(self.most, done)


@pytest.mark.parametrize("stops", [StopsAt(7), Late()], ids=["early", "after the decision"])
def test_a_run_that_is_resumed_ends_alike_and_runs_no_more(early, card, many, tmp_path, stops):
    whole, count = early[0], Count()
    with pytest.raises(KeyboardInterrupt):
        run(card, many, tmp_path / "half", FAR, progress=stops)
    resumed = run(card, many, tmp_path / "half", FAR, resume=True, progress=count)
    assert resumed.summary.decided == whole.summary.decided and count.most <= LEAST
    columns = [name for name in whole.records().column_names if name != "ns"]
    assert resumed.records().select(columns).equals(whole.records().select(columns))


@pytest.mark.parametrize(
    ("rules", "word"),
    [
        ((), "needs a rule"),
        (("flip_rate.low > 5%",), "no mean over samples"),
        (("deploy.latency.p90 > 5ms",), "no mean over samples"),
        (("flip_rate == 0",), "decided by the last sample"),
    ],
)
def test_rules_that_no_early_sample_decides_are_refused(card, many, tmp_path, rules, word):
    with pytest.raises(UserError, match=word) as refused:
        run(card, many, tmp_path / "run", *rules)
    assert "\n" not in str(refused.value)


def test_parts_of_samples_are_no_means():
    detection = TASKS["detection"]
    with pytest.raises(UserError, match="a sample has several objects"):
        SequentialGate([parse("flip_rate > 1%")], detection.__new__(detection))


def test_one_rule_that_fails_ends_it_and_all_must_pass():
    task = TASKS["classification"](None, Network())
    rules = [parse("flip_rate > 10%"), parse("delta.top1 < -50 points")]
    lost = SequentialGate(rules, task)
    right = {"correct": True, "top5": None, "changed": 0}
    for _ in range(LEAST):
        lost.add(right, {"correct": False, "top5": None, "changed": 1})
    assert lost.done
    kept = SequentialGate(rules, task)
    for _ in range(200):
        kept.add(right, right)
    found = kept.decided(500)
    assert found.decided and found.samples < 200 and found.of == 500


def test_two_rules_need_twice_the_capital():
    """Each at 2.5 %: by hand, the first sample at which the capital of both is at least 40."""
    task = TASKS["classification"](None, Network())
    same = {"correct": True, "top5": None, "changed": 0}

    def first(needed, *limits):
        found = Evidence(Range(0.0, 1.0))
        for samples in range(1, 2000):
            found.add(0)
            if samples >= LEAST and all(found.against(one)[1] >= needed for one in limits):
                return samples
        return None

    both = SequentialGate([parse("flip_rate > 5%"), parse("flip_rate > 6%")], task)
    while not both.done:
        both.add(same, same)
    ends = both.decided(9999).samples
    assert ends == first(math.log(40), 0.05, 0.06) > first(math.log(20), 0.05, 0.06) > LEAST


def test_a_gate_that_fails_stops_the_run(card, many, tmp_path):
    """Red and blue change places: two thirds of the answers."""
    result = run(card, many, tmp_path / "run", "flip_rate > 1%", overrides=[BGR])
    found = result.summary.decided
    assert not result.passed and found.decided
    assert result.summary.samples == found.samples == LEAST
    (rule,) = result.summary.gate.rules
    assert (rule.failed, rule.undecided, rule.chance) == (True, False, False)


def test_a_delta_of_images_without_labels_is_not_decided(card, many, tmp_path):
    """The answers are known, and whether they are right is not."""
    flat = tmp_path / "flat"
    flat.mkdir()
    for path in many.rglob("*.jpg"):
        shutil.copyfile(path, flat / path.name)
    result = run(card, flat, tmp_path / "run", "delta.top1 < -5 points")
    assert result.summary.samples == SAMPLES and not result.summary.decided.decided
    assert result.summary.gate.rules[0].undecided and not result.passed


def test_figures_are_those_at_the_decision_and_no_end_contradicts_it():
    """Every tenth answer changes and is lost; rules far from that are decided first."""
    task = TASKS["classification"](None, Network())
    rules = [parse("flip_rate > 60%"), parse("flip_rate > 12%"), parse("delta.top1 < -60 points")]
    decision = SequentialGate(rules, task)
    records = [
        ({"correct": True, "top5": None, "changed": 0}, {
            "correct": at % 10 > 0, "top5": None, "changed": int(at % 10 == 0)
        })
        for at in range(4000)
    ]  # fmt: skip
    for pair in records:
        decision.add(*pair)

    judged = decision.gate(evaluate(rules, {"flips": {"rate": 0.1}}, shape=PairSummary))

    assert decision.done or decision.compared == len(records)
    known = [one for one in judged.rules if not one.undecided]
    assert len(known) >= 2
    for one in known:
        low, high = one.ci95
        above = ">" in one.rule
        assert (high < one.limit or low > one.limit) and low <= one.value <= high
        assert one.failed == (low > one.limit if above else high < one.limit)
    first = next(one for one in judged.rules if one.rule == "flip_rate > 60%")
    assert first.value == 0.1  # 3 of 30, when it was decided
    train, deploy = zip(*records[: decision.compared], strict=True)
    ends = decision.bounded(train, deploy, task)
    for one in known:
        path = "flips.rate" if "flip" in one.rule else "delta.top1.value"
        assert ends[path][0] >= one.ci95[0] and ends[path][1] <= one.ci95[1]
    assert "delta.top5.value" not in ends
