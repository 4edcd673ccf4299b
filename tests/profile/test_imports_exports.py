"""Metadata of exporters and converters: Ultralytics and RKNN-Toolkit2."""

import cv2
import numpy as np
import pytest
from importing import RKNN, YOLO, geometry, normalization, photo, written


def test_ultralytics_values(imports):
    profile = imports.profile(YOLO, "metadata.yaml")

    assert written(profile, "geometry") == {
        "kind": "letterbox", "rounding": "dali", "position": "center", "value": 114,
    }  # fmt: skip
    assert normalization(profile) == ([0.0] * 3, [255.0] * 3, "divide")
    assert profile.spec.decode.exif == "apply"
    assert "#   input: height: 640, width: 480" in imports.text(YOLO, "metadata.yaml")


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


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("dynamic: false", "dynamic: true", ":17: args.dynamic=true: the size of the network"),
        ("int8: false", "int8: true", ":16: args.int8=true: the exporter calibrated by itself"),
        ("channels: 3", "channels: 1", ":19: channels=1: a profile's images are in color"),
        ("task: detect", "task: dance", ":5: task=dance: a profile cannot express this"),
        ("task: detect", "task: classify", ":7: imgsz=[640, 480]: classify_transforms"),
        ("- 640\n- 480", "- 0\n- 480", ":7: imgsz=[0, 480]: a number of pixels"),
    ],
)
def test_ultralytics_refused(imports, old, new, problem):
    (line,) = imports.refused(YOLO.replace(old, new), "metadata.yaml")

    assert line.startswith(problem)


def test_rknn_values(imports):
    """rknn.config: (x - mean_values) / std_values; layer: one range for a layer's weights."""
    profile = imports.profile(RKNN, "model_config.yml")

    assert normalization(profile) == ([123.675, 116.28, 103.53], [58.395] * 3, "divide")
    quantizer = profile.spec.precision.quantizer
    assert (quantizer.weights, quantizer.activations) == ("per_tensor", "int8")
    assert profile.spec.decode.backend == "turbojpeg"


def test_rknn_without_quantization_is_fp16(imports):
    text = RKNN.replace("quantize: true", "quantize: false").replace("BGR: false", "BGR: true")
    profile = imports.profile(text.replace("[123", "[[123").replace("103.53]", "103.53]]"), "m.yml")

    assert (profile.spec.precision.storage, profile.spec.precision.quantizer) == ("fp16", None)
    assert profile.spec.color.order == "bgr"


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("asymmetric_quantized-8", "w4a16", ":11: models.configs.quantized_dtype=w4a16: a profile"),
        ("normal", "mmse", ":15: models.configs.quantized_algorithm=mmse: a profile cannot"),
        ("[58.395, 58.395, 58.395]", "[0, 1, 1]", ":13: models.configs.std_values=[0, 1, 1]: num"),
        ("quantize: true", "quantise: true", ":8: models.quantise=true: unknown key"),
    ],
)
def test_rknn_refused(imports, old, new, problem):
    imports.refuses(problem, RKNN.replace(old, new), "model_config.yml")
