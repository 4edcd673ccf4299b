"""The words and the tables of ``simulate faults``."""

import json

import campaigns
import pytest
import tiny

from simulator import cli
from simulator.faults.figures import further, severities
from simulator.report.verdict import verdict
from simulator.tasks.task import TASKS


@pytest.mark.parametrize("name", ["classification", "detection", "segmentation"])
def test_every_figure_that_people_see_is_said_in_words(name):
    task = TASKS[name]

    assert set(task.Impact.shown) <= set(severities(task))
    assert 1 <= len(task.Impact.shown) <= 3
    for one in [*severities(task), *further(task)]:
        assert "_" not in task.Impact.words.get(one, one)
    assert not set(task.Impact.words) - {*severities(task), *further(task)}


@pytest.mark.parametrize(
    ("counts", "cause"),
    [
        (
            {"30": 3, "7": 2},  # R's binom.test(3, 5): 0.1466 to 0.9473
            "Most of them hit bit 30: 3 of 5 (95 % interval 14.66% to 94.73%), no more than chance "
            "explains.",
        ),
        ({"30": 1, "29": 1, "7": 1}, None),
    ],
)
def test_most_is_more_than_half(tmp_path, counts, cause):
    tiny.card(tmp_path)
    tiny.data(tmp_path / "data", 2)
    # The weights' signs: some of these faults corrupt an answer.
    campaign = campaigns.document(tmp_path, faults=60, bits=[31, 30])
    summary = campaigns.run(tmp_path, campaign, tmp_path / "run").summary
    stack = summary.stacks["deploy"]
    group = stack.by_bit["30"]
    groups = {
        bit: group.model_copy(update={"sdc": group.sdc.model_copy(update={"count": count})})
        for bit, count in counts.items()
    }
    assert stack.worst
    changed = stack.model_copy(update={"by_bit": groups})

    assert verdict(summary.model_copy(update={"stacks": {"deploy": changed}})).cause == cause


def test_the_screen_says_them_and_the_summary_keeps_the_names(tmp_path, capsys):
    tiny.card(tmp_path)
    tiny.data(tmp_path / "data", 2)
    campaign = campaigns.document(tmp_path, faults=60)
    given = [
        "faults", "--campaign", campaign, "--profile", "pillow_fp32", "--model",
        str(tmp_path / "card.yaml"), "--data", str(tmp_path / "data"), "--out",
        str(tmp_path / "run"),
    ]  # fmt: skip
    assert cli.main(given) == 0
    said = capsys.readouterr().out
    assert "margin lost" in said
    assert "margin_loss" not in said
    assert "margin lost" in (tmp_path / "run" / "report.html").read_text()
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert set(summary["stacks"]["deploy"]["severity"]) == {"margin_loss", "score_loss"}
