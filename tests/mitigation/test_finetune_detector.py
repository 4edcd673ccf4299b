"""``simulate finetune`` of a detector: a head on two levels learns to find squares."""

import importlib.util
import json

import detection_cards
import numpy as np
import onnx
import pytest
import tiny
import yaml
from onnx import helper
from PIL import Image

from simulator import cli, finetune, quantize
from simulator.errors import ModelError, UserError

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("onnx2torch") is None, reason="onnx2torch is not installed"
)
HEAD = {
    **detection_cards.ANCHORS,
    "outputs": [
        {"names": ["s8", "s16"], "columns": ["scores"]},
        {"names": ["b8", "b16"], "columns": ["boxes"]},
    ],
    "layout": "maps",
    "score": {"activation": "sigmoid", "background": "none", "classes": "all"},
    "strides": [8, 16],
    "anchors": {"kind": "shapes", "shapes": [[[12, 12]], [[20, 20]]]},
}
OUTPUT = {
    "head": HEAD, "clip": "network", "operating_threshold": 0.5, "exp_clamp": "none",
    "nms": {**detection_cards.NMS, "kind": "greedy", "score_threshold": 0.05},
}  # fmt: skip


def network():
    """Two levels of four channels; "score" and "box" read the same weights on both."""
    rng = np.random.default_rng(0)
    nodes = [
        helper.make_node("Conv", ["x", "w1", "o4"], ["c1"], strides=[8, 8]),
        helper.make_node("Relu", ["c1"], ["p8"]),
        helper.make_node("Conv", ["p8", "w2", "o4"], ["c2"], strides=[2, 2]),
        helper.make_node("Relu", ["c2"], ["p16"]),
    ]
    for level in ("8", "16"):
        nodes += [
            helper.make_node("Conv", [f"p{level}", "ws", "low"], [f"s{level}"]),
            helper.make_node("Conv", [f"p{level}", "wb", "o4"], [f"b{level}"]),
        ]
    shapes = {"w1": (4, 3, 8, 8), "w2": (4, 4, 2, 2), "ws": (2, 4, 1, 1), "wb": (4, 4, 1, 1)}
    held = {name: rng.normal(0, 0.2, shape).astype(np.float32) for name, shape in shapes.items()}
    held |= {"o4": np.zeros(4, np.float32), "low": np.full(2, -2, np.float32)}
    outputs = {
        "s8": ["n", 2, 4, 4], "s16": ["n", 2, 2, 2], "b8": ["n", 4, 4, 4], "b16": ["n", 4, 2, 2]
    }  # fmt: skip
    return tiny.model(nodes, {"x": ["n", 3, 32, 32]}, outputs, held)


@pytest.fixture
def card(tmp_path):
    """A card, and 24 images of 64 x 64 with one square, white or blue."""
    rng = np.random.default_rng(1)
    images, found = [], []
    (tmp_path / "images").mkdir()
    for number in range(24):
        pixels = np.full((64, 64, 3), 60, np.uint8)
        size, kind = int(rng.integers(20, 40)), number % 2
        x, y = (int(value) for value in rng.integers(0, 64 - size, 2))
        pixels[y : y + size, x : x + size] = [(255, 255, 255), (20, 20, 255)][kind]
        Image.fromarray(pixels).save(tmp_path / "images" / f"{number:02}.png")
        name = f"{number:02}.png"
        images.append({"id": number, "file_name": name, "width": 64, "height": 64})
        box = {"bbox": [x, y, size, size], "area": size * size, "iscrowd": 0}
        found.append({"id": number, "image_id": number, "category_id": kind + 1, **box})
    names = [{"id": 1, "name": "white"}, {"id": 2, "name": "blue"}]
    whole = {"images": images, "annotations": found, "categories": names}
    (tmp_path / "boxes.json").write_text(json.dumps(whole))
    data = {"schema": 1, "name": "squares", "summary": "squares", "task": "detection",
            "format": "coco", "images": "images", "annotations": "boxes.json"}  # fmt: skip
    (tmp_path / "data.yaml").write_text(yaml.safe_dump(data))
    made = tiny.card(tmp_path, network(), task="detection", output=OUTPUT)
    (tmp_path / "labels.txt").write_text("white\nblue\n")
    return made


def tuned(card, out, epochs=2, **more):
    own = {"batch": 4, "learning_rate": 0.05, "threads": 1, "held_out": 0.25}
    return finetune(card, card.parent / "data.yaml", card.parent / out, epochs=epochs, **own | more)


def test_a_detector_learns_and_runs(card, capsys):
    words = ["finetune", "--model", card, "--data", card.parent / "data.yaml", "--epochs", "12"]
    words += ["--mix", "sysnoise-mix", "--out", card.parent / "out", "--batch", "4"]
    words += ["--learning-rate", "0.1", "--threads", "1", "--held-out", "0.25"]
    assert cli.main(list(map(str, words))) == 0
    said = capsys.readouterr()

    summary = json.loads((card.parent / "out" / "summary.json").read_text())
    assert summary["metric"] == "mAP" and summary["nc_below"] is None
    assert f"mAP {summary['accuracy']:.3f} on the images held out" in said.out
    assert summary["epochs"][-1]["loss"] < 0.8 * summary["epochs"][0]["loss"]
    assert summary["accuracy"] > 0.02 and summary["converged"]
    made = yaml.safe_load((card.parent / "out" / "model.yaml").read_text())
    assert made["summary"].startswith("12 epochs, mixed from sysnoise-mix: decode, resize; mAP 0.")
    words = ["--train", "pillow_fp32", "--deploy", "opencv_fp32", "--json", "--out"]
    places = [card.parent / "run", "--model", card.parent / "out" / "model.yaml"]
    more = ["--data", card.parent / "data.yaml"]
    assert cli.main(list(map(str, [*words, *places, *more]))) == 0
    summary = json.loads(capsys.readouterr().out)
    assert summary["samples"] == 24


def test_nodes_that_share_weights_share_what_they_learn(card):
    """The bias that all four merged zeros are is not shared beyond the head."""
    tuned(card, "out")
    graph = onnx.load(str(card.parent / "out" / "model.onnx")).graph
    names = [list(node.input[1:]) for node in graph.node if node.op_type == "Conv"]
    (first, second, score8, box8, score16, box16) = names
    values = {one.name: onnx.numpy_helper.to_array(one) for one in graph.initializer}

    assert score8 == score16 and box8 == box16
    assert len({first[1], second[1], box8[1]}) == 3
    before = {one.name: onnx.numpy_helper.to_array(one) for one in network().graph.initializer}
    assert np.abs(values[score8[0]] - before["ws"]).max() > 1e-4
    assert np.abs(values[box8[0]] - before["wb"]).max() > 1e-4


def edited(card, **fields):
    spec = yaml.safe_load(card.read_text()) | fields
    card.write_text(yaml.safe_dump(spec))


def test_a_head_that_is_none_of_these_is_refused_with_the_card(card):
    score = {**HEAD["score"], "activation": "softmax"}
    edited(card, output=OUTPUT | {"head": HEAD | {"score": score}})

    with pytest.raises(ModelError, match=r"card\.yaml: output: only heads with one sigmoid"):
        tuned(card, "out")


def test_what_moves_objects_or_is_rounded_is_refused(card):
    suite = {"schema": 1, "name": "boxed", "train": "pillow_bilinear_fp32", "summary": "one",
             "columns": {"fit": {"letterbox": {"geometry": {
                 "kind": "letterbox", "position": "center", "value": 0}}}}}  # fmt: skip
    (card.parent / "boxed.yaml").write_text(yaml.safe_dump(suite))
    edited(card, input={**tiny.SPEC["input"], "height": 32, "width": 32})

    with pytest.raises(UserError, match="only classifiers are fine-tuned, this is a detection"):
        quantize(card, card, card.parent / "out", method="lsq", bits=4, epochs=1)
    with pytest.raises(UserError, match="--augment: it moves pixels, and for detection"):
        tuned(card, "out", augment=("flip",))
    with pytest.raises(UserError, match="--columns: letterbox puts images elsewhere"):
        tuned(card, "out", mix=str(card.parent / "boxed.yaml"), columns=("fit",))
    with pytest.raises(UserError, match="--module: only classifiers are modules"):
        tuned(card, "out", module="own_net:Net")
