"""The words and the tables of ``simulate faults``."""

import json

import pytest
import test_faults_hostile as hostile
import tiny

from simulator import cli
from simulator.faults.figures import further, severities
from simulator.tasks.task import TASKS


@pytest.mark.parametrize("name", ["classification", "detection", "segmentation"])
def test_every_figure_that_people_see_is_said_in_words(name):
    task = TASKS[name]

    assert set(task.Impact.shown) <= set(severities(task))
    assert 1 <= len(task.Impact.shown) <= 3
    for one in [*severities(task), *further(task)]:
        assert "_" not in task.Impact.words.get(one, one)
    assert not set(task.Impact.words) - {*severities(task), *further(task)}


def test_the_screen_says_them_and_the_summary_keeps_the_names(tmp_path, capsys):
    tiny.card(tmp_path)
    tiny.data(tmp_path / "data", 2)
    campaign = hostile.document(tmp_path, faults=60)
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
