"""The next step of a run is a command that runs as printed; and no chance is sold as cause."""

import shlex

import pytest
import tiny
import yaml
from command_lines import BGR, PAIR, REPAIRS, SUITE

from simulator import cli, worst
from simulator.data import example
from simulator.experiments.compare import report as pairs
from simulator.experiments.sweep import report as sweep_report
from simulator.experiments.worst import report as worst_report
from simulator.report.command import PAIR as PAIR_ARGUMENTS
from simulator.report.command import Asked
from simulator.results.read import read_summary


@pytest.fixture
def start(card, cache, tmp_path, capsys, monkeypatch):
    """A function that runs a command; it returns its summary and the next command."""
    monkeypatch.chdir(tmp_path)
    for name, document in (("suite", SUITE), ("repairs", REPAIRS)):
        (tmp_path / f"{name}.yaml").write_text(yaml.safe_dump(document))
    inputs = ["--model", str(card), "--data", str(tiny.data(tmp_path / "data", each=4))]

    def run(*words, out="out"):
        code = cli.main([*words, *inputs, "--out", str(tmp_path / out)])
        lines = [one for one in capsys.readouterr().out.splitlines() if one.startswith("next: ")]
        assert code in (0, 1)
        (line,) = lines
        return tmp_path / out, shlex.split(line.removeprefix("next: "))

    return run


def ran(words, capsys, out):
    """What a printed command prints."""
    assert words[0] == "simulate"
    assert cli.main([*words[1:], "--out", str(out)]) in (0, 1)
    return " ".join(capsys.readouterr().out.split())


def test_a_run_is_explained(start, tmp_path, capsys):
    _, words = start(*PAIR, *BGR, "--limit", "6", "--seed", "3")

    assert words[1] == "explain" and "color has most of it" in ran(words, capsys, tmp_path / "then")
    first, then = (read_summary(tmp_path / name)[1] for name in ("out", "then"))
    assert then["samples"] == 6
    assert then.blame["flip_rate"].total.value == pytest.approx(first["flips"]["rate"])


def test_a_sweep_goes_on_with_worst(start, tmp_path, capsys):
    _, words = start("sweep", "--suite", "suite.yaml")

    assert words[1:3] == ["worst", "--suite"]
    assert "Worst case of trial" in ran(words, capsys, tmp_path / "then")


def test_a_repair_is_run(start, tmp_path, capsys):
    pair = [*PAIR, *BGR, "--options", "repairs.yaml", "--gate", "flip_rate < 20%"]
    _, words = start("repair", *pair)

    assert "out/repaired.yaml" in words  # from the current folder
    assert "0 of 12 answers change" in ran(words, capsys, tmp_path / "then")


def test_the_worst_option_of_a_suite_by_one_image_is_chance(start, tmp_path, capsys):
    """Of two images no option can lose more than chance explains."""
    start("sweep", "--suite", "suite.yaml", "--limit", "2", out="few")
    summary = read_summary(next((tmp_path / "few").iterdir()))[1]

    said = sweep_report.verdict(summary).lost[0]
    assert "which chance may explain (the largest of 2)" in said


def test_the_worst_combination_has_an_interval_and_how_many_it_was_picked_from(
    start, card, tmp_path
):
    found = worst(
        "suite.yaml", model=card, data=tmp_path / "data", limit=2, out=tmp_path / "worst"
    ).summary

    low, high = found.path[0].drop_ci95
    assert low <= found.path[0].drop <= high and found.path[0].family == 2
    assert "which chance may explain" in worst_report.verdict(found).lost[0]


def test_axes_that_chance_may_order_are_said_to_be(start, tmp_path):
    start(*PAIR, *BGR, "--set", "deploy.resize=opencv-nearest", "--limit", "6")
    summary = read_summary(tmp_path / "out")[1]
    entry = summary.alone[0].model_copy(update={"changed": 3, "rate": 0.5, "ci95": [0.1, 0.9]})
    other = entry.model_copy(update={"axes": ["resize"], "changed": 2, "rate": 0.3})

    changed = summary.model_copy(update={"alone": [entry, other]})
    assert "; chance may explain which is first." in pairs.verdict(changed).cause
    assert "chance" not in pairs.verdict(summary).cause


def test_an_example_is_named_and_not_its_files():
    card = example.model_card("audio")
    asked = {"train": "librosa_fp32", "deploy": "torchaudio_defaults", "model": str(card)}
    with_data = asked | {"data": str(example.data_card("audio"))}

    lines = [Asked(one, card.parent).line("explain", PAIR_ARGUMENTS) for one in (asked, with_data)]

    shown = "simulate explain --train librosa_fp32 --deploy torchaudio_defaults --example audio"
    assert lines == [shown, shown]
