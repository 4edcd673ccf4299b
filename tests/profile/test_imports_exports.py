"""Metadata of exporters and converters: Ultralytics and RKNN-Toolkit2."""

import cv2
import numpy as np
import pytest
from importing import RKNN, YOLO, geometry, photo


def test_ultralytics_values(imports):
    wanted = {
        "geometry.kind": "letterbox", "geometry.rounding": "dali", "geometry.position": "center",
        "geometry.value": 114, "normalize.mean": [0.0] * 3, "normalize.std": [255.0] * 3,
        "normalize.arithmetic": "divide", "decode.exif": "apply",
    }  # fmt: skip
    imports.gives(wanted, YOLO, "metadata.yaml", "#   input: height: 640, width: 480")


@pytest.mark.parametrize(("rows", "columns"), [(50, 37), (31, 64), (17, 90)])
def test_ultralytics_tensor(imports, rows, columns):
    """LetterBox.__call__, step by step, and BasePredictor.preprocess."""
    image = photo(rows, columns)
    profile = imports.profile(YOLO.replace("- 640\n- 480", "- 32\n- 32"), "metadata.yaml")

    tensor = imports.tensor(profile, image, 32)

    r = min(32 / rows, 32 / columns)
    wide, high = round(columns * r), round(rows * r)
    dw, dh = (32 - wide) / 2, (32 - high) / 2
    top, bottom = round(dh - 0.1), round(dh + 0.1)
    left, right = round(dw - 0.1), round(dw + 0.1)
    bgr = cv2.resize(image[..., ::-1], (wide, high), interpolation=cv2.INTER_LINEAR)
    bgr = cv2.copyMakeBorder(
        bgr, top, bottom, left, right, cv2.BORDER_CONSTANT, value=(114, 114, 114)
    )
    wanted = bgr[..., ::-1].transpose(2, 0, 1).astype(np.float32) / 255
    np.testing.assert_array_equal(tensor, wanted)


def test_an_ultralytics_classifier(imports):
    """classify_transforms: Resize of the short side and CenterCrop, both imgsz, on a PIL image."""
    text = YOLO.replace("task: detect", "task: classify").replace("- 480", "- 640")
    profile = imports.profile(text.replace("half: false", "half: true"), "metadata.yaml")

    assert geometry(profile) == ("short_side_crop", "torchvision", 640)
    assert (profile.spec.resize.backend, profile.spec.precision.storage) == ("pillow", "fp16")


YOLO_FILE, RKNN_FILE = (YOLO, "metadata.yaml"), (RKNN, "model_config.yml")


@pytest.mark.parametrize(
    ("sample", "old", "new", "problem"),
    [
        (YOLO_FILE, "dynamic: false", "dynamic: true", ":7: imgsz=[640, 480]: with dynamic=True"),
        (YOLO_FILE, "int8: false", "int8: true",
         ":16: args.int8=true: the exporter calibrated by itself"),
        (YOLO_FILE, "channels: 3", "channels: 1",
         ":19: channels=1: a profile's images are in color"),
        (YOLO_FILE, "task: detect", "task: dance", ":5: task=dance: a profile cannot express this"),
        (YOLO_FILE, "task: detect", "task: classify", ":7: imgsz=[640, 480]: classify_transforms"),
        (YOLO_FILE, "- 640\n- 480", "- 0\n- 480", ":7: imgsz=[0, 480]: a number of pixels"),
        (RKNN_FILE, "asymmetric_quantized-8", "w4a16",
         ":11: models.configs.quantized_dtype=w4a16: a profile"),
        (RKNN_FILE, "normal", "mmse",
         ":15: models.configs.quantized_algorithm=mmse: a profile cannot"),
        (RKNN_FILE, "[58.395, 58.395, 58.395]", "[0, 1, 1]",
         ":13: models.configs.std_values=[0, 1, 1]: num"),
        (RKNN_FILE, "quantize: true", "quantise: true", ":8: models.quantise=true: unknown key"),
    ],
)  # fmt: skip
def test_what_cannot_be_said_is_refused(imports, sample, old, new, problem):
    document, name = sample
    imports.refuses(problem, document.replace(old, new), name)


def test_rknn_values(imports):
    """rknn.config: (x - mean_values) / std_values; layer: one range for a layer's weights."""
    wanted = {
        "normalize.mean": [123.675, 116.28, 103.53], "normalize.std": [58.395] * 3,
        "normalize.arithmetic": "divide", "precision.quantizer.weights": "per_tensor",
        "precision.quantizer.activations": "int8", "decode.backend": "turbojpeg",
    }  # fmt: skip
    imports.gives(wanted, RKNN, "model_config.yml")


def test_rknn_without_quantization_is_fp16(imports):
    text = RKNN.replace("quantize: true", "quantize: false").replace("BGR: false", "BGR: true")
    text = text.replace("[123", "[[123").replace("103.53]", "103.53]]")
    wanted = {"precision.storage": "fp16", "precision.quantizer": None, "color.order": "bgr"}
    imports.gives(wanted, text, "m.yml")
