"""Sweeps and worst cases that drop options early: what is dropped, and when."""

import csv
import io
from collections import Counter

import pyarrow.parquet as pq
import pytest
import tiny
import tiny_tasks
from made_suite import BGR, BOX, NEAREST, written
from races import killed_and_resumed, records, summary
from stopping import StopsAt

from simulator import cli, sweep, worst
from simulator.checkpoints.compare import checkpoints
from simulator.errors import DataError, UserError
from simulator.experiments.search.stopping import rounds
from simulator.experiments.sweep.experiment import Sweep
from simulator.experiments.worst.run import ways_to

RULE = ["flip_rate > 2%"]


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    """The suite, a card and 30 images of each color."""
    folder = tmp_path_factory.mktemp("inputs")
    return written(folder), tiny.card(folder / "model"), tiny.data(folder / "ninety", each=30)


def raced(inputs, out, question, **options):
    suite, card, data = inputs
    given = {"models": [card], "data": data} | options
    (result,) = sweep(suite, out=out, until_decided=question, **given)
    return result


@pytest.fixture(scope="module")
def flips(inputs, tmp_path_factory):
    """The finished run that asks which option changes most answers."""
    return raced(inputs, tmp_path_factory.mktemp("flips") / "runs", "worst-flips")


@pytest.fixture(scope="module")
def gated(inputs, tmp_path_factory):
    """The finished run that judges each option by a rule."""
    return raced(inputs, tmp_path_factory.mktemp("gated") / "runs", "gate", fail_on=RULE)


def test_rounds_on_paper():
    """30 first, then 8 more or a tenth more, rounded up: 86 is 78 + 8, 95 is 86 times 1.1."""
    ends = [stop for _, stop in rounds(100)]

    assert ends == [30, 38, 46, 54, 62, 70, 78, 86, 95, 100]
    assert [*rounds(7)] == [(0, 7)]
    assert [*rounds(0)] == []


def test_the_worst_is_found_and_the_rest_is_not_run(flips):
    """Two thirds of BGR's answers change and none of the others': 30 images are enough."""
    result = flips
    early, rows = result.summary.early, pq.read_table(result.folder / "records.parquet")

    assert (early.answer, early.decided, early.samples, early.of) == ([BGR], True, 30, 90)
    assert [(one.option, one.samples) for one in early.dropped] == [(NEAREST, 30), (BOX, 30)]
    assert all(f"changes fewer answers than {BGR}" in one.why for one in early.dropped)
    assert (early.runs, early.all_runs) == (90, 270)
    assert rows.num_rows == 30 * 4
    assert result.summary.left_out == {
        "combined/combined": "a combination of options; the question is of one"
    }
    assert result.summary.verdict.lost[0] == f"{BGR} changes most answers."
    assert "Answered after 30 of 90 images, with 33% of the work" in result.summary.verdict.lost[1]


def test_the_worst_by_its_metric(inputs, tmp_path):
    early = raced(inputs, tmp_path / "runs", "worst-drop").summary.early

    assert (early.answer, early.samples) == ([BGR], 30)


def test_options_have_figures_of_their_own_images(gated):
    """Nothing changed in 90 images does not yet say "at most 2 %": only 0.98^n below 0.05 / 4 does,
    beyond 217 images. BGR and the combination fail after the first look."""
    result, summary, early = gated, gated.summary, gated.summary.early
    rows = pq.read_table(result.folder / "records.parquet").to_pylist()
    counts = Counter(row["side"] for row in rows)

    assert counts == {"train": 90, BGR: 30, "combined/combined": 30, NEAREST: 90, BOX: 90}
    assert [(one.option, one.samples, one.why) for one in early.dropped] == [
        (BGR, 30, "it fails: flip_rate > 2%"),
        ("combined/combined", 30, "it fails: flip_rate > 2%"),
    ]
    assert (early.decided, early.answer, early.runs) == (False, [], 240)
    changed = sum(row["changed"] for row in rows if row["side"] == BGR)
    bgr = summary.columns["order"].options["bgr"]
    assert (bgr.samples, bgr.flips, bgr.units) == (30, changed, 30)
    assert summary.columns["resize"].options["box"].samples == 90
    assert (summary.samples, summary.systematic.std) == (90, None)
    assert any("dropped as soon as" in str(one) for one in summary.warnings)
    outcomes = {one.rule: (one.failed, one.undecided) for one in summary.gate.rules}
    assert outcomes == {
        f"{BGR}: flip_rate > 2%": (True, False),
        "combined/combined: flip_rate > 2%": (True, False),
        f"{NEAREST}: flip_rate > 2%": (True, True),
        f"{BOX}: flip_rate > 2%": (True, True),
    }


def test_what_the_samples_do_not_decide_may_pass(inputs, tmp_path):
    more = {"fail_on": RULE, "undecided": "pass"}
    summary = raced(inputs, tmp_path / "runs", "gate", **more).summary

    failed = {one.rule.partition(":")[0] for one in summary.gate.rules if one.failed}
    assert failed == {BGR, "combined/combined"}


@pytest.mark.parametrize(
    ("question", "stop"), [("worst-flips", 1), *(("gate", stop) for stop in (1, 30, 33, 64))]
)
def test_resumed_it_is_the_same(inputs, flips, gated, tmp_path, question, stop):
    whole, rules = (gated, {"fail_on": RULE}) if question == "gate" else (flips, {})
    assert stop < whole.summary.early.samples
    with pytest.raises(KeyboardInterrupt):
        raced(inputs, tmp_path / "stopped", question, progress=StopsAt(stop), **rules)
    folder = tmp_path / "stopped" / "colors"

    assert cli.main(["resume", str(folder)]) == (1 if rules else 0)

    assert records(folder) == records(whole.folder)
    assert summary(folder) == summary(whole.folder)


def test_where_no_image_of_the_first_round_can_be_read_it_ends_there(inputs, ninety, tmp_path):
    """Resumed after that round too."""
    for file in ninety.rglob("*.jpg"):
        file.write_bytes(b"no JPEG")
    stopped = tmp_path / "stopped"
    with pytest.raises(KeyboardInterrupt):
        raced(inputs, stopped, "worst-flips", data=ninety, progress=StopsAt(30))

    for out, resume in ((tmp_path / "runs", False), (stopped / "colors", True)):
        with pytest.raises(DataError, match="none of 30 images could go through"):
            raced(inputs, out, "worst-flips", data=ninety, resume=resume)


def test_on_the_command_line(inputs, tmp_path, capsys):
    suite, card, ninety = map(str, inputs)
    asked = ["sweep", "--suite", suite, "--model", card, "--data", ninety]
    rule = ["--fail-on", "flip_rate > 40%"]

    code = cli.main(
        [*asked, *rule, "--until-decided", "--out", str(tmp_path / "a"), "--limit", "60"]
    )

    printed = capsys.readouterr().out
    assert code == cli.GATE_FAILED
    assert printed.startswith("NOT OK: 2 options pass: resize/nearest, resize/box.")
    assert "order/bgr: dropped after 30 images: it fails: flip_rate > 40%" in " ".join(
        printed.split()
    )
    assert cli.main([*asked, *rule]) == cli.USER_ERROR
    assert "--fail-on judges each option of a sweep with --until-decided" in capsys.readouterr().err


def test_tables_and_the_report_show_how_many_images(gated):
    rows = [*csv.DictReader(io.StringIO(Sweep().printed([gated.summary], "csv", None)))]
    assert {row["option"]: row["samples"] for row in rows} == {
        "train": "90", "bgr": "30", "nearest": "90", "box": "90", "combined": "30",
    }  # fmt: skip
    head = Sweep().printed([gated.summary], "markdown", "options").splitlines()[0]
    assert head.rstrip("| ").endswith("n")
    page = gated.report.read_text()
    assert "order/bgr: dropped after 30 images: it fails: flip_rate &gt; 2%" in page


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"fail_on": RULE}, "with --until-decided"),
        ({"question": "gate"}, "needs a rule to decide"),
        ({"question": "worst-flips", "fail_on": RULE}, "leave out --fail-on"),
        ({"question": "worst"}, "unknown question 'worst'"),
        ({"question": "gate", "fail_on": ["seconds > 2s"]}, "no mean over samples"),
    ],
)
def test_what_makes_no_sense_is_refused(inputs, tmp_path, options, message):
    with pytest.raises(UserError, match=message):
        raced(inputs, tmp_path / "runs", **({"question": None} | options))

    assert not (tmp_path / "runs").exists()


def test_boxes_are_no_means_over_images(inputs, tmp_path):
    model, data = tiny_tasks.card(tmp_path / "model"), tiny_tasks.data(tmp_path / "data")

    with pytest.raises(UserError, match="no option can be dropped early"):
        raced(inputs, tmp_path / "o", "worst-drop", models=[model], data=data)


def test_models_are_compared_by_whole_sweeps_only(flips, tmp_path):
    with pytest.raises(UserError, match="dropped early"):
        checkpoints([flips.folder, flips.folder], out=tmp_path / "compared")


def test_ways_on_paper():
    """Columns of 2, 3 and 1 options: 6 alone, 2 * 3 + 2 * 1 + 3 * 1 pairs, 6 of all three."""
    assert [ways_to(taken, [2, 3, 1]) for taken in range(4)] == [1, 6, 11, 6]


def test_the_worst_case_drops_what_cannot_be_the_worst(inputs, tmp_path):
    """BGR is the worst of the first step after 30 images; what follows changes nothing more."""
    suite, card, data = inputs
    asked = {"model": card, "data": data}
    whole = worst(suite, **asked, out=tmp_path / "whole").summary
    result = worst(suite, **asked, out=tmp_path / "early", until_decided=True)
    first, second, every = result.summary.early

    assert result.summary.path[0].added == whole.path[0].added == BGR
    assert result.summary.path[0].samples == 30
    assert {one.option for one in first.dropped} == {NEAREST, BOX}
    assert (first.alpha, first.decided) == (pytest.approx(0.05 / 3), True)
    assert second.alpha == pytest.approx(0.05 / 3 / 3)
    assert (every.alpha, every.all_runs) == (pytest.approx(0.05 / 3), 5 * 90)
    assert {one.option for one in every.dropped} == {NEAREST, BOX}
    assert "of 3 steps" in result.summary.verdict.lost[1]
    assert any("dropped as soon as" in str(one) for one in result.summary.warnings)
    assert f"{BOX}: dropped after 30 images" in result.report.read_text()


@pytest.mark.parametrize(
    ("job", "words", "where"),
    [
        ("worst", (), {"folders": ("step-1", "step-2", "step-3")}),
        ("sweep", ("--under", "jpeg:60", "--fail-on", *RULE), {"below": "colors"}),
    ],
)
def test_killed_it_goes_on_alike(inputs, tmp_path, job, words, where):
    suite, card, data = inputs
    killed_and_resumed(
        tmp_path, job, "--suite", suite, "--model", card, "--data", data, "--until-decided",
        *words, **where,
    )  # fmt: skip
