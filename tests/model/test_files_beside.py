"""A model card from files that lie beside a network, as their tools write them."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import exports
import numpy as np
import pytest
import tiny
import yaml
from onnx import helper
from shared_data import shared

from simulator import cli, load_card
from simulator.model.card import Card

VIT = {
    "do_normalize": True, "do_resize": True, "do_rescale": True, "image_mean": [0.5, 0.5, 0.5],
    "image_std": [0.5, 0.5, 0.5], "image_processor_type": "ViTImageProcessor", "resample": 2,
    "rescale_factor": 0.00392156862745098, "size": {"height": 32, "width": 32},
}  # fmt: skip
"""google/vit-base-patch16-224, ``preprocessor_config.json``, for 32 pixels."""
CONFIG = {
    "architectures": ["ViTForImageClassification"], "model_type": "vit",
    "id2label": {"0": "tench", "1": "goldfish", "2": "great white shark"},
}  # fmt: skip
TIMM = {
    "architecture": "resnet18", "num_classes": 3, "label_names": ["a", "b", "c"],
    "pretrained_cfg": {
        "input_size": [3, 32, 32], "interpolation": "bilinear", "crop_pct": 0.8,
        "crop_mode": "center", "mean": [0.485, 0.456, 0.406], "std": [0.229, 0.224, 0.225],
    },
}  # fmt: skip
OMZ = """\
task_type: classification
framework: pytorch
input_info: [{name: data, shape: [1, 3, 32, 32], layout: NCHW}]
model_optimizer_args:
  - --input_shape=[1,3,32,32]
  - --mean_values=data[123.675,116.28,103.53]
  - --scale_values=data[58.395,57.12,57.375]
  - --reverse_input_channels
"""
RKNN = """\
models:
  name: net
  model_file_path: ./net.onnx
  quantize: false
  configs: {mean_values: [123.675, 116.28, 103.53], std_values: [58.82, 58.82, 58.82], quant_img_RGB2BGR: true}
"""  # noqa: E501
UNIT, SIGNED = ([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]), ([0.5] * 3, [0.5] * 3)
BYTES = ([123.675, 116.28, 103.53], [58.395, 57.12, 57.375])
BESIDE = {
    "transformers": (
        {"preprocessor_config.json": json.dumps(VIT), "config.json": json.dumps(CONFIG)},
        ("rgb", 1, *SIGNED), ("squash", None), ("tench", "goldfish", "great white shark"), 0,
    ),
    "timm": (
        {"config.json": json.dumps(TIMM)}, ("rgb", 1, *UNIT), ("short_side_crop", 40),
        ("a", "b", "c"), 0,
    ),
    "open model zoo": ({"model.yml": OMZ}, ("rgb", 255, *BYTES), ("short_side_crop", 37), None, 1),
    "rknn": (
        {"model_config.yml": RKNN}, ("bgr", 255, BYTES[0], [58.82] * 3), ("short_side_crop", 37),
        None, 1,
    ),
    "damaged": (
        {"config.json": "{", "model.yml": "a: [", "metadata.yaml": "imgsz: {"},
        ("rgb", 1, *UNIT), ("short_side_crop", 37), None, 2,
    ),
}  # fmt: skip


@pytest.mark.parametrize("tool", BESIDE)
@pytest.mark.parametrize("folder", ["", "onnx"])
def test_what_lies_beside_the_network_is_read(tool, folder, tmp_path, cache):
    """Optimum and Transformers.js put the network into a folder ``onnx`` below the rest."""
    files, pixels, geometry, labels, left = BESIDE[tool]
    tiny.card(tmp_path / folder)
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    model = tmp_path / folder / "model.onnx"

    assert cli.main(["model", "new", str(model), "-o", str(tmp_path / "new.yaml")]) == 0
    card = Card(tmp_path / "new.yaml", draft=True)

    given = card.spec.input
    assert (given.order, given.top, given.mean, given.std) == pixels
    assert (card.spec.geometry.kind, card.spec.geometry.short_side) == geometry
    assert (card.labels and card.labels.names) == labels
    assert len(card.todo) == left
    told = Card(model).told
    assert all(
        f"{name} beside it" in told for name in files if tool not in ("damaged", "transformers")
    )


@pytest.mark.parametrize(
    ("mean", "std", "top"),
    [([123.675, 116.28, 103.53], [58.4] * 3, 255), ([0.485] * 3, [0.229] * 3, 1)],
)  # fmt: skip
def test_a_graph_that_normalizes_is_fed_bare_pixels(tmp_path, cache, mean, std, top):
    shape = (1, 3, 1, 1)
    nodes = [
        helper.make_node("Sub", ["x", "m"], ["centered"]),
        helper.make_node("Div", ["centered", "s"], ["scaled"]),
        helper.make_node("GlobalAveragePool", ["scaled"], ["pooled"]),
        helper.make_node("Flatten", ["pooled"], ["y"]),
    ]
    numbers = {"m": np.float32(mean).reshape(shape), "s": np.float32(std).reshape(shape)}
    model = exports.write(tmp_path, tiny.model(nodes, constants=numbers))

    given = Card(model).spec.input

    assert (given.top, given.mean, given.std) == (top, [0.0] * 3, [1.0] * 3)


def test_metadata_of_a_tflite_file(tmp_path, cache):
    """Coral's MobileNet: 127.5 and 127.5, labels behind the network, of which one is no class."""
    model = shared("models") / "coral_mobilenet_v2_1.0_224_quant.tflite"

    assert cli.main(["model", "new", str(model), "-o", str(tmp_path / "new.yaml")]) == 0
    card = Card(tmp_path / "new.yaml", draft=True)

    given = card.spec.input
    assert (given.order, given.top, given.mean, given.std) == ("rgb", 255, [127.5] * 3, [127.5] * 3)
    assert (given.layout, given.height, card.task.output.background) == ("NHWC", 224, 1)
    assert (len(card.labels), card.labels.names[0]) == (1000, "tench, Tinca tinca")
    written = yaml.safe_load((tmp_path / "new.yaml").read_text())
    assert list(written["tflite"]) == ["int8"]
    assert [told.partition(":")[0] for told in card.todo.values()] == ["kind"]


DETR = {"id2label": {"0": "cat", "1": "dog"}, "size": {"height": 64, "width": 64}}


@pytest.mark.parametrize(
    ("model_type", "logits"),
    [("rt_detr", [np.log(9), -9]),
     ("yolos", [np.log(18), 0, 0])],  # softmax: 18 / 20, 1 / 20, and 1 / 20 for no object
)  # fmt: skip
def test_a_detector_of_transformers(tmp_path, cache, model_type, logits):
    """0.9 for a cat, as sigmoid or softmax; 64 x 64 squashed, boxes in fractions of it."""
    box = [20 / 64, 30 / 64, 8 / 64, 10 / 64]
    rest = [-9, -9] if model_type == "rt_detr" else [0, 0, 9]
    outputs = {"logits": [[logits, rest]], "pred_boxes": [[box, box]]}
    processor = VIT | {"size": DETR["size"], "do_normalize": False, "do_pad": False}
    config = {"architectures": ["XForObjectDetection"], "model_type": model_type} | DETR
    model = exports.write(tmp_path, exports.constant(outputs, {}))
    (tmp_path / "config.json").write_text(json.dumps(config))
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(processor))

    answers, first = exports.found(model, tmp_path / "images", 0.5)

    assert "preprocessor_config.json beside it" in first.text and "assumed" not in first.text
    assert answers == {
        "square.png": [(pytest.approx([16, 25, 24, 35], abs=1e-4), pytest.approx(0.9), 0)],
        "tall.png": [(pytest.approx([24, 50, 36, 70], abs=1e-4), pytest.approx(0.9), 0)],
    }


def test_a_segmenter_of_transformers(tmp_path, cache, capsys):
    """SegFormer gives scores at a quarter of the size; they are enlarged before the argmax."""
    model = exports.write(tmp_path, exports.constant({"logits": np.zeros((1, 2, 16, 16))}, {}))
    config = {"architectures": ["SegformerForSemanticSegmentation"]} | DETR
    processor = VIT | {"size": DETR["size"]}
    (tmp_path / "config.json").write_text(json.dumps(config))
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(processor))

    assert cli.main(["model", "check", str(model)]) == 0

    assert "no model card is given, read from preprocessor_config.json" in capsys.readouterr().out
    card = load_card(model)
    assert (card.task.name, card.labels.names) == ("segmentation", ("cat", "dog"))
    assert card.task.output.mask_resize.of == "logits"
    assert card.task.output.output_stride == 4


def test_a_tflite_of_ultralytics_says_what_is_packed_behind_it(tmp_path, cache):
    """A real network of ten classes, 32 x 32, with the metadata that the exporter appends."""
    model = tmp_path / "net.tflite"
    whole = (shared("models") / "mlperf_tiny_pretrainedResnet_large_float.tflite").read_bytes()
    model.write_bytes(whole)
    said = exports.KEYS | {"task": "classify", "names": {n: f"c{n}" for n in range(10)}}
    with zipfile.ZipFile(model, "a") as packed:
        packed.writestr("metadata.json", json.dumps(said))

    assert cli.main(["model", "new", str(model)]) == 0
    card = load_card(tmp_path / "net.yaml")

    assert (card.labels.names[9], card.task.output.kind) == ("c9", "probabilities")
    assert (card.spec.input.layout, card.spec.input.top, card.spec.input.height) == ("NHWC", 1, 32)


def test_a_yolox_is_known_by_its_boxes(cache):
    """As the card that was written by hand says, with which the published mAP came out."""
    found = Card(shared("models") / "yolox_nano_416.onnx")

    own = Card(Path(__file__).parents[1] / "cards" / "yolox_nano.yaml", draft=True)
    assert (found.spec.input, found.spec.geometry) == (own.spec.input, own.spec.geometry)
    assert found.task.output == own.task.output
    assert "is assumed: task detection" in found.told
