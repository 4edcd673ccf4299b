"""Documents of other tools in the forms that their public pages show, and what becomes of them."""

import copy
import json

import made_coreml
import numpy as np
import pytest
import tiny
from network_files import CONVERTER, IR, PLAIN, network

from simulator.contract.encoded import inspect
from simulator.errors import ProfileError
from simulator.importers import convert
from simulator.modalities.image.front_end import front_end
from simulator.model.card import Card
from simulator.pipeline.runtimes import RuntimePool
from simulator.profile.implementations import choose
from simulator.profile.load import load

DEEPSTREAM = """\
[property]
gpu-id=0
net-scale-factor=0.0039215697906911373
# 0=RGB, 1=BGR
model-color-format=0
onnx-file=yolov8s.onnx
model-engine-file=model_b1_gpu0_fp16.engine
labelfile-path=labels.txt
batch-size=1
network-mode=2
num-detected-classes=80
interval=0
gie-unique-id=1
process-mode=1
network-type=0
cluster-mode=2
maintain-aspect-ratio=1
symmetric-padding=1
infer-dims=3;640;640
parse-bbox-func-name=NvDsInferParseYolo
custom-lib-path=libnvdsinfer_custom_impl_Yolo.so

[class-attrs-all]
nms-iou-threshold=0.45
pre-cluster-threshold=0.25
topk=-1
"""

TAO = """\
results_dir: ???
evaluate:
  checkpoint: ${results_dir}/train/classifier_model_latest.pth
dataset:
  dataset: CLDataset
  img_size: 224
  augmentation:
    random_flip: {enable: True, hflip_probability: 0.5}
  train_dataset:
    images_dir: ${root_dir}/train
"""

RESNET = {
    "architecture": "resnet50",
    "num_classes": 1000,
    "num_features": 2048,
    "global_pool": "avg",
    "pretrained_cfg": {
        "tag": "a1_in1k",
        "custom_load": False,
        "input_size": [3, 224, 224],
        "test_input_size": [3, 288, 288],
        "fixed_input_size": False,
        "interpolation": "bicubic",
        "crop_pct": 0.875,
        "test_crop_pct": 1.0,
        "crop_mode": "center",
        "mean": [0.485, 0.456, 0.406],
        "std": [0.229, 0.224, 0.225],
        "num_classes": 1000,
        "pool_size": [7, 7],
        "first_conv": "conv1",
        "classifier": "fc",
    },
}

CLIP = {
    "crop_size": {"height": 224, "width": 224},
    "do_center_crop": True,
    "do_convert_rgb": True,
    "do_normalize": True,
    "do_rescale": True,
    "do_resize": True,
    "image_mean": [0.48145466, 0.4578275, 0.40821073],
    "image_processor_type": "CLIPImageProcessor",
    "image_std": [0.26862954, 0.26130258, 0.27577711],
    "resample": 3,
    "rescale_factor": 0.00392156862745098,
    "size": {"shortest_edge": 224},
}

CHECKER = """\
models:
  - name: resnet-50-pytorch
    launchers:
      - framework: onnx_runtime
        model: resnet-v1-50.onnx
        adapter: classification
    datasets:
      - name: imagenet_1000_classes
        reader: pillow_imread
        preprocessing:
          - type: resize
            size: 256
            aspect_ratio_scale: greater
            use_pillow: true
            interpolation: BILINEAR
          - type: crop
            size: 224
            use_pillow: true
          - type: normalization
            std: 255
          - type: normalization
            mean: (0.485, 0.456, 0.406)
            std: (0.229, 0.224, 0.225)
        metrics:
          - {name: accuracy@top1, type: accuracy, top_k: 1, reference: 0.76128}
"""


YOLO = """\
description: Ultralytics YOLO11n model trained on coco.yaml
author: Ultralytics
version: 8.3.0
stride: 32
task: detect
batch: 1
imgsz:
- 640
- 480
names:
  0: person
  1: bicycle
args:
  batch: 1
  half: false
  int8: false
  dynamic: false
  nms: false
channels: 3
"""

RKNN = """\
models:
  name: yolov5s
  platform: onnx
  model_file_path: ./yolov5s.onnx
  subgraphs:
    input_size_list:
      - 1,3,640,640
  quantize: true
  dataset: ./dataset.txt
  configs:
    quantized_dtype: asymmetric_quantized-8
    mean_values: [123.675, 116.28, 103.53]
    std_values: [58.395, 58.395, 58.395]
    quant_img_RGB2BGR: false
    quantized_algorithm: normal
    quantized_method: layer
"""


MMPRETRAIN = """\
dataset_type = 'ImageNet'
data_preprocessor = dict(
    num_classes=1000,
    mean=[123.675, 116.28, 103.53],
    std=[58.395, 57.12, 57.375],
    to_rgb=True)
test_pipeline = [
    dict(type='LoadImageFromFile'),
    dict(type='ResizeEdge', scale=256, edge='short', backend='pillow', interpolation='bicubic'),
    dict(type='CenterCrop', crop_size=224),
    dict(type='PackInputs'),
]
test_dataloader = dict(batch_size=32, dataset=dict(type=dataset_type, pipeline=test_pipeline))
"""

MMDEPLOY = {
    "pipeline": {
        "input": ["img"],
        "output": ["post_output"],
        "tasks": [
            {
                "type": "Task",
                "module": "Transform",
                "name": "Preprocess",
                "input": ["img"],
                "output": ["prep_output"],
                "transforms": [
                    {"type": "LoadImageFromFile", "backend_args": None},
                    {"type": "Resize", "keep_ratio": True, "size": [640, 640]},
                    {"type": "Pad", "pad_to_square": True, "pad_val": {"img": [114, 114, 114]}},
                    {"type": "Normalize", "mean": [0, 0, 0], "std": [1, 1, 1], "to_rgb": False},
                    {"type": "ImageToTensor", "keys": ["img"]},
                    {"type": "Collect", "keys": ["img"]},
                ],
            },
            {"type": "Task", "module": "Net", "name": "yolox", "is_batched": False},
        ],
    }
}

PADDLE = """\
mode: paddle
draw_threshold: 0.5
arch: YOLO
Preprocess:
- interp: 2
  keep_ratio: false
  target_size: [640, 640]
  type: Resize
- is_scale: true
  mean: [0.485, 0.456, 0.406]
  std: [0.229, 0.224, 0.225]
  type: NormalizeImage
- type: Permute
label_list: [person]
"""

PADDLE_CLAS = """\
Global:
  batch_size: 1
PreProcess:
  transform_ops:
    - ResizeImage:
        resize_short: 36
    - CropImage:
        size: 32
    - NormalizeImage:
        scale: 0.00392157
        mean: [0.485, 0.456, 0.406]
        std: [0.229, 0.224, 0.225]
        order: ''
        channel_num: 3
    - ToCHWImage:
"""

SCRIPT = """\
import torch
from torchvision import transforms as T
MEAN = (0.485, 0.456, 0.406)
STD = [0.229, 0.224, 0.225]
def preprocess(image, size=256):
    transform = T.Compose([
        T.Resize(256),
        T.CenterCrop(224),
        T.ToTensor(),
        T.Normalize(MEAN, STD),
    ])
    return transform(image.convert("RGB"))
"""

ALBUMENTATIONS = {
    "__version__": "1.3.1",
    "transform": {
        "__class_fullname__": "Compose",
        "p": 1.0,
        "transforms": [
            {"__class_fullname__": "LongestMaxSize", "always_apply": False, "p": 1,
             "max_size": 512, "interpolation": 1},
            {"__class_fullname__": "PadIfNeeded", "always_apply": False, "p": 1.0,
             "min_height": 512, "min_width": 512, "pad_height_divisor": None,
             "pad_width_divisor": None, "position": "center",
             "border_mode": 0, "value": [0, 0, 0], "mask_value": None},
            {"__class_fullname__": "Normalize", "always_apply": False, "p": 1.0,
             "mean": [0.485, 0.456, 0.406], "std": [0.229, 0.224, 0.225], "max_pixel_value": 255.0},
            {"__class_fullname__": "ToTensorV2", "always_apply": True, "p": 1.0},
        ],
        "bbox_params": None,
        "keypoint_params": None,
        "additional_targets": {},
    },
}  # fmt: skip

DALI = """\
import nvidia.dali as dali
import nvidia.dali.types as types
from nvidia.dali import fn

@dali.pipeline_def(batch_size=1, num_threads=1, device_id=0)
def pipe():
    images = dali.fn.external_source(device="cpu", name="DALI_INPUT_0")
    images = dali.fn.decoders.image(images, device="mixed", output_type=types.RGB)
    images = dali.fn.resize(images, resize_shorter=256, interp_type=types.INTERP_CUBIC)
    return dali.fn.crop_mirror_normalize(
        images, dtype=types.FLOAT, output_layout="CHW", crop=(224, 224),
        mean=[0.485 * 255, 0.456 * 255, 0.406 * 255],
        std=[0.229 * 255, 0.224 * 255, 0.225 * 255])
"""

DETECTRON = """\
MODEL:
  META_ARCHITECTURE: "GeneralizedRCNN"
  BACKBONE:
    NAME: "build_resnet_fpn_backbone"
INPUT:
  MIN_SIZE_TEST: 50
  MAX_SIZE_TEST: 96
"""

NAMES = {
    "detectron2": (DETECTRON, "mask_rcnn.yaml"),
    "dali": (DALI, "pipeline.py"),
    "torchvision": (SCRIPT, "eval.py"),
    "albumentations": (ALBUMENTATIONS, "transform.json"),
    "openmmlab": (MMPRETRAIN, "resnet50_8xb32_in1k.py"),
    "mmdeploy": (MMDEPLOY, "pipeline.json"),
    "paddle": (PADDLE, "infer_cfg.yml"),
    "deepstream": (DEEPSTREAM, "config_infer.txt"),
    "accuracy_checker": (CHECKER, "accuracy-check.yml"),
    "huggingface": (CLIP, "preprocessor_config.json"),
    "timm": (RESNET, "config.json"),
    "ultralytics": (YOLO, "metadata.yaml"),
    "rknn": (RKNN, "model_config.yml"),
    "openvino": (IR, "model.xml"),
    "keras": (CONVERTER, "image_converter.json"),
    "tflite": (network(PLAIN), "net.tflite"),
    "tao": (TAO, "spec.yaml"),
    "coreml": (made_coreml.program(), "net.mlmodel"),
}


def checker(
    steps, reader="pillow_imread", launcher="{framework: onnx_runtime, model: net.onnx, adapter: x}"
):
    """One model with these preprocessing steps, a line each."""
    lines = "".join(f"          - {{{step}}}\n" for step in steps)
    return (
        f"models:\n  - name: net\n    launchers:\n      - {launcher}\n    datasets:\n"
        f"      - name: data\n        reader: {reader}\n        preprocessing:\n{lines}"
    )


def changed(document, **values):
    """A copy of a JSON document with keys replaced; None removes; cfg_x is pretrained_cfg.x."""
    new = copy.deepcopy(document)
    for key, value in values.items():
        inner = new["pretrained_cfg"] if key.startswith("cfg_") else new
        name = key.removeprefix("cfg_")
        if value is None:
            inner.pop(name, None)
        else:
            inner[name] = value
    return new


class Importer:
    """Writes a document, imports it, and loads what came of it."""

    def __init__(self, folder):
        self.folder = folder

    def file(self, document, name):
        path = self.folder / name
        raw = json.dumps(document) if isinstance(document, dict) else document
        path.write_bytes(raw if isinstance(raw, bytes) else raw.encode())
        return path

    def text(self, document, file, **options):
        return convert(self.file(document, file), **options)

    def profile(self, document, file, **options):
        made = self.folder / "made.yaml"
        made.write_text(self.text(document, file, **options))
        return load(str(made))

    def gives(self, wanted, document, name, *said, **options):
        """The profile has these values by dotted key, and its document says these texts."""
        profile = self.profile(document, name, **options)
        assert {key: value_of(profile, key) for key in wanted} == wanted
        made = (self.folder / "made.yaml").read_text()
        assert [one for one in said if one not in made] == []

    def refused(self, document, name, **options):
        with pytest.raises(ProfileError) as caught:
            self.text(document, name, **options)
        lines = caught.value.problems
        assert all(line.isprintable() for line in lines), lines
        return [line.removeprefix(str(self.folder / name)) for line in lines]

    def refuses(self, problem, document, name, **options):
        """One of the lines begins with this problem."""
        problems = self.refused(document, name, **options)
        assert any(line.startswith(problem) for line in problems), problems

    def tensor(self, profile, image, size):
        """What the stack feeds a network of this size for an image, (3, H, W) float32."""
        spec = {**tiny.SPEC["input"], "height": size, "width": size}
        made = tiny.card(self.folder / "card", tiny.classifier(size), input=spec)
        value = inspect("x.png", tiny.encoded(image, "png"))
        for recipe in front_end(profile, choose(profile), Card(made).spec):
            value = recipe.open(RuntimePool())(value, None)
        return np.asarray(value)[0]


def value_of(profile, dotted):
    """A value of a profile by its dotted key."""
    found = profile.spec
    for part in dotted.split("."):
        found = found[part] if isinstance(found, dict) else getattr(found, part)
    return found


def written(profile, section):
    """A section of a profile, without what is not written."""
    return getattr(profile.spec, section).model_dump(exclude_none=True)


def photo(rows, columns, seed=0):
    """Noise, (rows, columns, 3) uint8."""
    return np.random.default_rng(seed).integers(0, 256, (rows, columns, 3), np.uint8)


def normalization(profile):
    """Mean, std and arithmetic of a profile."""
    made = profile.spec.normalize
    return made.mean, made.std, made.arithmetic


def geometry(profile):
    """The kind of a crop, its rounding and the short side before it; all that is written."""
    return tuple(written(profile, "geometry").values())
