"""``simulate resume`` of what leaves no run: corrupt, render, finetune, quantize, sensitivity."""

import json
import signal
from importlib.util import find_spec
from pathlib import Path

import pytest
import tiny
from warm import ended

from simulator import cli
from simulator.command.experiment import EXPERIMENTS
from simulator.report.command import words

LEARNED = pytest.mark.skipif(find_spec("onnx2torch") is None, reason="onnx2torch is not installed")


def files(folder):
    """The files of a folder, without its own name."""
    own = str(folder).encode()
    places = (place for place in folder.rglob("*") if place.is_file())
    return {str(p.relative_to(folder)): p.read_bytes().replace(own, b"") for p in places}


@pytest.mark.parametrize(
    ("name", "pattern", "count"),
    [
        ("corrupt", "**/[!.]*.jpg", 2),
        ("render", "images/[!.]*.png", 2),
        pytest.param("quantize", "state", 1, marks=LEARNED),
        pytest.param("finetune", "state", 1, marks=LEARNED),
        ("sensitivity", "measured.json", 1),
    ],
)
def test_a_killed_command_is_resumed_from_another_folder(
    name, pattern, count, tmp_path, monkeypatch, capsys
):
    """Its folder has the same bytes as one that nothing disturbed."""
    (tmp_path / "inputs").mkdir()
    asked = EXPERIMENTS.of(name).specimen(tmp_path / "inputs")
    line = [word for some in words(name, asked)[1:] for word in some]
    killed, whole = tmp_path / "killed", tmp_path / "whole"
    assert cli.main([name, *line, "--out", str(whole)]) in (0, 1)
    monkeypatch.chdir(tmp_path)
    done = ended(signal.SIGKILL, killed, pattern, count, name, *line, "--out", "killed")
    assert done.returncode == -signal.SIGKILL
    assert files(whole).keys() - files(killed).keys()
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    capsys.readouterr()

    assert cli.main(["resume", str(killed)]) in (0, 1)

    assert "this run goes on in its place" in capsys.readouterr().err
    assert files(killed) == files(whole)


@pytest.fixture
def folder(tmp_path):
    """A finished ``corrupt``."""
    model, data = tiny.card(tmp_path), tiny.data(tmp_path / "data", each=1)
    line = ["--under", "jpeg:5", "--model", str(model), "--data", str(data)]
    assert cli.main(["corrupt", *line, "--out", str(tmp_path / "out")]) == 0
    return tmp_path / "out"


def test_images_that_are_there_are_not_written_again(folder):
    image = next(folder.rglob("red0.jpg"))
    image.write_bytes(b"as it was")

    assert cli.main(["resume", str(folder)]) == 0
    assert image.read_bytes() == b"as it was"


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        ({"command": "run", "arguments": {}}, "run leaves no such folder"),
        ({"command": "corrupt", "arguments": {"depth": 3}}, "unknown argument 'depth'"),
        ({"command": "corrupt", "arguments": {"trial": "x"}}, "trial: "),
        ({"command": "finetune", "arguments": {"module": "os:system"}}, "--module is code"),
        (None, "plan.json is damaged"),
    ],
)
def test_an_edited_request_is_refused_in_one_line(folder, capsys, request_, message):
    plan = json.loads((folder / "plan.json").read_text())
    (folder / "plan.json").write_text(json.dumps(plan | {"request": request_}))

    assert cli.main(["resume", str(folder)]) == 2
    told = capsys.readouterr().err
    assert message in told and told.count("\n") == 1


@pytest.mark.parametrize("words", [["--executor", "ray"], ["--sign", "key"], ["--json"]])
def test_an_option_of_runs_is_refused(folder, capsys, words):
    assert cli.main(["resume", str(folder), *words]) == 2
    assert f"{words[0]} is not for corrupt; leave it out" in capsys.readouterr().err


def test_the_folder_names_no_cwd(folder):
    """What its request names is found from any folder."""
    arguments = json.loads((folder / "plan.json").read_text())["request"]["arguments"]
    assert all(Path(arguments[name]).is_absolute() for name in ("model", "data"))
