"""Processors whose images differ in size: the tensors, masks and boxes of their own library."""

import json
from types import SimpleNamespace

import cv2
import numpy as np
import onnxruntime
import pytest
import tiny
import torch
import yaml
from importing import DETECTRON, photo
from onnx import TensorProto, helper
from PIL import Image
from transformers import (
    DetrImageProcessorPil,
    LevitImageProcessorPil,
    MaskFormerImageProcessorPil,
    PoolFormerImageProcessorPil,
    SamImageProcessorPil,
    YolosImageProcessorPil,
)
from transformers.image_utils import SizeDict

from simulator.contract.encoded import inspect
from simulator.experiments.common import chosen
from simulator.experiments.session import Session
from simulator.importers import convert
from simulator.modalities.image.front_end import front_end
from simulator.model.card import Card
from simulator.model.proposed import propose
from simulator.pipeline.local import LocalExecutor
from simulator.pipeline.plan import Arm, plan
from simulator.pipeline.runtimes import RuntimePool
from simulator.profile.implementations import choose
from simulator.profile.load import load

SIZES = [(37, 53), (64, 48), (20, 90), (33, 33)]
DETR = {
    "do_normalize": True, "do_resize": True, "feature_extractor_type": "DetrFeatureExtractor",
    "format": "coco_detection", "image_mean": [0.485, 0.456, 0.406],
    "image_std": [0.229, 0.224, 0.225], "max_size": 96, "size": 40,
}  # fmt: skip
"""As that of facebook/detr-resnet-50, with other sizes."""
YOLOS = {
    **{key: one for key, one in DETR.items() if key not in ("max_size", "feature_extractor_type")},
    "image_processor_type": "YolosImageProcessorPil", "do_pad": True, "resample": 2,
    "size": {"shortest_edge": 40, "longest_edge": 96},
}  # fmt: skip
MASKFORMER = {
    **YOLOS, "image_processor_type": "MaskFormerImageProcessorPil", "size_divisor": 32,
    "ignore_index": 255, "do_reduce_labels": True,
}  # fmt: skip
BOX = {"height": 96, "width": 112}


def detr():
    """A network in the form of DETR: two queries, a place in 0 to 1 by the sum along the mask.

    A query is of a color: how much more of it there is than of another weighs a pixel, the box is
    the mean place and the spread of the weights.
    """
    nodes = [helper.make_node("Cast", ["pixel_mask"], ["mask"], to=TensorProto.FLOAT)]
    for axis, at in (("x", "2"), ("y", "1")):
        nodes += [
            helper.make_node("CumSum", ["mask", f"axis{at}"], [f"sum{axis}"]),
            helper.make_node("ReduceMax", [f"sum{axis}"], [f"all{axis}"], axes=[1, 2]),
            helper.make_node("Sub", [f"sum{axis}", "half"], [f"from{axis}"]),
            helper.make_node("Div", [f"from{axis}", f"all{axis}"], [f"place{axis}"]),
        ]
    nodes += [
        helper.make_node("Conv", ["pixel_values", "colors"], ["more"]),
        helper.make_node("Relu", ["more"], ["weights"]),
        helper.make_node("ReduceSum", ["weights", "sides"], ["all"], keepdims=1),
        helper.make_node("Add", ["all", "little"], ["whole"]),
        helper.make_node("Div", ["weights", "whole"], ["share"]),
    ]
    for axis in "xy":
        nodes += [
            helper.make_node("Unsqueeze", [f"place{axis}", "axis1"], [f"map{axis}"]),
            helper.make_node("Mul", ["share", f"map{axis}"], [f"moved{axis}"]),
            helper.make_node("ReduceSum", [f"moved{axis}", "sides"], [f"mean{axis}"], keepdims=1),
            helper.make_node("Sub", [f"map{axis}", f"mean{axis}"], [f"off{axis}"]),
            helper.make_node("Mul", [f"off{axis}", f"off{axis}"], [f"square{axis}"]),
            helper.make_node("Mul", ["share", f"square{axis}"], [f"part{axis}"]),
            helper.make_node("ReduceSum", [f"part{axis}", "sides"], [f"var{axis}"], keepdims=1),
            helper.make_node("Mul", [f"var{axis}", "twelve"], [f"more{axis}"]),
            helper.make_node("Sqrt", [f"more{axis}"], [f"size{axis}"]),
        ]
    nodes += [
        helper.make_node("Concat", ["meanx", "meany", "sizex", "sizey"], ["four"], axis=2),
        helper.make_node("Reshape", ["four", "rows"], ["pred_boxes"]),
        helper.make_node("Reshape", ["all", "row"], ["found"]),
        helper.make_node("Min", ["found", "ten"], ["some"]),
        helper.make_node("Mul", ["some", "classes"], ["logits"]),
    ]
    constants = {
        "axis1": np.array([1]), "axis2": np.array([2]), "half": np.float32([0.5]),
        "colors": np.float32([[1, -1, -1], [-1, -1, 1]]).reshape(2, 3, 1, 1),
        "sides": np.array([2, 3]), "little": np.float32([1e-6]), "twelve": np.float32([12]),
        "rows": np.array([1, 2, 4]), "row": np.array([1, 2, 1]), "ten": np.float32([10]),
        "classes": np.float32([[[1, 0, 0], [0, 1, 0]]]),
    }  # fmt: skip
    proto = tiny.model(
        nodes, {"pixel_values": [1, 3, "h", "w"]}, {"logits": [1, 2, 3], "pred_boxes": [1, 2, 4]},
        constants,
    )  # fmt: skip
    mask = helper.make_tensor_value_info("pixel_mask", TensorProto.INT64, [1, "h", "w"])
    proto.graph.input.append(mask)
    return proto


def fed(folder, profile, image):
    """What a profile of :data:`DETR` feeds a network with a mask."""
    spec = {**tiny.SPEC["input"], "height": "free", "width": "free", "name": "pixel_values",
            "mask": "pixel_mask"}  # fmt: skip
    own = {"kind": "keep_ratio", "shortest": 40, "longest": 96, "multiple_of": 1, "value": "zero"}
    card = Card(tiny.card(folder / "card", detr(), input=spec, geometry=own)).spec
    value = inspect("x.png", tiny.encoded(image, "png"))
    for recipe in front_end(profile, choose(profile), card):
        value = recipe.open(RuntimePool())(value, None)
    return value


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(
    ("document", "processor"),
    [
        (DETR, DetrImageProcessorPil),
        (YOLOS, YolosImageProcessorPil),
        (MASKFORMER, MaskFormerImageProcessorPil),
    ],
)
def test_tensors_and_masks_of_transformers(imports, document, processor, size):
    """Alone, and padded to a size as in a batch with a larger image."""
    image = photo(*size)
    own = {key: one for key, one in document.items() if not key.endswith("_type")}
    text = imports.text(document, "preprocessor_config.json")
    for padded in (False, True):
        made = imports.folder / "made.yaml"
        fixed = f"  input_size: {{kind: fixed, sizes: [[{BOX['height']}, {BOX['width']}]]}}\n"
        made.write_text(text.replace("normalize:\n", f"{fixed}normalize:\n") if padded else text)
        found = fed(imports.folder, load(str(made)), image)

        size = SizeDict(**BOX) if document is MASKFORMER else BOX
        more = {"pad_size": size} if padded else {}
        wanted = processor(**own)(image, return_tensors="np", **more)
        for name in ("pixel_values", "pixel_mask"):
            np.testing.assert_array_equal(found[name], wanted[name])
        assert found["pixel_values"].flags.c_contiguous


@pytest.mark.parametrize(
    ("processor", "own"),
    [
        (LevitImageProcessorPil, {"size": {"shortest_edge": 32}}),
        (PoolFormerImageProcessorPil, {"size": {"shortest_edge": 32}, "crop_pct": 0.8}),
        (SamImageProcessorPil, {"size": {"longest_edge": 32}}),
    ],
)
def test_sizes_that_only_a_class_knows(imports, processor, own):
    side = {"height": 32, "width": 32}
    made = processor(**own, **{"pad_size" if "Sam" in processor.__name__ else "crop_size": side})
    profile = imports.profile(made.to_json_string(), "preprocessor_config.json")

    for size in SIZES:
        wanted = made(photo(*size), return_tensors="np")["pixel_values"][0]
        np.testing.assert_array_equal(imports.tensor(profile, photo(*size), 32), wanted)


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """The files of an export, images with a red and a blue square, and what Transformers finds."""
    folder = tmp_path_factory.mktemp("detr")
    model = folder / "net.onnx"
    model.write_bytes(detr().SerializeToString())
    (folder / "preprocessor_config.json").write_text(json.dumps(DETR))
    config = {"architectures": ["DetrForObjectDetection"], "model_type": "detr",
              "id2label": {"0": "red", "1": "blue"}}  # fmt: skip
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "images").mkdir()
    session = onnxruntime.InferenceSession(model)
    own = {key: one for key, one in DETR.items() if not key.endswith("_type")}
    processor, found = DetrImageProcessorPil(**own), {}
    for rows, columns in SIZES:
        image = np.full((rows, columns, 3), 40, np.uint8)
        image[4:14, 5:17], image[8:18, columns - 14 :] = (220, 20, 20), (20, 20, 220)
        (folder / "images" / f"{rows}.png").write_bytes(tiny.encoded(image, "png"))
        given = dict(processor(image, return_tensors="np"))
        logits, boxes = map(torch.tensor, session.run(["logits", "pred_boxes"], given))
        outputs = SimpleNamespace(logits=logits, pred_boxes=boxes)
        answer = processor.post_process_object_detection(outputs, 0.5, [(rows, columns)])[0]
        assert answer["labels"].tolist() == [0, 1]
        found[f"{rows}.png"] = answer["boxes"].numpy()
    return model, found


@pytest.mark.parametrize(
    ("profile", "changes"),
    [
        ("pillow_fp32", []),
        ("pillow_fp32", ["geometry.input_size={kind: fixed, sizes: [[96, 96], [48, 96]]}"]),
        ("openvino_fp16", ["geometry.input_size={kind: fixed, sizes: [[96, 96]]}"]),
        # one batch of two masks, one of a mask alone that is filled up
        ("pillow_fp32", ["runtime.batch=2",
                         "geometry.input_size={kind: fixed, sizes: [[96, 96], [48, 96]]}"]),
    ],
)  # fmt: skip
def test_a_network_in_the_form_of_detr_finds_what_transformers_finds(
    exported, cache, tmp_path, profile, changes
):
    """The profile is imported, and the card proposed. The mask tells padding from image, so that
    boxes are 0 to 1 of the image, whatever surrounds it."""
    model, wanted = exported
    own = tmp_path / "own.yaml"
    own.write_text(convert(model.parent / "preprocessor_config.json", base=profile))
    with Session.open(model, model.parent / "images", None, 0, 1, None, None) as session:
        one = chosen(str(own), changes)
        stack = session.builder.stack("deploy", one, {"train": one, "deploy": one})
        executor = LocalExecutor(session.card.modality, session.builder.runtimes, workers=1)
        opened = executor.open(plan({Arm("one"): stack.chain}))
        for item in session.dataset.items:
            found = opened.walk(executor.context(item)).answers()[0].prediction
            places = np.argsort(found.classes)
            assert found.classes[places].tolist() == [0, 1]
            np.testing.assert_allclose(found.boxes[places], wanted[item.name], atol=0.05)


def test_the_card_of_an_export_with_a_mask(exported):
    card = yaml.safe_load(propose(exported[0]).text(exported[0], "net.onnx", "labels.txt"))

    assert card["input"]["mask"] == "pixel_mask" and card["input"]["height"] == "free"
    assert card["geometry"] == {
        "kind": "keep_ratio", "rounding": "transformers", "shortest": 40, "longest": 96,
        "multiple_of": 1, "value": "zero",
    }  # fmt: skip


MMDET = """\
test_pipeline = [
    dict(type='LoadImageFromFile'),
    dict(type='Resize', scale=(96, 40), keep_ratio=True),
    dict(type='PackDetInputs')]
test_dataloader = dict(dataset=dict(pipeline=test_pipeline))
model = dict(data_preprocessor=dict(
    type='DetDataPreprocessor', mean=[123.675, 116.28, 103.53], std=[58.395, 57.12, 57.375],
    bgr_to_rgb=True, pad_size_divisor=32))
"""


@pytest.mark.parametrize(("rows", "columns"), SIZES)
def test_mmdetection(imports, rows, columns):
    """mmcv's ``rescale_size`` and ``imresize``, then DetDataPreprocessor, which pads with 0."""
    image = photo(rows, columns)

    found = fed(imports.folder, imports.profile(MMDET, "faster_rcnn.py"), image)

    scale = min(96 / max(rows, columns), 40 / min(rows, columns))
    w, h = int(columns * scale + 0.5), int(rows * scale + 0.5)
    resized = cv2.resize(image[..., ::-1], (w, h), interpolation=cv2.INTER_LINEAR)[..., ::-1]
    mean, std = np.float32([123.675, 116.28, 103.53]), np.float32([58.395, 57.12, 57.375])
    wanted = np.zeros((1, 3, -(-h // 32) * 32, -(-w // 32) * 32), np.float32)
    wanted[0, :, :h, :w] = ((resized - mean) / std).transpose(2, 0, 1)
    np.testing.assert_array_equal(found["pixel_values"], wanted)


@pytest.mark.parametrize(
    ("rows", "columns", "short", "long"), [*((*one, 40, 96) for one in SIZES[:3]), (37, 53, 60, 50)]
)
def test_detectors_of_torchvision(imports, rows, columns, short, long):
    """GeneralizedRCNNTransform: normalize, interpolate, zeros to multiples of 32. It resizes
    normalized numbers, and we resize bytes: the same but for half a level. A long side may be
    limited to less than the short one is resized to."""
    image, mean, std = photo(rows, columns), [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
    text = "from torchvision.models.detection.transform import GeneralizedRCNNTransform\n"
    text += f"transform = GeneralizedRCNNTransform({short}, {long}, {mean}, {std})\n"

    found = fed(imports.folder, imports.profile(text, "detector.py"), image)["pixel_values"]

    scale = min(short / min(rows, columns), long / max(rows, columns))
    unit = torch.from_numpy(image).permute(2, 0, 1).float() / 255
    m, s = (torch.tensor(one)[:, None, None] for one in (mean, std))
    made = torch.nn.functional.interpolate(
        ((unit - m) / s)[None], scale_factor=scale, mode="bilinear", recompute_scale_factor=True
    ).numpy()
    h, w = made.shape[2:]
    wanted = np.zeros((1, 3, -(-h // 32) * 32, -(-w // 32) * 32), np.float32)
    wanted[..., :h, :w] = made
    np.testing.assert_allclose(found, wanted, atol=0.5 / 57.12 + 1e-5)


@pytest.mark.parametrize(("rows", "columns"), SIZES[:3])
def test_detectron2(imports, rows, columns):
    """ResizeShortestEdge with Pillow, BGR, preprocess_image; the base of the file counts."""
    image = photo(rows, columns)
    imports.file(DETECTRON, "Base-RCNN-FPN.yaml")
    text = "_BASE_: Base-RCNN-FPN.yaml\nINPUT: {MIN_SIZE_TEST: 40}\n"

    found = fed(imports.folder, imports.profile(text, "mask_rcnn.yaml"), image)

    scale = min(40 / min(rows, columns), 96 / max(rows, columns))
    h, w = int(rows * scale + 0.5), int(columns * scale + 0.5)
    resized = np.asarray(Image.fromarray(image[..., ::-1]).resize((w, h), 2), np.float32)
    wanted = np.zeros((1, 3, -(-h // 32) * 32, -(-w // 32) * 32), np.float32)
    wanted[0, :, :h, :w] = (resized - np.float32([103.53, 116.28, 123.675])).transpose(2, 0, 1)
    np.testing.assert_array_equal(found["pixel_values"], wanted)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ("TEST: {AUG: {ENABLED: true}}", ":1: AUG.ENABLED=true: several inputs"),
        ("INPUT: {FORMAT: L}", ":1: FORMAT=L: a profile cannot express"),
        ("_BASE_: none.yaml", ":1: _BASE_=none.yaml: not there"),
        ("_BASE_: [one.yaml, two.yaml]", ':1: _BASE_=["one.yaml", "two.yaml"]: one file expected'),
    ],
)
def test_what_of_detectron2_is_refused(imports, change, problem):
    text = f"{change}\nMODEL: {{META_ARCHITECTURE: RetinaNet}}\n"
    lines = imports.refused(text, "net.yaml", format="detectron2")
    assert [line for line in lines if problem.partition(": ")[2] in line]
