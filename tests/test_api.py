"""The Python API: its names, signatures and results; the examples in its docstrings are run."""

import doctest
import html
import inspect
import re
import shutil
import subprocess
import sys
from dataclasses import MISSING, fields
from pathlib import Path

import pytest

import simulator
from simulator.command.experiment import EXPERIMENTS
from simulator.data import example
from simulator.errors import UserError

JOBS = ["audit", "compare", "explain", "latency", "repair", "sweep", "tail", "worst"]
LOADERS = ["checkpoints", "load_card", "load_profile"]


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    folder = tmp_path_factory.mktemp("api") / "a <run>"
    return simulator.compare("pillow_fp32", "opencv_fp32", limit=4, out=folder)


@pytest.mark.parametrize("name", [*JOBS, *LOADERS])
def test_the_examples_of_the_docstrings(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for file in example.model_card().parent.iterdir():
        shutil.copyfile(file, tmp_path / file.name)
    function = getattr(simulator, name)
    (found,) = doctest.DocTestFinder(recurse=False).find(
        function, name, globs=function.__globals__ | {name: function, "Path": Path}
    )
    said = []

    ran = doctest.DocTestRunner().run(found, out=said.append)

    assert ran.attempted > 0
    assert "".join(said) == ""


@pytest.mark.parametrize("name", JOBS)
def test_every_option_is_in_the_signature_with_its_default(name):
    experiment = EXPERIMENTS.of(simulator.experiment_of()[name])
    shown = inspect.signature(getattr(simulator, name)).parameters

    assert set(shown) == {one.name for one in fields(experiment.Options)}
    for one in fields(experiment.Options):
        required = one.default is MISSING
        assert shown[one.name].default == (inspect.Parameter.empty if required else one.default)


def test_a_folder_of_the_same_name_does_not_hide_a_function():
    code = (
        "import simulator.checkpoints.compare, simulator.latency.tail, simulator.audit.run\n"
        "from simulator import audit, checkpoints, latency, tail\n"
        "from simulator.latency import screen\n"
        "print(*(one.__name__ for one in (audit, checkpoints, latency, tail, screen)))"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)

    assert (done.stdout, done.stderr) == (
        "audit checkpoints latency tail simulator.latency.screen\n",
        "",
    )


@pytest.mark.prove
def test_every_folder_that_a_function_has_the_name_of_is_known():
    folders = {one.parent.name for one in Path(simulator.__file__).parent.glob("*/__init__.py")}

    assert set(simulator.FOLDERS) == folders & {*simulator.PLACES, *simulator.experiment_of()}


@pytest.mark.prove
def test_a_type_checker_knows_the_functions(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        "from simulator import Result, compare, latency\n"
        "reveal_type(compare('a', 'b', limit=3))\n"
        "compare('a', 'b', limt=3)\n"
        "latency(['a'], queries='many')\n"
    )

    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--config-file=", program], capture_output=True, text=True
    )

    assert 'Revealed type is "simulator.experiments.job.Result[' in done.stdout
    assert 'Unexpected keyword argument "limt"' in done.stdout
    assert 'incompatible type "str"; expected "int"' in done.stdout


def test_the_records_are_a_table(result):
    records = result.records()

    assert records.num_rows == 2 * 4
    assert set(records["side"].to_pylist()) == {"train", "deploy"}


def test_a_frame_has_a_row_for_each_sample_with_what_the_records_say_of_each_stack(result):
    rows = result.frame().to_pylist()

    by = {(one["sample"], one["side"]): one for one in result.records().to_pylist()}
    assert [row["sample"] for row in rows] == list(dict.fromkeys(sample for sample, _ in by))
    for row in rows:
        for side in ("train", "deploy"):
            one = by[row["sample"], side]
            assert row["label"] == one["label"]
            assert row[f"{side}_prediction"] == one["prediction"]
            assert row[f"{side}_score"] == one["score"]
            times = dict(one["ns"])
            assert row[f"{side}_infer_ms"] == times["infer"] / 1e6
            assert row[f"{side}_total_ms"] == sum(times.values()) / 1e6


def test_the_charts_are_those_of_the_report(result):
    found = result.plot()

    page = result.report.read_text()
    assert [key for key in found.figures if f'<section id="{key}"' in page] == ["latency"]
    assert repr(found) == "<Charts: latency>"
    framed = html.unescape(re.search('srcdoc="([^"]*)"', found._repr_html_())[1])
    assert framed.startswith("<!doctype html>")
    assert framed.count("data-figure=") == page.count("data-figure=") > 0
    with pytest.raises(UserError, match=r"unknown section with charts 'flips' \(offered: latency"):
        result.plot("flips")


def test_a_result_is_short_where_it_is_printed(result):
    assert repr(result) == f"<Result of run: no gate, {result.folder}>"


def test_a_notebook_shows_figures_and_the_report(result, monkeypatch):
    monkeypatch.chdir(result.folder.parent)

    page = result._repr_html_()

    assert "<th>gate</th><td>none</td>" in page
    assert "<th>samples</th><td>4</td>" in page
    assert '<a href="a%20%3Crun%3E/report.html">' in page
    assert result.report.is_file()
