"""Robustness runs that drop a stack under a condition: what is dropped, when, and what is left."""

import csv
import io
from collections import Counter

import pyarrow.parquet as pq
import pytest
import yaml
from races import killed_and_resumed

from simulator import cli, robustness
from simulator.errors import UserError
from simulator.experiments.search.questions import WorstOption
from simulator.robustness.experiment import Robustness
from simulator.tasks.settings import Network
from simulator.tasks.task import TASKS

SUITE = {
    "schema": 1, "name": "mine", "summary": "a link and a memory",
    "conditions": {"digital": {"jpeg": ["jpeg:90", "jpeg:60"]}, "faults": {"low": ["flip:2"]}},
    "left_out_of_means": ["low"],
}  # fmt: skip
TEXTS = ("clean", "jpeg:90", "jpeg:60", "flip:2")
PAIR = {"train": "pillow_fp32", "deploy": "pillow_fp32",
        "overrides": ["deploy.color.order=bgr"]}  # fmt: skip


@pytest.fixture
def suite(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text(yaml.safe_dump(SUITE, sort_keys=False))
    return str(path)


@pytest.fixture
def raced(suite, card, ninety, cache, tmp_path):
    def run(question, name="runs", **options):
        given = {"models": [card], "data": ninety, "out": tmp_path / name} | PAIR | options
        (result,) = robustness(suite, until_decided=question, **given)
        return result

    return run


def test_every_cell_fails_after_the_first_look(raced):
    """Two thirds of BGR's answers change, under each condition: 30 images decide at 5 % / 4."""
    result = raced("gate", fail_on=["flip_rate > 2%"])
    summary = result.summary
    rows = pq.read_table(result.folder / "records.parquet").to_pylist()

    cells = [f"deploy/{text}" for text in TEXTS]
    assert [(one.option, one.samples) for one in summary.early.dropped] == [(c, 30) for c in cells]
    assert list(summary.cells) == cells
    counts = Counter((row["side"], row["condition"]) for row in rows)
    texts = [None, *TEXTS[1:]]
    assert counts == {(side, text): 30 for side in ("train", "deploy") for text in texts}
    for text, cell in zip(texts, cells, strict=True):
        own = [r for r in rows if (r["side"], r["condition"]) == ("deploy", text)]
        found = summary.cells[cell]
        assert (found.samples, found.flips) == (30, sum(row["changed"] for row in own))
    assert [rule.rule for rule in summary.gate.rules] == [f"{c}: flip_rate > 2%" for c in cells]
    assert not result.passed and summary.samples == 30
    assert summary.interaction == {} and summary.stacks["deploy"].nr == {"jpeg": None, "low": None}
    assert any("dropped as soon as" in str(one) for one in summary.warnings)


def test_a_cell_that_is_not_decided_runs_on_all_images(raced):
    """Nothing changed in 90 images does not say "at most 2 %" at 5 % / 4: see test_race."""
    summary = raced("gate", fail_on=["flip_rate > 2%"], overrides=()).summary

    assert (summary.early.decided, summary.early.dropped, summary.early.runs) == (False, [], 360)
    assert {one.samples for one in summary.cells.values()} == {90}
    assert all(rule.undecided for rule in summary.gate.rules)


def test_only_the_stack_that_matters_is_run_on(suite, card, ninety, cache, tmp_path):
    """Of two other stacks the one that changes nothing is gone under every condition."""
    swapped = tmp_path / "swapped.yaml"
    own = {"name": "swapped", "summary": "red is blue", "color": {"order": "bgr"}}
    swapped.write_text(yaml.safe_dump({"schema": 1, "extends": "pillow_fp32", **own}))
    (result,) = robustness(
        suite, ["pillow_fp32", "opencv_fp32", str(swapped)], models=[card], data=ninety,
        out=tmp_path / "o", until_decided="worst-flips", limit=60,
    )  # fmt: skip
    summary = result.summary

    gone = {one.option for one in summary.early.dropped}
    assert gone == {f"opencv_fp32/{text}" for text in TEXTS}
    assert set(summary.early.answer) == {f"swapped/{text}" for text in TEXTS}
    assert summary.cells["opencv_fp32/clean"].samples == 30
    assert summary.cells["swapped/clean"].samples == 60
    assert "One of 4 changes most answers" in summary.verdict.lost[0]


def test_a_condition_that_hurts_both_stacks_alike_is_not_the_worst():
    """What counts is how much more is lost than by the first stack under the same condition."""
    against = {"a": "train/a", "b": "train/b"}
    one = WorstOption("worst-drop", against, TASKS["classification"](None, Network()))
    right, wrong = {"correct": True}, {"correct": False}
    for _ in range(100):
        one.add({"a": (wrong, wrong), "b": (right, wrong)})
    one.judge()

    assert one.answer() == ["b"] and one.dropped[0].option == "a"
    assert "it loses less than b, by 100.00 points" in one.dropped[0].why


@pytest.mark.parametrize(
    "options",
    [
        (),
        ("--until-decided", "gate", "--fail-on", "flip_rate > 60%"),
        ("--until-decided", "worst-drop"),
    ],
    ids=["all of it", "gate", "worst-drop"],
)
def test_killed_and_resumed_it_is_the_same(suite, card, ninety, cache, tmp_path, options):
    killed_and_resumed(
        tmp_path, "robustness", "--suite", suite, "--train", "pillow_fp32", "--deploy",
        "pillow_fp32", "--set", "deploy.color.order=bgr", "--model", card, "--data", ninety,
        *options, below="colors",
    )  # fmt: skip


def test_screen_tables_and_report_show_how_many_images(raced, capsys, monkeypatch):
    result = raced("gate", fail_on=["flip_rate > 2%"])
    rows = [*csv.reader(io.StringIO(Robustness().printed([result.summary], "csv", "conditions")))]

    assert rows[0][-1] == "n" and {row[-1] for row in rows[1:]} == {"30"} and len(rows) == 5
    assert "deploy/jpeg:60" in Robustness().printed([result.summary], "latex", "robustmq")
    page = result.report.read_text()
    assert "deploy/clean: dropped after 30 images: it fails: flip_rate &gt; 2%" in page
    monkeypatch.setenv("COLUMNS", "80")
    assert cli.main(["gate", str(result.folder), "--list"]) == cli.PASS
    assert "dropped as soon as" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"until_decided": "gate"}, "needs a rule to decide"),
        ({"until_decided": "gate", "fail_on": ["deploy.NCI.jpeg > 1%"]}, "no mean over samples"),
        ({"until_decided": "worst"}, "unknown question 'worst'"),
        ({"until_decided": "worst-drop", "fail_on": ["flip_rate > 2%"]}, "leave out --fail-on"),
        ({"until_decided": "worst-drop", "train": None, "deploy": None, "overrides": (),
          "profiles": ["pillow_fp32"]}, "give two or more"),
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_refused(suite, card, ninety, cache, tmp_path, options, message):
    given = {**PAIR, "models": [card], "data": ninety, "out": tmp_path / "o"} | options
    with pytest.raises(UserError, match=message) as refused:
        robustness(suite, **given)

    assert "\n" not in str(refused.value) and not (tmp_path / "o").exists()
