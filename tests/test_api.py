"""The Python API: its names, signatures and results; the examples in its docstrings are run."""

import doctest
import inspect
import shutil
import subprocess
import sys

import pytest

import simulator
from simulator.data import example
from simulator.experiments.job import DEFAULTS, Job

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
    (found,) = doctest.DocTestFinder(recurse=False).find(function, globs=function.__globals__ | {})
    said = []

    ran = doctest.DocTestRunner().run(found, out=said.append)

    assert ran.attempted > 0
    assert "".join(said) == ""


@pytest.mark.parametrize("name", JOBS)
def test_every_keyword_is_in_the_signature(name):
    shown = inspect.signature(getattr(simulator, name)).parameters

    missing = {"data", "limit", "seed"} if name == "audit" else set()
    assert {one for one in DEFAULTS if one in shown} == set(DEFAULTS) - missing
    assert not any(one.kind == one.VAR_KEYWORD for one in shown.values())
    assert {one: shown[one].default for one in DEFAULTS if one in shown} == {
        one: value for one, value in DEFAULTS.items() if one not in missing
    }


def test_the_defaults_that_are_shown_are_those_of_a_job():
    given = {name: value for name, value in DEFAULTS.items() if name not in ("data", "progress")}
    bare, explicit = (Job("run", None, o) for o in ({}, given))

    assert vars(bare) | {"_options": 0, "_started": 0, "_begun": 0} == vars(explicit) | {
        "_options": 0, "_started": 0, "_begun": 0,
    }  # fmt: skip


def test_a_folder_of_the_same_name_does_not_hide_a_function():
    code = (
        "import simulator.latency.tail, simulator.audit.run, simulator\n"
        "from simulator import audit, latency, tail\n"
        "from simulator.latency import screen\n"
        "print(audit.__name__, latency.__name__, tail.__name__, screen.__name__)"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)

    assert (done.stdout, done.stderr) == ("audit latency tail simulator.latency.screen\n", "")


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


def test_a_result_is_short_where_it_is_printed(result):
    assert repr(result) == f"<Result of run: gate passed, {result.folder}>"


def test_a_notebook_shows_figures_and_the_report(result, monkeypatch):
    monkeypatch.chdir(result.folder.parent)

    page = result._repr_html_()

    assert "<th>samples</th><td>4</td>" in page
    assert '<a href="a%20%3Crun%3E/report.html">' in page
    assert result.report.is_file()
