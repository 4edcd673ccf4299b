"""Small ONNX models, one per operator family, and their inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from simulator.contract import Array

OPSET = 17
SHAPE = (1, 4, 8, 8)
HAND = np.array([[1, 10], [-1, 0.5]], np.float32)
"""Weights of the 1x1 convolution ``hand``: (1, 2) becomes (21, 0)."""


def _normal(*shape: int) -> Array:
    """Weights that keep the size of what they multiply, the same every time."""
    rng = np.random.default_rng(int(np.prod(shape)))
    fan_in = max(int(np.prod(shape[1:])), 1)
    return np.asarray(rng.normal(0, fan_in**-0.5, shape).astype(np.float32))


def _of(*values: float) -> Array:
    return np.array(values, np.float32)


def _scalar(value: float) -> Array:
    return np.array(value, np.float32)


_Node = tuple[str, str, str, dict[str, Any]]
_Family = tuple[Sequence[_Node], dict[str, Array]]
_SCALES = _of(1, 1, 2, 2)

FAMILIES: dict[str, _Family] = {
    "conv": ([("Conv", "x w b", "y", {"pads": [1] * 4})], {"w": _normal(6, 4, 3, 3),
             "b": _normal(6)}),
    "depthwise": (
        [("Conv", "x w", "y", {"group": 4, "strides": [2, 2], "pads": [1] * 4})],
        {"w": _normal(4, 1, 3, 3)},
    ),
    "gemm": (
        [("Flatten", "x", "f", {}), ("Gemm", "f w b", "y", {"transB": 1})],
        {"w": _normal(5, 256), "b": _normal(5)},
    ),
    "matmul": ([("MatMul", "x w", "y", {})], {"w": _normal(8, 5)}),
    "max_pool": (
        [("MaxPool", "x", "y", {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1] * 4})],
        {},
    ),
    "average_pool": (
        [("AveragePool", "x", "y", {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1] * 4})],
        {},
    ),
    "global_average_pool": ([("GlobalAveragePool", "x", "y", {})], {}),
    "batch_norm": (
        [("BatchNormalization", "x scale b mean var", "y", {"epsilon": 1e-3})],
        {"scale": _of(1, 2, -1, 0.5), "b": _of(0, 1, 2, -1), "mean": _of(0.5, 0, -1, 1),
         "var": _of(1, 0.25, 4, 2)},
    ),
    "relu": ([("Relu", "x", "y", {})], {}),
    "clip": ([("Clip", "x low high", "y", {})], {"low": _scalar(-0.5), "high": _scalar(1)}),
    "sigmoid": ([("Sigmoid", "x", "y", {})], {}),
    "hard_swish": ([("HardSwish", "x", "y", {})], {}),
    "gelu": (
        [("Mul", "x root", "r", {}), ("Erf", "r", "e", {}), ("Add", "e one", "s", {}),
         ("Mul", "x s", "m", {}), ("Mul", "m half", "y", {})],
        {"root": _scalar(0.5**0.5), "one": _scalar(1), "half": _scalar(0.5)},
    ),
    "softmax": ([("Softmax", "x", "y", {"axis": 1})], {}),
    "add": ([("Relu", "x", "r", {}), ("Add", "x r", "y", {})], {}),
    "concat": ([("Relu", "x", "r", {}), ("Concat", "x r", "y", {"axis": 1})], {}),
    "transpose": ([("Transpose", "x", "y", {"perm": [0, 2, 3, 1]})], {}),
    "reshape": ([("Reshape", "x to", "y", {})], {"to": np.array([1, 16, 16])}),
    "resize_nearest": (
        [("Resize", "x  scales", "y", {"mode": "nearest", "nearest_mode": "floor",
          "coordinate_transformation_mode": "asymmetric"})],
        {"scales": _SCALES},
    ),
    "resize_linear": (
        [("Resize", "x  scales", "y", {"mode": "linear",
          "coordinate_transformation_mode": "half_pixel"})],
        {"scales": _SCALES},
    ),
    "conv_transpose": (
        [("ConvTranspose", "x w", "y", {"strides": [2, 2]})], {"w": _normal(4, 3, 2, 2)},
    ),
    "layer_norm": (
        [("LayerNormalization", "x scale b", "y", {"axis": -1, "epsilon": 1e-5})],
        {"scale": 1 + _normal(8), "b": _normal(8)},
    ),
}  # fmt: skip
PRODUCTS = ("conv", "depthwise", "gemm", "matmul", "conv_transpose")
"""The families that hold convolutions and matrix products, whose precision is chosen."""

_POINT: list[_Node] = [("Conv", "x w", "y", {})]
_SAME: list[_Node] = [("Conv", "x w", "y", {"pads": [1] * 4})]
_OTHERS: dict[str, tuple[_Family, tuple[int | str, ...]]] = {
    "any_size": ((_SAME, {"w": _normal(6, 4, 3, 3)}), (1, 4, "h", "w")),
    "hand": ((_POINT, {"w": HAND[..., None, None]}), (1, 2, 8, 8)),
    "work": ((_POINT, {"w": HAND[..., None, None]}), (1, 2, 64, 64)),
    "other": ((_POINT, {"w": -HAND[..., None, None]}), (1, 2, 64, 64)),
    "folded": (
        (
            [("Conv", "x w", "c", {}), ("BatchNormalization", "c g b m v", "y", {})],
            {
                "w": _normal(6, 4, 3, 3),
                "g": _of(1, 2, 1, 2, 1, 2),
                "b": _of(*range(6)),
                "m": _of(*range(6)),
                "v": _of(1, 2, 3, 4, 5, 6),
            },
        ),
        SHAPE,
    ),
    "roi_align": (
        (
            [("RoiAlign", "x rois at", "y", {"output_height": 2, "output_width": 2})],
            {"rois": _of(1, 1, 6, 5)[None], "at": np.array([0])},
        ),
        SHAPE,
    ),
    "wide": (
        (
            [("MatMul", "x w", "h", {}), ("MatMul", "h v", "y", {})],
            {"w": _normal(256, 256), "v": _normal(256, 256)},
        ),
        (4, 256),
    ),
    "batch": (FAMILIES["conv"], (4, *SHAPE[1:])),
    **{
        f"rows{count}": (
            (
                [
                    ("Conv", "x w b", "c", {"pads": [1] * 4}),
                    ("GlobalAveragePool", "c", "p", {}),
                    ("Flatten", "p", "f", {}),
                    ("Gemm", "f v", "y", {"transB": 1}),
                ],
                {"w": _normal(64, 4, 3, 3), "b": _normal(64), "v": _normal(50, 64)},
            ),
            (count, *SHAPE[1:]),
        )
        for count in (1, 4, 16)
    },
    "normalized": (
        (
            [
                ("BatchNormalization", "x scale b mean var", "n", {"epsilon": 1e-3}),
                ("Flatten", "n", "f", {}),
                ("Gemm", "f w c", "y", {"transB": 1}),
            ],
            {**FAMILIES["batch_norm"][1], "w": _normal(5, 256), "c": _normal(5)},
        ),
        SHAPE,
    ),
}


def model(
    name: str,
    nodes: Sequence[onnx.NodeProto],
    inputs: Mapping[str, Sequence[int | str]],
    outputs: Mapping[str, Sequence[int | str] | None],
    weights: Mapping[str, Array],
) -> onnx.ModelProto:
    """Return a model of opset 17 with float32 ports.

    Args:
        name: of its graph.
        nodes: of its graph.
        inputs: the shape of each.
        outputs: likewise; None where it follows from the nodes.
        weights: by name.
    """
    x, y = (
        [helper.make_tensor_value_info(port, TensorProto.FLOAT, shape) for port, shape in side]
        for side in (inputs.items(), outputs.items())
    )
    held = [numpy_helper.from_array(np.asarray(array), key) for key, array in weights.items()]
    graph = helper.make_graph(nodes, name, x, y, held)
    opsets = [helper.make_opsetid("", OPSET)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


@cache
def build(name: str) -> onnx.ModelProto:
    """Return a model: input ``x``, output ``y``, both float32, opset 17."""
    (nodes, constants), shape = _OTHERS[name] if name in _OTHERS else (FAMILIES[name], SHAPE)
    made = [
        helper.make_node(op, inputs.split(" "), [output], name=f"{op}_{output}", **attributes)
        for op, inputs, output, attributes in nodes
    ]
    found = model(name, made, {"x": shape}, {"y": None}, constants)
    inferred = onnx.shape_inference.infer_shapes(found, strict_mode=True)
    onnx.checker.check_model(inferred)
    return inferred


def operators(name: str) -> set[str]:
    """The operator types of a model."""
    return {node.op_type for node in build(name).graph.node}


def shape(name: str) -> tuple[int, ...]:
    """The shape of a model's input."""
    return tuple(d.dim_value for d in build(name).graph.input[0].type.tensor_type.shape.dim)


def inputs(name: str) -> list[Array]:
    """Four inputs in [-2, 2], the same every time; of ``batch`` the four of ``conv`` at once.

    Those of ``rows1``, ``rows4`` and ``rows16`` are copies of one sample, for the same reason.

    They are shifted copies of one input, so that all quantizers find equal ranges, however they
    weight samples.
    """
    if name.startswith("rows"):
        one = np.random.default_rng(5).uniform(-2, 2, SHAPE).astype(np.float32)
        return [np.repeat(one, shape(name)[0], axis=0)]
    if name == "batch":
        return [np.concatenate(inputs("conv"))]
    size = SHAPE if name == "any_size" else shape(name)
    drawn = np.random.default_rng(4).uniform(-2, 2, size).astype(np.float32)
    moved = [np.roll(drawn, (step, 2 * step), (2, 3)) for step in range(4)]
    if name == "hand":
        moved[0] = np.broadcast_to(np.reshape(_of(1, 2), (1, 2, 1, 1)), drawn.shape).copy()
    return moved


def reference(name: str, x: Array) -> Array:
    """What the ONNX reference evaluator makes of one input."""
    return evaluate(build(name), x)


def evaluate(model: onnx.ModelProto, x: Array) -> Array:
    """What the ONNX reference evaluator makes of one input of any model.

    It has DequantizeLinear from opset 19 on; nothing of what the suite uses changed from 17 to 19.
    """
    newer = onnx.ModelProto()
    newer.CopyFrom(model)
    for opset in newer.opset_import:
        if opset.domain == "":
            opset.version = max(opset.version, 19)
    outputs: Any = ReferenceEvaluator(newer).run(None, {"x": x})
    return np.asarray(outputs[0])
