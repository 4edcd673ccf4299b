"""The order in which libraries normalize, to the bit, on every level of three channels."""

from __future__ import annotations

import cv2
import MNN
import MNN.cv
import ncnn
import numpy as np
import openvino as ov
import pytest

from simulator.modalities.image.sections import image_spec
from simulator.modalities.image.steps import normalize
from simulator.profile.load import load

LEVELS = np.repeat(np.arange(256, dtype=np.uint8)[None, :, None], 3, axis=2)
"""(1, 256, 3) uint8: an image of one row."""
MEAN, STD = [123.675, 116.28, 103.53], [58.395, 57.12, 57.375]
NORM = [1 / one for one in STD]


def with_ncnn():
    mat = ncnn.Mat.from_pixels(LEVELS, ncnn.Mat.PixelType.PIXEL_RGB, 256, 1)
    mat.substract_mean_normalize(MEAN, NORM)
    return np.array(mat)


def with_mnn():
    process = MNN.CVImageProcess({
        "sourceFormat": MNN.CV_ImageFormat_RGB, "destFormat": MNN.CV_ImageFormat_RGB,
        "mean": (*MEAN, 0.0), "normal": (*NORM, 1.0),
    })  # fmt: skip
    shape = (1, 3, 1, 256)
    zeros = np.zeros(shape, np.float32)
    tensor = MNN.Tensor(shape, MNN.Halide_Type_Float, zeros, MNN.Tensor_DimensionType_Caffe)
    process.convert(LEVELS, 256, 1, 0, tensor)
    return np.array(tensor.getData(), np.float32).reshape(shape)[0]


def with_mnn_cv():
    image = MNN.expr.const(LEVELS, [1, 256, 3], MNN.expr.NHWC, MNN.expr.uint8)
    nearest = MNN.cv.INTER_NEAREST
    resized = MNN.cv.resize(image, (256, 1), interpolation=nearest, code=-1, mean=MEAN, norm=NORM)
    return np.array(resized.read()).transpose(2, 0, 1)


@pytest.mark.parametrize(
    ("name", "call"), [("ncnn_fp32", with_ncnn), ("mnn_fp32", with_mnn), ("mnn_fp32", with_mnn_cv)]
)
def test_a_runtime_normalizes_as_its_profile_says(name, call):
    order = image_spec(load(name)).normalize.arithmetic

    np.testing.assert_array_equal(normalize(LEVELS, MEAN, STD, order, "NCHW")[0], call())


def test_openvino_without_a_resize_rounds_once():
    """Behind a resize it rounds twice, as in test_native_claims.py."""
    given = ov.opset13.parameter([1, 3, 1, 256], ov.Type.f32)
    steps = ov.preprocess.PrePostProcessor(ov.Model([ov.opset13.result(given)], [given]))
    steps.input().tensor().set_element_type(ov.Type.u8).set_layout(ov.Layout("NHWC"))
    steps.input().preprocess().convert_element_type(ov.Type.f32).mean(MEAN).scale(STD)
    steps.input().model().set_layout(ov.Layout("NCHW"))
    model = ov.compile_model(steps.build(), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})

    ours = normalize(LEVELS, MEAN, STD, "fused_multiply_add", "NCHW")

    np.testing.assert_array_equal(ours, model(LEVELS[None])[0])


def test_mediapipe_rounds_as_opencv_converts():
    """Mat.convertTo(scale, offset), which cv2.normalize calls; MediaPipe's range -1 to 1."""
    order = image_spec(load("mediapipe_fp32")).normalize.arithmetic

    ours = normalize(LEVELS, [127.5] * 3, [127.5] * 3, order, "NHWC")[0, ..., 0]

    wanted = cv2.normalize(LEVELS[..., 0], None, -1, 1, cv2.NORM_MINMAX, cv2.CV_32F)
    np.testing.assert_array_equal(ours, wanted)
