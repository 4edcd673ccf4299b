"""A small network in NumPy and in ONNX, and flips by ``struct``, for tests of injectors."""

import struct

import numpy as np
import onnx
from numpy.lib.stride_tricks import sliding_window_view
from onnx import TensorProto, helper, numpy_helper

ORT = {
    "device": "cpu", "provider": "cpu", "io_binding": False, "threads": 1,
    "graph_optimization_level": "extended", "compute": "fp32", "storage": "fp32",
}  # fmt: skip
OPSET = 18


def integers(shape, low, high, seed):
    return np.random.default_rng(seed).integers(low, high + 1, shape).astype(np.float32)


def parameters():
    """Integers, so that sums are exact in any order."""
    return {
        "w1": integers((8, 3, 3, 3), -2, 2, 1), "b1": integers(8, -3, 3, 2),
        "w2": integers((8, 1, 3, 3), -2, 2, 3), "b2": integers(8, -3, 3, 4),
        "w3": integers((8, 8, 1, 1), -2, 2, 5), "b3": integers(8, -3, 3, 6),
        "w4": integers((5, 72), -2, 2, 7), "b4": integers(5, -3, 3, 8),
    }  # fmt: skip


def picture(seed=0):
    return integers((1, 3, 6, 6), -3, 3, seed)


LAYERS = ("first", "deep", "point", "head")


def save(path, weights=None, batch=1):
    """Conv, Clip, depthwise Conv with stride 2, Relu, 1x1 Conv, Add, Gemm."""
    stored = {**(weights or parameters()), "low": np.float32(0), "high": np.float32(6)}
    nodes = [
        helper.make_node("Conv", ["x", "w1", "b1"], ["c1"], "first", pads=[1] * 4),
        helper.make_node("Clip", ["c1", "low", "high"], ["y1"]),
        helper.make_node(
            "Conv", ["y1", "w2", "b2"], ["c2"], "deep", pads=[1] * 4, strides=[2, 2], group=8
        ),
        helper.make_node("Relu", ["c2"], ["y2"]),
        helper.make_node("Conv", ["y2", "w3", "b3"], ["y3"], "point"),
        helper.make_node("Add", ["y2", "y3"], ["y4"]),
        helper.make_node("Flatten", ["y4"], ["f"]),
        helper.make_node("Gemm", ["f", "w4", "b4"], ["z"], "head", transB=1),
    ]
    return write(path, nodes, {"x": (batch, 3, 6, 6)}, ["z"], stored)


def write(path, nodes, inputs, outputs, stored, **options):
    graph = helper.make_graph(
        nodes,
        "small",
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in inputs.items()],
        [
            helper.make_tensor_value_info(n, options.get("kind", TensorProto.FLOAT), None)
            for n in outputs
        ],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in stored.items()],
    )
    sets = [helper.make_opsetid("", options.get("opset", OPSET))]
    sets += [helper.make_opsetid("com.microsoft", 1)]
    onnx.save(helper.make_model(graph, opset_imports=sets, ir_version=10), str(path))
    return path


def conv(x, weights, bias, stride=1, pad=0, group=1):
    x = np.pad(x[0], ((0, 0), (pad, pad), (pad, pad))).astype(np.float64)
    size = weights.shape[2:]
    windows = sliding_window_view(x, size, (1, 2))[:, ::stride, ::stride]
    parts = zip(np.split(windows, group), np.split(weights, group), strict=True)
    found = [np.einsum("chwij,kcij->khw", part, own) for part, own in parts]
    return (np.concatenate(found) + np.reshape(bias, (-1, 1, 1)))[None]


def network(x, p, hit=lambda name, values: values):
    """The same in float64; *hit* changes a tensor when it is computed."""
    with np.errstate(invalid="ignore", over="ignore"):
        x = hit("x", x.astype(np.float64))
        y1 = hit("y1", np.clip(hit("c1", conv(x, p["w1"], p["b1"], pad=1)), 0, 6))
        c2 = hit("c2", conv(y1, p["w2"], p["b2"], stride=2, pad=1, group=8))
        y2 = hit("y2", np.maximum(c2, 0))
        y3 = hit("y3", conv(y2, p["w3"], p["b3"]))
        return hit("z", (y2 + y3).reshape(1, -1) @ p["w4"].T.astype(np.float64) + p["b4"])


def disturbed(value, bit, kind):
    """Change one bit of an FP32 number."""
    (code,) = struct.unpack("<I", struct.pack("<f", value))
    return struct.unpack("<f", struct.pack("<I", changed(code, bit, kind)))[0]


def changed(code, bit, kind):
    return {
        "flip": code ^ (1 << bit), "stuck_at_0": code & ~(1 << bit), "stuck_at_1": code | 1 << bit
    }[kind]  # fmt: skip


def equal(found, expected, exact):
    """Whether numbers are equal, to the last bit or within FP32's rounding, NaN with NaN."""
    with np.errstate(over="ignore", invalid="ignore"):
        expected = np.asarray(expected).astype(np.float32)
    if exact:
        return np.array_equal(found, expected)
    sizes = np.abs(expected[np.isfinite(expected)])
    scale = float(sizes.max()) if sizes.size else 1.0
    return np.allclose(found, expected, rtol=1e-5, atol=1e-6 * scale, equal_nan=True)
