"""Two finished runs held against each other."""

import json
import shutil
from math import sqrt

import pyarrow.parquet as pq
import pytest
import tiny
from scipy.stats import norm

import simulator
from simulator import cli, robustness
from simulator.audit.two_runs import compare_runs
from simulator.errors import RunError


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Twice the same, and once with the channels swapped; not to be changed."""
    folder = tmp_path_factory.mktemp("runs")
    card, data = tiny.card(folder / "model"), tiny.data(folder / "data")

    def run(name, *overrides):
        return simulator.compare(
            "pillow_fp32", "pillow_fp32", model=card, data=data, out=folder / name, quick=True,
            overrides=overrides,
        ).folder  # fmt: skip

    return run("one"), run("two"), run("three", "deploy.color.order=bgr")


@pytest.fixture
def second(runs, tmp_path):
    """A function that copies the second run with one value in each record of some columns."""

    def write(**columns):
        folder = shutil.copytree(runs[1], tmp_path / "two")
        table = pq.read_table(folder / "records.parquet")
        for name, value in columns.items():
            values = [[value] * table.num_rows]
            table = table.set_column(table.column_names.index(name), name, values)
        pq.write_table(table, folder / "records.parquet")
        return folder

    return write


def test_the_same_twice_has_the_same_answers(runs):
    found = compare_runs(*runs[:2])
    assert (found.inputs, found.surroundings) == ([], [])
    for one in found.stacks.values():
        assert (one.samples, one.changed, one.equal_outputs, one.first) == (6, 0, 6, [])
        assert one.delta["top1"].value == 0
        assert all(ms > 0 for ms in one.latency_ms)


def test_what_changed_is_named_with_the_answers_that_changed(runs):
    """Red and blue change places: 4 of 6 answers, all of them wrong then."""
    found = compare_runs(runs[0], runs[2])
    assert found.inputs == ["deploy profile.color.order: model → bgr"]
    again = found.stacks["deploy"]
    assert (again.changed, again.delta["top1"].value) == (4, pytest.approx(-4 / 6))
    assert {name.split("/")[0] for name in again.first} == {"red", "blue"}
    assert found.stacks["train"].changed == 0


def test_right_and_wrong_answers_have_exact_intervals(runs):
    """Bonett and Price 2012 by hand, of 6 pairs: 4 lost and none won, or none of either."""
    z = norm.ppf(0.975)
    for folder, lost, p in (runs[2], 4, 2 * 0.5**4), (runs[1], 0, 1.0):
        delta = compare_runs(runs[0], folder).stacks["deploy"].delta["top1"]
        one, other = (lost + 1) / 8, 1 / 8
        half = z * sqrt((one + other - (other - one) ** 2) / 8)
        assert delta.ci95 == pytest.approx([max(-1, other - one - half), other - one + half])
        assert (delta.p, delta.method) == (pytest.approx(p), "Bonett-Price")


def test_the_whole_request_is_compared(runs, tmp_path):
    """The stacks are the same; the world was not, nor the question."""
    model, data = runs[0].parent / "model" / "card.yaml", runs[0].parent / "data"
    fog = simulator.compare(
        "pillow_fp32", "pillow_fp32", model=model, data=data, out=tmp_path / "fog",
        under="fog:3", fail_on=["flip_rate > 5%"],
    ).folder  # fmt: skip

    assert {*compare_runs(runs[0], fog).inputs} == {
        "quick: True → nothing", "fail_on: nothing → ['flip_rate > 5%']", "under: nothing → fog:3",
    }  # fmt: skip
    assert "under: fog:3 → nothing" in compare_runs(fog, runs[0]).inputs


def test_only_another_class_is_another_answer(runs, second):
    """What is among the five best, and what the other stack answered, is no flip of this one."""
    other = second(top5=True, changed=True)

    assert {one.changed for one in compare_runs(runs[0], other).stacks.values()} == {0}


def test_the_command_begins_with_the_verdict(runs, capsys):
    assert cli.main(["compare-runs", str(runs[0]), str(runs[2])]) == cli.PASS
    said = capsys.readouterr().out
    assert said.startswith("4 answers differ.\n")
    assert "deploy: 4 of 6 answers differ" in said
    assert cli.main(["compare-runs", str(runs[0]), str(runs[1]), "--json"]) == cli.PASS
    assert json.loads(capsys.readouterr().out)["stacks"]["deploy"]["changed"] == 0


def test_what_cannot_be_compared_is_one_line(runs, card, data, tmp_path, capsys):
    with pytest.raises(RunError, match="not a run"):
        compare_runs(runs[0], tmp_path)
    timed = simulator.latency(
        ["pillow_fp32", "opencv_fp32"], model=card, data=data, out=tmp_path / "timed", queries=5
    ).folder
    assert cli.main(["compare-runs", str(runs[0]), str(timed)]) == cli.USER_ERROR
    error = capsys.readouterr().err
    assert len(error.splitlines()) == 1 and "no stack in common: train, deploy; pillow" in error


@pytest.mark.parametrize(("column", "error"), [("ns", "AttributeError"), ("side", "TypeError")])
def test_records_of_another_kind_are_refused_in_a_line(runs, second, column, error):
    other = second(**{column: 1})

    with pytest.raises(RunError, match=f"one or .*two: .* or damaged: {error}") as refused:
        compare_runs(runs[0], other)

    assert "\n" not in str(refused.value)


def test_runs_with_several_answers_to_a_sample_are_refused(card, data, tmp_path):
    """Two conditions of one image are no two images."""
    suite = tmp_path / "suite.yaml"
    suite.write_text(
        "{schema: 1, name: two, summary: two, conditions: {digital: {jpeg: ['jpeg:60']}}}"
    )
    folders = []
    for name in ("one", "two"):
        (result,) = robustness(
            str(suite), ["pillow_fp32"], models=[card], data=data, out=tmp_path / name
        )
        folders.append(result.folder)
    with pytest.raises(RunError, match="in which each stack answers each sample once"):
        compare_runs(*folders)
