"""Inputs that used to end with a traceback: one clear line and exit code 2; a bug of ours: 3."""

import json
import os
import re
import subprocess
from pathlib import Path

import pytest
import tiny
from onnx import TensorProto

from simulator.cli import main

SAME = ("--train", "pillow_fp32", "--deploy", "pillow_fp32")


@pytest.fixture(autouse=True)
def _own_cache(cache, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def refused(capsys):
    """Run the command; it must say one line, and that is returned."""

    def run(*arguments):
        assert main([str(one) for one in arguments]) == 2
        said = capsys.readouterr()
        assert re.fullmatch(r"error: [^\n]{1,1400}\n", said.err), said.err
        return said.err

    return run


def external(location):
    """A model whose weights are in another file."""
    model = tiny.classifier()
    (weights,) = model.graph.initializer
    weights.ClearField("raw_data")
    weights.data_location = TensorProto.EXTERNAL
    entry = weights.external_data.add()
    entry.key, entry.value = "location", location
    return model


@pytest.mark.parametrize("location", ["a\0b", "x" * 5000, "x/" * 2500 + "y"])
def test_external_data_of_an_impossible_name(refused, tmp_path, data, location):
    card = tiny.card(tmp_path / "model", external(location))

    said = refused(*SAME, "--model", card, "--data", data)

    assert "external data" in said or "no file's name" in said


@pytest.mark.parametrize("number", [999, -1])
@pytest.mark.parametrize("where", ["input", "output", "constant"])
def test_an_element_type_that_onnx_does_not_have(refused, tmp_path, data, where, number):
    model = tiny.classifier()
    if where == "constant":
        model.graph.initializer[0].data_type = number
    else:
        getattr(model.graph, where)[0].type.tensor_type.elem_type = number
    card = tiny.card(tmp_path / "model", model)

    assert "model.onnx" in refused(*SAME, "--model", card, "--data", data)


@pytest.mark.parametrize("length", [300, 5000])
@pytest.mark.parametrize(
    "before",
    [
        ["report"], ["resume"], ["verify"], ["replay"], ["audit"], ["profiles", "show"],
        ["profiles", "import"], ["sweep", "--suite"], ["worst", "--suite"],
        [*SAME, "--data"], [*SAME, "--model"], [*SAME, "--out"],
        ["tail", "--profile", "pillow_fp32", "--times"],
    ],
    ids=" ".join,
)  # fmt: skip
def test_a_path_that_is_too_long(refused, card, data, before, length):
    rest = ["--model", card] * (before[-1] in ("--data", "--out", "--times"))
    rest += ["--data", data] * (before[-1] in ("--out", "--times"))

    refused(*before, "x" * length, *rest)


@pytest.mark.parametrize("name", [os.fsdecode(b"caf\xe9"), "\ud800", "a\0b"])
@pytest.mark.parametrize("before", [["verify"], [*SAME, "--data"], [*SAME, "--set"], []])
def test_a_name_that_is_not_text(refused, before, name):
    refused(*before, name)


def test_half_a_character_in_a_document(refused, card, data):
    said = refused(*SAME, "--model", card, "--data", data, "--set", r'deploy.name="\ud800"')

    assert "half of a character" in said


def test_a_key_of_two_thousand_words(refused):
    said = refused(*SAME, "--set", "deploy." + ".".join(["a"] * 2000) + "=1")

    assert "2,000 words" in said


@pytest.fixture
def deep(tmp_path):
    """A folder that is removed by a program without recursion: pytest's own removal has some."""
    folder = tmp_path / "deep"
    yield folder
    subprocess.run(["rm", "-rf", folder], check=True)


def nested(folder, depth):
    """Folders in folders, deeper than Python's stack, with an image in the last."""
    folder.mkdir()
    at = os.open(folder, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir("a", dir_fd=at)
        inner = os.open("a", os.O_RDONLY, dir_fd=at)
        os.close(at)
        at = inner
    file = os.open("x.jpg", os.O_WRONLY | os.O_CREAT, dir_fd=at)
    os.write(file, tiny.encoded(tiny.picture((9, 9, 9))))
    os.close(file)
    os.close(at)
    return folder


def test_twelve_hundred_nested_folders(refused, deep, card):
    """They are walked; the folder's name is then no class of the model."""
    folder = nested(deep, 1200)

    assert "no class of the model" in refused(*SAME, "--model", card, "--data", folder)


@pytest.fixture
def stopped(tmp_path, card, data, capsys):
    """The manifest of a run that did not finish, and what it was asked for."""
    folder = tmp_path / "run"
    assert main([*SAME, "--model", str(card), "--data", str(data), "--out", str(folder)]) == 0
    capsys.readouterr()
    manifest = folder / "manifest.json"
    return manifest, json.loads(manifest.read_text()) | {"status": "interrupted"}


@pytest.mark.parametrize(
    "request_",
    [
        None, 5, "x", [], {}, {"command": {}, "arguments": {}}, {"command": "run"},
        {"command": "run", "arguments": [1]}, {"command": "run", "arguments": {}},
    ],
    ids=str,
)  # fmt: skip
def test_a_manifest_without_a_request(refused, stopped, request_):
    place, manifest = stopped
    place.write_text(json.dumps(manifest | {"request": request_}))

    assert "no valid request" in refused("resume", place.parent)


def test_a_manifest_of_what_is_no_experiment(refused, stopped):
    place, manifest = stopped
    request = {"command": "__init__", "arguments": {}}
    place.write_text(json.dumps(manifest | {"request": request}))

    assert "unknown experiment '__init__'" in refused("resume", place.parent)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("train", 5), ("train", None), ("overrides", "x"), ("overrides", [5]), ("seed", "x"),
        ("limit", True), ("limit", {}), ("data", []), ("model", 1.5), ("fail_on", {"a": 1}),
        ("out", "elsewhere"), ("workers", 2), ("progress", "x"), ("nothing_like_it", 1),
    ],
)  # fmt: skip
def test_a_manifest_with_an_odd_argument(refused, stopped, key, value):
    place, manifest = stopped
    manifest["request"]["arguments"][key] = value
    place.write_text(json.dumps(manifest))

    assert "no valid request" in refused("resume", place.parent)


def test_a_bug_of_ours_has_an_exit_code_of_its_own(capsys, monkeypatch):
    def broken(options):
        raise ZeroDivisionError("two\nlines")

    monkeypatch.setattr("simulator.cli.verify.run", broken)

    code, said = main(["verify", "x"]), capsys.readouterr().err

    line = r"error: a bug .*ZeroDivisionError: two lines; details are in (\S+)\n"
    found = re.fullmatch(line, said)
    assert (code, bool(found)) == (3, True), said
    details = Path(found[1]).read_text()
    Path(found[1]).unlink()
    assert "Traceback" in details and "in broken" in details
