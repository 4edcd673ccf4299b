"""y = (a - b, a + b) of the channels a and b of x: the model of the NPU tests, worked by hand."""

import numpy as np
import onnx
import tiny
from onnx import helper

WEIGHTS = np.array([[1, -1], [1, 1]], np.float32)[..., None, None]
INT8_BOUND = 0.02
"""
Inputs in [-1, 1] in steps of 2/255, outputs in [-2, 2] in steps of 4/255: two rounded inputs and
one rounded output are at most 2 x 1/255 + 2/255 = 0.016 off.
"""


def samples(count=8):
    """Inputs in [-1, 1], (count, 1, 2, 8, 8) float32."""
    rng = np.random.default_rng(0)
    return rng.uniform(-1, 1, (count, 1, 2, 8, 8)).astype(np.float32)


def answers(x):
    """The sums and differences of channels of x, (count, 1, 2, 8, 8)."""
    a, b = x[:, :, 0], x[:, :, 1]
    return np.stack([a - b, a + b], 2)


def save(path, *more, batch=1, opset=17):
    """The model in FP32; *more* nodes take ``c`` to ``y``."""
    conv = helper.make_node("Conv", ["x", "w"], ["c" if more else "y"], name="sum")
    return _write(path, [conv, *more], {"w": WEIGHTS}, batch, opset)


def save_quantized(path):
    """The model with QuantizeLinear / DequantizeLinear: uint8 activations, int8 weights."""
    constants = {
        "xs": np.float32(2 / 255), "ys": np.float32(4 / 255), "zero": np.uint8(128),
        "w8": (127 * WEIGHTS).astype(np.int8), "ws": np.full(2, 1 / 127, np.float32),
        "wz": np.zeros(2, np.int8),
    }  # fmt: skip
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "xs", "zero"], ["x8"]),
        helper.make_node("DequantizeLinear", ["x8", "xs", "zero"], ["xq"]),
        helper.make_node("DequantizeLinear", ["w8", "ws", "wz"], ["w"], axis=0),
        helper.make_node("Conv", ["xq", "w"], ["c"], name="sum"),
        helper.make_node("QuantizeLinear", ["c", "ys", "zero"], ["y8"]),
        helper.make_node("DequantizeLinear", ["y8", "ys", "zero"], ["y"]),
    ]
    return _write(path, nodes, {k: np.asarray(v) for k, v in constants.items()}, 1, 17)


def _write(path, nodes, constants, batch, opset):
    shapes = {"x": [batch, 2, 8, 8]}, {"y": [batch, 2, 8, 8]}
    onnx.save(tiny.model(nodes, *shapes, constants, opset=opset), str(path))
    return path
