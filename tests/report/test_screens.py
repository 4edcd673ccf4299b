"""What every command prints: the verdict first, nothing wider than 80 columns, axes in words."""

import re

import pytest
from command_lines import COMMANDS

from simulator import cli
from simulator.cli.experiment import show
from simulator.command.experiment import EXPERIMENTS
from simulator.experiments.job import Result
from simulator.report.verdict import line, verdict
from simulator.results.read import read_summary

PATHS = ("run: ", "report: ", "next: ", "stated, not verified: ")
"""How lines begin that hold a path or are one line for whoever searches them."""


@pytest.fixture
def screen(monkeypatch, capsys):
    """A function from a run folder to its summary, and to what its command prints."""

    def shown(folder):
        monkeypatch.setenv("COLUMNS", "80")
        summary = read_summary(folder)[1]
        show(EXPERIMENTS.of(summary.command), [Result(summary, folder)], as_json=False)
        return summary, capsys.readouterr().out

    return shown


def words(text):
    return " ".join(text.split())


def check(summary, text):
    assert words(text).startswith(line(summary.verdict))
    long = [one for one in text.splitlines() if len(one) > 80 and not one.startswith(PATHS)]
    assert not long


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_says_its_verdict_first_and_fits_80_columns(runs, screen, command):
    check(*screen(runs(command)[0]))


def test_only_what_differs_is_shown_and_the_rest_folds(runs, screen):
    """The two stacks differ in the order of colors, and in how they resize."""
    _, text = screen(runs("run")[0])
    shown = words(text.partition("What differs")[2].partition("flips")[0])

    assert "color train order rgb (not claimed) deploy order bgr and 1 equal option" in shown
    assert re.search(
        r"resize train pillow: interpolation bicubic, antialias on.* deploy opencv", shown
    )
    assert re.search(r"alone \d+ of 12 answers change", shown)


def test_a_delta_is_told_in_points(runs, capsys):
    folder, _ = runs("run")
    capsys.readouterr()

    code = cli.main(["gate", str(folder), "--fail-on", "delta.top1 < -0.5 points"])
    out = capsys.readouterr().out
    delta = read_summary(folder)[1].delta["top1"].value

    assert code == 1
    assert f"gate FAILED delta.top1 < -0.5 points: got {100 * delta:+.4g} points" in out
    cli.main(["gate", "--list", str(folder)])
    assert f"{100 * delta:+.4g} points" in capsys.readouterr().out


def test_stacks_are_ranked_at_the_deadline_that_was_given(runs, screen):
    summary, text = screen(runs("tail")[0])
    worst = {side: one.thresholds["9ms"].worst for side, one in summary.tail.items()}
    order = re.findall(r"(?m)^(train|deploy)   top-1", text)

    assert sorted(order) == ["deploy", "train"]
    assert worst[order[0]] >= worst[order[1]]
    told = verdict(summary).lost
    assert told[0].startswith("top-1 in the worst round at 9 ms: ")
    assert told[1].startswith("top-1 in the worst round at 12.5 ms: ")
