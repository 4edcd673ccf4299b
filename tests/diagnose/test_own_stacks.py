"""Code and recordings as sides of a diagnosis, each with one slip that is made here."""

import json

import numpy as np
import onnxruntime
import pytest
import tiny
import tiny_tasks
import yaml
from PIL import Image

import simulator
from simulator.digests import sha256

CODE = """\
import json, os
import numpy as np
from PIL import Image

def pre(path: str):
    pixels = Image.open(path).convert("RGB").resize((32, 32), Image.NEAREST)
    return ((np.asarray(pixels, np.float32) - 127) / 64).transpose(2, 0, 1)

def swapped(path: str):
    return np.ascontiguousarray(pre(path)[::-1])

def unit(path: str):
    return (pre(path) * 64 + 127) / np.float32(255)

def levels(path: str):
    return pre(path) * 64 + 127

def box(path: str):
    pixels = Image.open(path).convert("RGB").resize((32, 32), Image.BOX)
    return ((np.asarray(pixels, np.float32) - 127) / 64).transpose(2, 0, 1)

def next_class(path: str):
    return np.array([int(pre(path).mean((1, 2)).argmax()) + 1], np.int64)

def shares(path: str):
    rows = json.load(open("boxes.json"))[os.path.basename(path)]
    return np.array(rows, np.float64).reshape(-1, 6)
"""


@pytest.fixture
def own(cache, tmp_path, monkeypatch):
    """The code in the current folder; a function that diagnoses with the tiny classifier."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.py").write_text(CODE)
    model, data = tiny.card(tmp_path / "model"), tiny.data(tmp_path / "data")

    def run(train, deploy, model=model, data=data, **options):
        given = {"model": model, "data": data, "out": tmp_path / "run", "workers": 1}
        return simulator.diagnose(train, deploy, **given, **options).summary

    return run


def test_two_functions_are_told_apart_by_the_values_that_they_give(own, tmp_path):
    summary = own("own.py:pre", "own.py:swapped", limit=2)

    assert [one.state for one in summary.parts] == ["differs", "equal", "equal"]
    assert [one.name for one in summary.findings] == ["channels are swapped"]
    assert "BGR" in summary.findings[0].code
    assert summary.repair is None  # no field of a profile changes what code does
    assert summary.explained
    assert "The network and the postprocessing are the same on both sides." in summary.verdict.lost
    shown = [np.array(Image.open(tmp_path / "run" / getattr(summary.inputs, side)))
             for side in ("train", "deploy", "difference")]  # fmt: skip
    (sample,) = (tmp_path / "data").rglob(summary.inputs.sample)
    pixels = Image.open(sample).convert("RGB").resize((32, 32), Image.NEAREST)
    assert (shown[0] == np.array(pixels)).all()
    assert (shown[1] == shown[0][..., ::-1]).all()
    assert shown[2].max() == 255


def test_training_code_need_not_normalize_as_the_card_says(own):
    """x / 255 where the card says (x - 127) / 64."""
    summary = own("own.py:unit", "own.py:levels", limit=2)

    assert [one.name for one in summary.findings] == ["255 forgotten"]


def test_one_image_is_enough(own):
    summary = own("own.py:pre", "own.py:swapped", limit=1)

    assert (summary.samples, [one.name for one in summary.findings]) == (
        1, ["channels are swapped"],
    )  # fmt: skip


def test_a_function_that_gives_classes_one_too_high_is_named(own):
    """Of blue squares the class is 3, which is no label: they are not what is asked about."""
    summary = own("own.py:pre", "own.py:next_class:answer", limit=2)

    assert [one.name for one in summary.findings] == ["labels are shifted by one"]
    assert [one.certainty for one in summary.findings] == ["nearest"]  # it gives no scores
    assert summary.changed == 2
    assert not summary.explained


def recording(folder, kind, arrays, model):
    np.savez(folder / "board.npz", **arrays)
    manifest = {
        "schema": 1, "name": "board", "device": "a board", "kind": kind, "file": "board.npz",
        "match": "name", "model": sha256(model),
    }  # fmt: skip
    (folder / "recording.yaml").write_text(yaml.safe_dump(manifest))
    return str(folder / "recording.yaml")


def tensors(folder):
    """What ``pre`` gives, by the names of the images."""
    found = {}
    for path in sorted((folder / "data").rglob("*.jpg")) + sorted((folder / "data").rglob("*.png")):
        pixels = Image.open(path).convert("RGB").resize((32, 32), Image.NEAREST)
        name = path.relative_to(folder / "data").as_posix()
        found[name] = ((np.asarray(pixels, np.float32) - 127) / 64).transpose(2, 0, 1)[None]
    return found


def test_recorded_tensors_that_were_not_divided_are_named(own, tmp_path):
    """The deployment forgot the standard deviation."""
    given = {name: one * 64 for name, one in list(tensors(tmp_path).items())[:2]}
    summary = own(
        "own.py:pre", recording(tmp_path, "tensors", given, tmp_path / "model/model.onnx")
    )

    assert (summary.samples, summary.absent) == (2, len(tensors(tmp_path)) - 2)
    assert summary.parts[0].state == "differs"
    assert summary.findings[0].part == "front end"
    assert summary.findings[0].certainty != "nearest"
    assert [one.assumed for one in summary.parts] == [False, True, True]
    assert any("of the device only the input was recorded" in one for one in summary.verdict.lost)


def test_recorded_outputs_with_a_background_class_clear_network_and_front_end(own, tmp_path):
    model = tmp_path / "model" / "model.onnx"
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    given = {
        name: np.concatenate([[[-9.0]], session.run(None, {"x": one})[0]], 1).astype(np.float32)
        for name, one in tensors(tmp_path).items()
    }
    summary = own("own.py:pre", recording(tmp_path, "outputs", given, model))

    assert [one.state for one in summary.parts] == ["rounding", "rounding", "differs"]
    assert summary.findings[0].name.startswith("labels are shifted by one (4 classes against 3")
    assert summary.explained and summary.verdict.lost[0].startswith("The postprocessing is to")


def test_recorded_outputs_of_other_inputs_end_where_the_data_end(own, tmp_path):
    given = {name: np.float32([[1, 2, 3]]) for name in tensors(tmp_path)}
    summary = own(
        "own.py:pre", recording(tmp_path, "outputs", given, tmp_path / "model/model.onnx")
    )

    assert [one.state for one in summary.parts] == ["unknown", "unknown", "equal"]
    assert not summary.explained
    assert summary.parts[0].told == [
        "Not known: of the deployment stack there is no input of the network."
    ]


def test_boxes_that_were_not_mapped_back_are_named(own, tmp_path):
    """The scenes are 64 x 64 like the network; the code gives shares of the image."""
    model = tiny_tasks.card(tmp_path / "boxes")
    data = tiny_tasks.data(tmp_path / "scenes")
    run = simulator.compare("pillow_fp32", "pillow_fp32", model=model, data=data, quick=True)
    rows = {}
    for row in run.records().to_pylist():
        if row["side"] == "train":
            shares = (np.reshape(row["boxes"], (-1, 4)) / 64).tolist()
            found = zip(shares, row["scores"], row["classes"], strict=True)
            rows[row["sample"]] = [[*box, score, label] for box, score, label in found]
    (tmp_path / "boxes.json").write_text(json.dumps(rows))

    summary = own("pillow_fp32", "own.py:shares:answer", model=model, data=data, overrides=[])

    assert [one.name for one in summary.findings] == ["boxes are shares of the image"]
    assert [one.state for one in summary.parts] == ["rounding", "rounding", "differs"]
    assert summary.explained


@pytest.mark.prove
def test_other_pixels_are_named_by_the_stacks_that_make_them(own):
    summary = own("own.py:pre", "own.py:box", limit=2)

    (found,) = summary.findings
    assert found.name.startswith("box in place of nearest")


def test_recorded_inputs_beside_recorded_outputs_tell_the_network_from_the_front_end(own, tmp_path):
    """The board's inputs have swapped channels; its outputs are of them, and a tenth too large."""
    model = tmp_path / "model" / "model.onnx"
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    given = {name: np.ascontiguousarray(x[:, ::-1]) for name, x in tensors(tmp_path).items()}
    outputs = {name: 1.1 * session.run(None, {"x": x})[0] for name, x in given.items()}
    for kind, arrays in (("tensors", given), ("outputs", outputs)):
        (tmp_path / kind).mkdir()
        recording(tmp_path / kind, kind, arrays, model)
    document = {
        "schema": 1, "name": "board", "summary": "both were recorded", "extends": "pillow_fp32",
        "front_end": {"backend": "recorded", "recording": "tensors/recording.yaml"},
        "runtime": {
            "backend": "recorded", "recording": "outputs/recording.yaml",
            "graph_optimization_level": None,
        },
    }  # fmt: skip
    (tmp_path / "board.yaml").write_text(yaml.safe_dump(document))

    front, network, post = own("own.py:pre", "board.yaml").parts

    assert [one.state for one in (front, network, post)] == ["differs", "differs", "equal"]
    assert network.gap.relative == pytest.approx(0.1, rel=1e-3)
