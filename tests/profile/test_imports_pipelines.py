"""Lists of steps: OpenMMLab's, MMDeploy's and Paddle's, against their own arithmetic."""

import json

import cv2
import numpy as np
import pytest
from importing import MMDEPLOY, MMPRETRAIN, PADDLE, PADDLE_CLAS, geometry, normalization, photo
from PIL import Image

from simulator.importers import convert

SIZES = [(50, 37), (31, 64), (45, 80)]
MEAN = np.array([123.675, 116.28, 103.53], np.float32)
STD = np.array([58.395, 57.12, 57.375], np.float32)


@pytest.mark.parametrize(("rows", "columns"), SIZES)
def test_mmpretrain(imports, rows, columns):
    """ResizeEdge on a PIL image, mmcv's CenterCrop, and ImgDataPreprocessor, step by step."""
    image = photo(rows, columns)
    text = MMPRETRAIN.replace("256", "36").replace("224", "32")

    tensor = imports.tensor(imports.profile(text, "net.py"), image, 32)

    w, h = (36, int(36 * rows / columns)) if columns < rows else (int(36 * columns / rows), 36)
    resized = np.asarray(Image.fromarray(image).resize((w, h), Image.Resampling.BICUBIC))
    y, x = max(0, round((h - 32) / 2.0)), max(0, round((w - 32) / 2.0))
    wanted = (resized[y : y + 32, x : x + 32].astype(np.float32) - MEAN) / STD
    np.testing.assert_array_equal(tensor, wanted.transpose(2, 0, 1))


@pytest.mark.parametrize(("rows", "columns"), SIZES)
def test_mmdeploy(imports, rows, columns):
    """mmcv's imrescale and impad, and BGR as it is read: YOLOX of MMDetection."""
    image = photo(rows, columns)
    text = json.dumps(MMDEPLOY).replace("640", "32")

    tensor = imports.tensor(imports.profile(text, "pipeline.json"), image, 32)

    scale = min(32 / max(rows, columns), 32 / min(rows, columns))
    w, h = int(columns * scale + 0.5), int(rows * scale + 0.5)
    wanted = np.full((32, 32, 3), 114, np.float32)
    wanted[:h, :w] = cv2.resize(image[..., ::-1], (w, h), interpolation=cv2.INTER_LINEAR)
    np.testing.assert_array_equal(tensor, wanted.transpose(2, 0, 1))


@pytest.mark.parametrize(("rows", "columns"), SIZES)
def test_paddle_clas(imports, rows, columns):
    """ResizeImage and CropImage of PaddleClas' deploy/python/preprocess.py, step by step."""
    image = photo(rows, columns)

    tensor = imports.tensor(imports.profile(PADDLE_CLAS, "inference_cls.yaml"), image, 32)

    percent = 36.0 / min(columns, rows)
    w, h = round(columns * percent), round(rows * percent)
    resized = cv2.resize(image, (w, h), interpolation=cv2.INTER_LINEAR)
    y, x = (h - 32) // 2, (w - 32) // 2
    unit = resized[y : y + 32, x : x + 32].astype(np.float32) * np.float32(0.00392157)
    wanted = (unit - np.float32([0.485, 0.456, 0.406])) / np.float32([0.229, 0.224, 0.225])
    # the profile has 1 / 255, and not its first digits
    np.testing.assert_allclose(tensor, wanted.transpose(2, 0, 1), atol=2e-6)


def test_paddle_detection(imports):
    wanted = {
        "resize.interpolation": "bicubic", "geometry.kind": "squash", "decode.exif": "apply",
        "color.order": "rgb", "normalize.arithmetic": "unit_divide",
    }  # fmt: skip
    imports.gives(wanted, PADDLE, "infer_cfg.yml", "height: 640, width: 640")
    profile = imports.profile(PADDLE, "infer_cfg.yml")
    np.testing.assert_allclose(normalization(profile)[:2], [MEAN, STD], rtol=1e-7)


PADDLE_SEG = """\
Deploy:
  model: model.pdmodel
  params: model.pdiparams
  transforms:
  - type: Resize
    target_size: [1024, 512]
  - type: Normalize
"""


def test_paddle_seg(imports):
    """target_size is (w, h); mean and std are 0.5 on [0, 1] by default."""
    profile = imports.profile(PADDLE_SEG, "deploy.yaml")

    assert geometry(profile) == ("squash",)
    assert normalization(profile)[:2] == ([127.5] * 3, [127.5] * 3)
    imports.gives({}, PADDLE_SEG, "deploy.yaml", "height: 512, width: 1024")


BASE = """\
img_norm_cfg = dict(mean=[0, 0, 0], std=[255., 255., 255.], to_rgb=True)
size = (416, 416)
test_pipeline = [
    dict(type='LoadImageFromFile'),
    dict(type='MultiScaleFlipAug', img_scale=size, flip=False, transforms=[
        dict(type='Resize', keep_ratio=True),
        dict(type='RandomFlip'),
        dict(type='Normalize', **img_norm_cfg),
        dict(type='Pad', size=size),
        dict(type='DefaultFormatBundle'),
        dict(type='Collect', keys=['img'])])]
data = dict(samples_per_gpu=2, test=dict(type='CocoDataset', pipeline=test_pipeline))
"""


def test_a_configuration_of_mmdetection_2(imports):
    """Steps inside of MultiScaleFlipAug; zeros padded after a mean of 0 are black."""
    profile = imports.profile(BASE, "yolov3.py")

    assert geometry(profile) == ("letterbox", "dali", "top_left", 0)
    assert normalization(profile) == ([0.0] * 3, [255.0] * 3, "multiply")


def test_bases_are_merged_as_mmengine_does(imports):
    """A mapping is merged key by key; a list is replaced; _base_.name is a base's value."""
    imports.file(BASE, "base.py")
    own = (
        "_base_ = ['./base.py']\n"
        "cfg = dict(mean=[1, 2, 3], std=[1, 1, 1], to_rgb=False)\n"
        "steps = [dict(type='LoadImageFromFile', imdecode_backend='pillow'),\n"
        "         dict(type='Resize', scale={{_base_.size}}, keep_ratio=False),\n"
        "         dict(type='Normalize', **cfg)]\n"
        "data = dict(test=dict(pipeline=steps))\n"
    )
    profile = imports.profile(own, "own.py")

    assert (geometry(profile), profile.spec.color.order) == (("squash",), "bgr")
    assert (profile.spec.decode.backend, profile.spec.normalize.mean) == ("pillow", [1, 2, 3])


def test_bases_below_read_base(imports):
    """Names come from the module that is named; what is changed in place is not known."""
    (imports.folder / "base").mkdir()
    (imports.folder / "base" / "default.py").write_text(BASE)
    own = "with read_base():\n    from .base.default import *\ntest_dataloader = None\n"

    assert geometry(imports.profile(own, "own.py"))[:2] == ("letterbox", "dali")
    for change in ("test_pipeline[1]['img_scale'] = (320, 320)\n", "test_pipeline.pop()\n"):
        imports.refuses(":1: test_pipeline: no list of steps", own + change, "own.py")


STEPS = "test_pipeline = [dict(type='LoadImageFromFile'),\n"


@pytest.mark.parametrize(
    ("steps", "problem"),
    [
        ("dict(type='Resize', scale=640, keep_ratio=True),"
         "dict(type='Pad', size_divisor=32, pad_val=dict(img=(1, 2, 3)))",
         ":2: test_pipeline.2.size_divisor=32: pads with 1, 2, 3 on 0-255"),
        ("dict(type='Resize', scale=640, keep_ratio=True), dict(type='Pad', size=(800, 800))",
         ":2: test_pipeline.2.size=[800, 800]: a profile pads once"),
        ("dict(type='ResizeEdge', scale=256)", ":2: test_pipeline.1.scale=256: the size of the"),
        ("dict(type='Resize', scale=side())", ":2: test_pipeline.1.scale="),
        ("dict(type='Resize', scale=SIDE)", ":2: test_pipeline.1.scale=SIDE: a number of pixels"),
        ("dict(type='PhotoMetricDistortion')", ":2: test_pipeline.1.PhotoMetricDistortion: a"),
        ("dict(type='Resize', img_scale=(640, 640))", ":2: test_pipeline.1.keep_ratio: not"),
        ("dict(type='Resize', scale=640, factor=2)", ":2: test_pipeline.1.factor=2: unknown key"),
        ("dict(type='Resize', scale=640, keep_ratio=True),"
         "dict(type='Pad', pad_to_square=True, pad_val=dict(img=(1, 2, 3)))",
         ":2: test_pipeline.2.pad_to_square=true: pads with 1, 2, 3 on 0-255"),
    ],
)  # fmt: skip
def test_what_cannot_be_said_is_refused(imports, steps, problem):
    problem = problem.replace(": pipeline", ": test_pipeline")
    imports.refuses(problem, f"{STEPS}{steps}]\n", "net.py")
    assert len(imports.refused(f"{STEPS}{steps}]\n", "net.py")) == 1


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("_base_ = './gone.py'\n", ":1: _base_=./gone.py: not there; keep the files"),
        ("_base_ = './self.py'\n", ":1: _base_=./self.py: bases in a circle"),
        ("test_pipeline = [\n", ":1: not Python: '[' was never closed"),
        ("test_pipeline = " + "[" * 3000 + "]" * 3000, ":1: not Python: "),
        (f"test_pipeline = [1] * {10**9}\n", ":1: test_pipeline: no list of steps"),
        ("test_pipeline = open('/etc/passwd')\n", ":1: test_pipeline: no list of steps"),
        ("test_pipeline = [1]\ntest_pipeline.clear()\n", ":1: test_pipeline: no list of steps"),
        ("test_pipeline = [dict()]\nif 1:\n    test_pipeline = []\n", ":1: test_pipeline: no list"),
        ("\n".join(["a = [1]", *["a = [a, a]"] * 60, "test_pipeline = a"]), ":62: test_pipeline=["),
    ],
)  # fmt: skip
def test_python_is_read_and_never_run(imports, text, problem):
    imports.refuses(problem, text, "self.py", format="openmmlab")


def test_a_deploy_json_takes_the_pipeline_beside_it(imports):
    imports.file(MMDEPLOY, "pipeline.json")
    model = {"name": "yolox", "net": "end2end.onnx", "precision": "FP16"}
    deploy = {"version": "1.0", "task": "Detector", "customs": [], "models": [model]}
    profile = imports.profile(deploy, "deploy.json")

    assert geometry(profile) == ("letterbox", "dali", "top_left", 114)
    assert profile.spec.evidence["precision"].kind == "assumed"


SHITU = """\
Global: {infer_imgs: x}
DetPreProcess:
  transform_ops:
    - DetResize: {interp: 2, keep_ratio: false, target_size: [640, 640]}
    - DetNormalizeImage: {is_scale: true, mean: [0.5, 0.5, 0.5], std: [0.5, 0.5, 0.5]}
    - DetPermute: {}
RecPreProcess:
  transform_ops:
    - ResizeImage: {size: [224, 224], return_numpy: False}
    - NormalizeImage: {scale: 0.00392157, mean: [0.5, 0.5, 0.5], std: [0.5, 0.5, 0.5]}
"""
OLD = """\
arch: YOLO
Preprocess:
- {type: Resize, interp: 2, max_size: 0, target_size: 608, use_cv2: true, resize_box: false}
- {type: Normalize, is_channel_first: false, is_scale: true, mean: [0, 0, 0], std: [1, 1, 1]}
- {type: Permute, channel_first: true, to_bgr: TURNED}
"""


def test_two_stacks_of_paddle(imports):
    path = imports.file(SHITU, "shitu.yaml")
    sizes = ["height: 640, width: 640", "height: 224, width: 224"]
    assert all(size in convert(path, entry=at) for at, size in enumerate(sizes, 1))


@pytest.mark.parametrize(("turned", "order"), [("false", "rgb"), ("true", "bgr")])
def test_old_files_of_paddle(imports, turned, order):
    wanted = {"geometry.kind": "squash", "color.order": order, "normalize.std": [255.0] * 3}
    imports.gives(wanted, OLD.replace("TURNED", turned), "infer_cfg.yml")


def test_what_replaces_a_base_is_no_key(imports):
    more = "data_preprocessor = dict(_delete_=True, mean=[0, 0, 0], std=[255, 255, 255])\n"
    imports.file(MMPRETRAIN, "base.py")
    profile = imports.profile(f"_base_ = './base.py'\n{more}", "net.py")
    assert normalization(profile)[1] == [255.0] * 3
