"""`simulate model new` and `simulate model check`."""

import json
import re
from pathlib import Path

import pytest
import tiny
import yaml
from json_checker import errors
from onnx import helper
from scipy.stats import binomtest

from simulator import cli
from simulator.errors import ModelError
from simulator.model.card import Card, load


@pytest.fixture
def told(capsys, cache):
    def run(*arguments):
        code = cli.main(["model", *map(str, arguments)])
        return code, *capsys.readouterr()

    return run


def network(folder, inputs, outputs, last="Identity", first="Identity"):
    """A model of these inputs and outputs; what is between does not fit, and is never run."""
    nodes = [helper.make_node(first, [next(iter(inputs))], ["a"])]
    nodes += [helper.make_node(last, ["a"], [name]) for name in outputs]
    folder.mkdir(exist_ok=True)
    path = folder / "my net.onnx"
    path.write_bytes(tiny.model(nodes, inputs, outputs).SerializeToString())
    return path


def drafted(told, path):
    out = path.with_suffix(".yaml")
    code, *_ = told("new", path)
    assert code == 0
    return yaml.safe_load(out.read_text())


def test_a_classifier_runs_as_it_is_proposed(told, tmp_path):
    tiny.card(tmp_path)
    code, out, err = told("new", tmp_path / "model.onnx", "-o", tmp_path / "cards.yaml")

    assert (code, err) == (0, "")
    assert out.splitlines()[0] == f"{tmp_path / 'cards.yaml'}: 2 fields are marked TODO"
    assert "went through pillow_fp32: 1x3x32x32 float32 → y 1x3 float32" in out
    with pytest.raises(ModelError, match=r"cards.yaml: 2 fields are still marked TODO: order"):
        load(tmp_path / "cards.yaml")
    card = Card(tmp_path / "cards.yaml", draft=True)
    assert (card.spec.name, card.task.name) == ("model", "classification")
    assert card.spec.input.model_dump()["layout"] == "NCHW"


def test_a_card_that_is_not_filled_in_is_refused_by_every_other_command(told, tmp_path, capsys):
    path = tiny.card(tmp_path)
    new = tmp_path / "new.yaml"
    told("new", tmp_path / "model.onnx", "-o", new)

    code, out, _ = told("check", new)

    assert code == 1
    assert re.findall(r"new.yaml:\d+: (\w+): ", out) == ["order", "kind"]
    code, out, _ = told("check", path)
    assert code == 0 and "TODO" not in out
    pair = ["--train", "pillow_fp32", "--deploy", "opencv_fp32", "--model", str(new)]
    for command in ([], ["explain"], ["repair", "--gate", "flip_rate < 1%"], ["tail"]):
        assert cli.main([*command, *pair]) == 2
        said = capsys.readouterr().err
        assert "new.yaml: 2 fields are still marked TODO" in said
        assert f"simulate model check {new}" in said


def test_check_says_how_right_the_card_is(told, tmp_path):
    data = tiny.data(tmp_path / "data")
    right = tiny.card(tmp_path / "right")
    wrong = tiny.card(tmp_path / "wrong", input={**tiny.SPEC["input"], "order": "bgr"})

    code, out, _ = told("check", right, "--data", data)
    assert code == 0
    low = 100 * binomtest(6, 6).proportion_ci(0.95).low
    assert f"top-1 100.00% of 6 images (95 % interval {low:.2f}% to 100.00%)" in out
    assert "guessing gives 33.33%" in out

    code, out, _ = told("check", wrong, "--data", data, "--limit", "5")
    assert code == 1
    assert "about 206 more images would tell, or its card or profile is wrong (pillow_fp32)" in out


@pytest.mark.parametrize(
    ("inputs", "outputs", "expected"),
    [
        ({"x": [1, 224, 224, 3]}, {"y": [1, 1001]},
         {"task": "classification", "layout": "NHWC", "output.background": 1}),
        ({"x": [1, 3, 64, 128]}, {"y": [1, 21, 8, 16]},
         {"task": "segmentation", "output.output_stride": 8, "output.scores": "y"}),
        ({"x": [1, 3, None, None]}, {"boxes": [1, 9, 4], "scores": [1, 9, 2]},
         {"task": "detection", "output": {"head": {}}, "height": 224}),
    ],
)  # fmt: skip
def test_the_shapes_propose_a_task(told, tmp_path, inputs, outputs, expected):
    found = drafted(told, network(tmp_path, inputs, outputs))

    flat = found | found["input"] | {f"output.{k}": v for k, v in found["output"].items()}
    assert {key: flat[key] for key in expected} == expected


def test_a_softmax_gives_probabilities_and_a_subtraction_may_be_a_mean(told, tmp_path):
    """The first line names a schema that the card passes."""
    nodes = [
        helper.make_node("Sub", ["x", "m"], ["s"]), helper.make_node("Flatten", ["s"], ["f"]),
        helper.make_node("Softmax", ["f"], ["y"]),
    ]  # fmt: skip
    proto = tiny.model(nodes, {"x": [1, 3, 2, 2]}, {"y": [1, 12]}, {"m": tiny.np.float32([1.0])})
    (tmp_path / "net.onnx").write_bytes(proto.SerializeToString())

    found = drafted(told, tmp_path / "net.onnx")

    assert found["output"]["kind"] == "probabilities"
    assert (found["input"]["top"], found["input"]["mean"]) == (255, [0.0, 0.0, 0.0])
    line = (tmp_path / "net.yaml").read_text().partition("\n")[0]
    schema = json.loads(Path(line.removeprefix("# yaml-language-server: $schema=")).read_text())
    assert errors(found, schema, schema) == []


@pytest.mark.parametrize(
    ("inputs", "word"), [({"ids": [1, 128]}, "ids 1x128"), ({"x": [1, 1, 8, 8]}, "x 1x1x8x8")]
)
def test_what_is_no_image_is_refused_in_one_line(told, tmp_path, inputs, word):
    path = network(tmp_path, inputs, {"y": [1, 2]})

    code, out, err = told("new", path)

    assert (code, out) == (2, "")
    assert err.startswith(f"error: {path}: takes {word}; a card can be proposed for one image")
    assert err.count("\n") == 1
    assert not path.with_suffix(".yaml").exists()


def test_a_file_that_is_there_is_kept(told, tmp_path):
    card = tiny.card(tmp_path)
    before = card.read_text()

    code, _, err = told("new", tmp_path / "model.onnx", "-o", card)

    assert (code, card.read_text()) == (2, before)
    assert "exists already" in err
