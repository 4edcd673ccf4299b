"""A model file in place of a card: what its exporter wrote is read, and what is assumed is said."""

from __future__ import annotations

import json

import exports
import numpy as np
import onnx
import pytest
import tiny

from simulator import cli, compare, load_card
from simulator.errors import ModelError
from simulator.model import proposed
from simulator.model.card import Card

CELLS = 8 * 8 + 4 * 4 + 2 * 2
"""Cells of the strides 8, 16 and 32 in 64 x 64 pixels: YOLOv8's boxes, a third of YOLOv5's."""
CXCYWH, SHARE = [20, 30, 8, 10], [20 / 64, 30 / 64, 8 / 64, 10 / 64]
XYXY = [16, 25, 24, 35]
# The image of 128 x 96 pixels is half as large in a letterbox of 64 x 64, 8 columns from its left.
SQUARE, TALL, SQUASHED = [16, 25, 24, 35], [16, 50, 32, 70], [24, 50, 36, 70]
OLD = {key: exports.KEYS[key] for key in ("stride", "names")}
"""What ultralytics/yolov5 writes."""


def without(*keys, **others):
    return {key: one for key, one in (exports.KEYS | others).items() if key not in keys}


def v8(width=7, **others):
    """One box, 0.9 likely a person; a second one on it, of the same class, goes by NMS."""
    row = [*CXCYWH, 0.9, 0.1, 0, *[7] * (width - 7)]
    second = [21, *row[1:4], 0.6, *row[5:]]
    return exports.rows(CELLS, width, (10, row), (11, second)).transpose(0, 2, 1)


FORMS = {
    "yolov8 and yolo11": (v8(), exports.KEYS, 0.9, TALL),
    "segmenter": (v8(39), without(task="segment"), 0.9, TALL),
    "key points": (v8(58), without(task="pose", kpt_shape=[17, 3]), 0.9, TALL),
    "yolov8 with free sides": (v8(), exports.KEYS, 0.9, TALL),
    "yolov5u": (v8(), without("end2end", "args", "channels"), 0.9, TALL),
    "yolov5": (exports.rows(3 * CELLS, 8, (9, [*CXCYWH, 0.8, 0.5, 0, 0])), OLD, 0.4, TALL),
    "yolov5 of one class": (
        exports.rows(3 * CELLS, 6, (9, [*CXCYWH, 0.8, 0.5])), OLD | {"names": {0: "a"}}, 0.4, TALL
    ),
    "yolov8 of two classes": (
        v8()[:, :6], without(names={0: "a", 1: "b"}), 0.9, TALL
    ),
    "yolov10": (exports.rows(300, 6, (0, [*XYXY, 0.7, 0])), without(end2end=True), 0.7, TALL),
    "nms in the graph": (
        exports.rows(300, 6, (3, [*XYXY, 0.7, 0])), without(args={"nms": True}), 0.7, TALL
    ),
    "rt-detr": (
        exports.rows(300, 7, (5, [*SHARE, 0.9, 0.2, 0])),
        without(description="Ultralytics rtdetr-l model ", head="RTDETRDecoder"), 0.9, SQUASHED,
    ),
    "rt-detr before head": (
        exports.rows(300, 7, (5, [*SHARE, 0.9, 0.2, 0])),
        without(description="Ultralytics rtdetr-l model trained on coco.yaml"), 0.9, SQUASHED,
    ),
}  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_an_export_of_ultralytics_runs_as_it_is(form, tmp_path, cache):
    array, metadata, score, tall = FORMS[form]
    sides = ["height", "width"] if "free" in form else [64, 64]
    proto = exports.constant({"output0": array}, metadata, [1, 3, *sides])
    model = exports.write(tmp_path, proto)

    answers, first = exports.found(model, tmp_path / "images", 0.3)

    assert first.kind == "model_card" and "Ultralytics' metadata in the file" in first.text
    assert "assumed" not in first.text
    assert answers == {
        "square.png": [(pytest.approx(SQUARE, abs=1e-4), score, 0)],
        "tall.png": [(pytest.approx(tall, abs=1e-4), score, 0)],
    }


def test_the_card_of_an_export_has_no_mark_and_its_labels_beside_it(tmp_path, cache, capsys):
    model = exports.write(tmp_path, exports.constant({"output0": v8()}, exports.KEYS))

    assert cli.main(["model", "new", str(model)]) == 0

    said = capsys.readouterr().out
    assert "net.yaml: 0 fields are marked TODO" in said
    assert "went through pillow_fp32: 1x3x64x64 float32 → output0 1x7x84 float32" in said
    assert (tmp_path / "net.classes.txt").read_text() == "person\ntraffic light\ncat\n"
    assert load_card(tmp_path / "net.yaml").labels.names == ("person", "traffic light", "cat")
    assert Card(model).spec == load_card(tmp_path / "net.yaml").spec


def test_a_classifier_of_ultralytics(tmp_path, cache):
    """classify_transforms: the short side becomes imgsz, the middle is cut out, / 255."""
    proto = exports.constant({"output0": [[0.7, 0.2, 0.1]]}, without(task="classify"))

    card = load_card(exports.write(tmp_path, proto))

    assert (card.task.name, card.task.output.kind) == ("classification", "probabilities")
    assert (card.spec.geometry.kind, card.spec.geometry.short_side) == ("short_side_crop", 64)
    assert (card.spec.input.top, card.spec.input.mean) == (1, [0, 0, 0])
    assert card.labels.names == tuple(exports.NAMES.values())


@pytest.mark.parametrize(
    ("array", "columns", "threshold"),
    [(v8(), ["boxes", "scores"], 0.7),
     (exports.rows(3 * CELLS, 8), ["boxes", "objectness", "scores"], 0.6)],
)  # fmt: skip
def test_a_yolo_without_metadata_is_known_by_its_boxes(tmp_path, cache, array, columns, threshold):
    """84 cells in 64 x 64 pixels; it only looks like it, so one question is left."""
    model = exports.write(tmp_path, exports.constant({"out": array}, {}))

    cli.main(["model", "new", str(model)])
    card = Card(tmp_path / "net.yaml", draft=True)

    assert [told.partition(":")[0] for told in card.todo.values()] == ["task"]
    assert card.task.output.head.outputs[0].columns == tuple(columns)
    assert card.task.output.nms.iou_threshold == threshold
    assert card.labels.names == ("class 0", "class 1", "class 2")
    (tmp_path / "net.yaml").unlink()
    assert "is assumed: task detection, input.order rgb" in Card(model).told


def test_what_nobody_says_is_assumed_and_said_first(tmp_path, cache):
    tiny.card(tmp_path)
    data = tmp_path / "data"
    data.mkdir()
    (data / "a.png").write_bytes(tiny.encoded(tiny.picture((9, 99, 199)), "png"))
    options = {"train": "pillow_fp32", "deploy": "opencv_fp32", "data": data}

    result = compare(model=tmp_path / "model.onnx", out=tmp_path / "run", **options)

    assert result.summary["warnings"][0].text.startswith(
        "no model card is given; no file says, and is assumed: task classification, input.order "
        "rgb, input.top 1, input.mean [0.485, 0.456, 0.406], input.std [0.229, 0.224, 0.225], "
        "geometry.kind short_side_crop, geometry.short_side 37; to try others on labelled data: "
    )
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_text())
    kept = load_card(manifest["model"]["card"])
    assert kept.spec.input.mean == [0.485, 0.456, 0.406]
    again = compare(
        model=tmp_path / "model.onnx", out=tmp_path / "run", resume=True, **options
    )  # the same card, so the same run
    assert again.summary["flips"] == result.summary["flips"]


def test_a_card_beside_the_file_is_used_and_said(tmp_path, cache):
    """A YAML file that names another model, or is no card, is not."""
    card = tiny.card(tmp_path)
    beside = card.rename(tmp_path / "model.yaml")

    found = Card(tmp_path / "model.onnx")

    assert found.path == beside and "the model card is model.yaml, beside" in found.told
    assert found.spec.input.top == 255
    for text in ("model: other.onnx\n", "lr: 0.1\n", "- 1\n", "a: [\n"):
        beside.write_text(text)
        assert Card(tmp_path / "model.onnx").spec.input.top == 1


@pytest.mark.parametrize(
    ("outputs", "sides", "asked"),
    [({"boxes": (1, 9, 4), "scores": (1, 9, 2)}, [64, 64],
      ["output.head: how boxes 1x9x4, scores 1x9x2 become boxes", "labels: a file with"]),
     ({"y": (1, 3)}, ["h", "w"], ["input.height: free in the file", "input.width: free in"])],
)  # fmt: skip
def test_what_cannot_be_assumed_is_asked_for_in_one_line(tmp_path, cache, outputs, sides, asked):
    made = {name: np.zeros(shape, np.float32) for name, shape in outputs.items()}
    model = exports.write(tmp_path, exports.constant(made, {}, [1, 3, *sides]))

    with pytest.raises(ModelError) as refused:
        Card(model)

    (line,) = str(refused.value).splitlines()
    assert line.startswith(f"{model}: no model card, and the file does not say ")
    assert all(part in line for part in asked)
    keys = [part.partition(":")[0] for part in asked]
    flags = " ".join(f"--set {key}=VALUE" for key in keys)
    assert line.endswith(f"Write the card with simulate model new {model} {flags}")


def test_answers_on_the_command_line_leave_no_mark(tmp_path, cache, capsys):
    tiny.card(tmp_path)
    answers = ["input.order=bgr", "input.top=255", "input.mean=[1, 2, 3]", "input.std=[4, 5, 6]",
               "geometry.kind=squash", "geometry.short_side=null"]  # fmt: skip
    sets = [part for answer in answers for part in ("--set", answer)]

    assert cli.main(["model", "new", str(tmp_path / "model.onnx"), *sets]) == 0

    assert "model.yaml: 0 fields are marked TODO" in capsys.readouterr().out
    made = load_card(tmp_path / "model.yaml").spec
    assert (made.input.order, made.input.top, made.input.mean) == ("bgr", 255, [1, 2, 3])
    assert (made.geometry.kind, made.geometry.short_side) == ("squash", None)
    assert cli.main(["model", "new", str(tmp_path / "model.onnx"), "--set", "input.order"]) == 2
    assert "KEY=VALUE expected" in capsys.readouterr().err
    assert cli.main(["model", "new", str(tmp_path / "model.onnx"), "--set", "inptu.order=bgr"]) == 2
    assert "unknown field of a model card 'inptu'; did you mean 'input'" in capsys.readouterr().err


DAMAGED = [
    ({"names": "{0: 'a'"}, "labels: a file"), ({"names": {"a": 1}}, "labels: a file"),
    ({"imgsz": "x" * 9999}, ""),
    ({"task": "obb"}, "output.head: how output0"), ({"stride": "[" * 9999}, ""),
    ({"names": {0: "two\nlines", 1: "tab\there", 2: ""}}, ""),
]  # fmt: skip


@pytest.mark.parametrize(("change", "asked"), DAMAGED)
def test_damaged_metadata_is_asked_for_or_not_needed(tmp_path, cache, change, asked):
    model = exports.write(tmp_path, exports.constant({"output0": v8()}, without(**change)))

    if asked:
        with pytest.raises(ModelError, match=asked) as refused:
            Card(model)
        assert "\n" not in str(refused.value)
    else:
        assert len(Card(model).labels) == 3


@pytest.mark.parametrize("name", ["absent.onnx", "absent.tflite", f"{'a' * 300}.onnx", "a\0b.onnx"])
def test_a_model_file_that_is_not_there(tmp_path, name):
    with pytest.raises(ModelError, match="there is no such file"):
        Card(tmp_path / name)


def test_ones_own_classes_go_before_those_of_the_file(tmp_path, cache):
    model = exports.write(tmp_path, exports.constant({"output0": v8()}, exports.KEYS))
    (tmp_path / "mine.txt").write_text("a\nb\nc\n")

    assert cli.main(["model", "new", str(model), "--set", "labels=mine.txt"]) == 0

    assert load_card(tmp_path / "net.yaml").labels.names == ("a", "b", "c")
    assert not (tmp_path / "net.classes.txt").exists()


def test_a_network_that_takes_bytes_gets_pixels_and_leaves_their_order_to_be_asked(tmp_path):
    proto = tiny.classifier()
    proto.graph.input[0].type.tensor_type.elem_type = onnx.TensorProto.UINT8
    proto.graph.node.insert(0, onnx.helper.make_node("Cast", ["x"], ["f"], to=1))
    proto.graph.node[1].input[0] = "f"

    proposal = proposed.propose(exports.write(tmp_path, proto))

    found = {field.key: field.value for field in proposal.fields}
    assert (found["input.dtype"], found["input.top"]) == ("uint8", 255)
    assert (found["input.mean"], found["input.std"]) == ([0, 0, 0], [1, 1, 1])
    assert {field.key for field in proposal.todo} == {"input.order", "geometry.kind"}
