"""The layout axis: pointwise convolutions as matrix products, as in a channel-last runtime."""

from __future__ import annotations

from typing import Literal

import numpy as np
import onnx

from simulator.contract import Array
from simulator.contract.passes import GraphPass
from simulator.model.passes.graph import edit
from simulator.model.passes.graph.change import Change, Seen

AXIS, NODES = "layout", "Conv"


def apply(model: onnx.ModelProto, asked: str) -> Change:
    """Write every pointwise Conv as Transpose, MatMul, Add, Transpose, in place.

    ONNX has no channel-last convolution. NCHW and NHWC runtimes differ only in the order of sums,
    and in NHWC a 1 x 1 convolution, the most common layer of a mobile network, is a product of
    (pixels, channels) with (channels, filters). Runtimes remove adjacent Transposes. Convolutions
    with a larger kernel, groups or strides, and pools, do not change: between Transposes they would
    run the same kernels on the same values.

    Args:
        model: an ONNX model of opset 7 or later.
        asked: ``nhwc``.

    Source:
        XNNPACK runs 1 x 1 convolutions as GEMM over NHWC (xnn_create_convolution2d_nhwc).
    """
    shapes, constants, dtypes = edit.shapes_of(model), edit.constants(model), edit.dtypes_of(model)
    before, after = {}, {}
    made: dict[str, list[onnx.NodeProto]] = {}
    for node in edit.nodes_of(model, "Conv"):
        name = node.output[0]
        weight = constants.get(node.input[1])
        rank = len(shapes.get(node.input[0], []))
        pointwise = asked == "nhwc" and weight is not None and _is_pointwise(node, weight, rank)
        if pointwise and weight is not None:
            build = edit.Builder(
                model, "layout", name, dtypes.get(node.input[0], np.dtype(np.float32))
            )
            _write(build, node, weight)
            made[name] = build.nodes
        now = "nhwc" if pointwise else "nchw"
        before[name] = Seen("Conv", "nchw", "nchw")
        after[name] = Seen("Conv", now, now)
    if made:
        edit.splice(model, made)
    left = len(before) - len(made)
    notes = (f"{left} unchanged: not pointwise",) if made and left else ()
    return Change(AXIS, NODES, before, after, notes=notes)


def _is_pointwise(node: onnx.NodeProto, weight: Array, rank: int) -> bool:
    values = edit.attributes(node)
    plain = values.get("group", 1) == 1 and set(values.get("strides", [1])) == {1}
    return plain and not any(values.get("pads", [0])) and weight.shape[2:] == (1, 1) and rank == 4


def _write(build: edit.Builder, node: onnx.NodeProto, weight: Array) -> None:
    last = build("Transpose", node.input[0], perm=[0, 2, 3, 1])
    product = build("MatMul", last, build.constant(weight[:, :, 0, 0].T))
    if len(node.input) > 2 and node.input[2]:
        product = build("Add", product, node.input[2])
    build("Transpose", product, perm=[0, 3, 1, 2], last=True)


PASS = GraphPass(AXIS, 600, Literal["keep", "nhwc"], "keep", apply)
