"""The accumulation axis: sums of products in an accumulator of FP16."""

from __future__ import annotations

import math

import numpy as np
import onnx

from simulator.contract import Array
from simulator.contract.passes import GraphPass
from simulator.model.passes.graph import edit
from simulator.model.passes.graph.change import Change, Seen
from simulator.profile.graph import Accumulation

AXIS, NODES = "accumulation", "Conv, Gemm or MatMul"
PRODUCTS = ("Conv", "Gemm", "MatMul")


def apply(model: onnx.ModelProto, asked: Accumulation) -> Change:
    """Split every sum of products into blocks and round to FP16 after each, in place.

    A Conv, Gemm or MatMul over K products becomes ceil(K / block) nodes of the same kind. Each
    sums a part of the input channels in the model's own type, like a multiply-accumulate tree;
    the running sum is rounded to FP16 after each. A convolution's kernel is never split, so a
    block has at least one channel. Grouped convolutions with more products than a block do not
    change, because ONNX cannot express their parts.

    Args:
        model: an ONNX model of opset 11 or later.
        asked: the profile's section.

    Raises:
        ModelError: the model is too old.

    Source:
        FP16 accumulators: NVIDIA's mma with .f16 D (PTX ISA, "mma"), Arm's FMLA of half
        precision (Arm C Language Extensions, "vfmaq_f16").
    """
    nodes = edit.nodes_of(model, *PRODUCTS)
    if nodes and asked.block:
        edit.need_opset(model, 11, "graph.accumulation")
    shapes, constants, dtypes = edit.shapes_of(model), edit.constants(model), edit.dtypes_of(model)
    before, after = {}, {}
    made: dict[str, list[onnx.NodeProto]] = {}
    for node in nodes:
        name = node.output[0]
        dtype = dtypes.get(node.input[0], np.dtype(np.float32))
        build = edit.Builder(model, "accumulation", name, dtype)
        done = asked.block is not None and _written(build, node, asked.block, shapes, constants)
        if done:
            made[name] = build.nodes
        now = ("fp16", asked.block) if done else "own"
        before[name] = Seen(node.op_type, "own", "own")
        after[name] = Seen(node.op_type, now, now)
    if made:
        edit.splice(model, made)
    left = len(before) - len(made)
    notes: tuple[str, ...] = ()
    if asked.block and left:
        notes = (f"{left} unchanged: grouped, or of unknown size",)
    return Change(AXIS, NODES, before, after, notes=notes)


def _written(
    build: edit.Builder,
    node: onnx.NodeProto,
    block: int,
    shapes: edit.Shapes,
    constants: dict[str, Array],
) -> bool:
    values = edit.attributes(node)
    left, right = (list(shapes.get(name, [])) for name in node.input[:2])
    if len(left) < 2 or len(right) < 2:
        return False
    each = 1
    if node.op_type == "Conv":
        axes, each = (1, 1), math.prod(right[2:])
        if values.get("group", 1) != 1 and right[1] * each > block:
            return False
    elif node.op_type == "Gemm":
        axes = (0 if values.get("transA", 0) else 1, 1 if values.get("transB", 0) else 0)
    else:
        axes = (len(left) - 1, len(right) - 2)
    depth = right[axes[1]]
    if not depth or not each:
        return False
    step = max(block // each, 1)
    total = ""
    for begin in range(0, depth, step):
        end = min(begin + step, depth)
        parts = list(node.input)
        if (begin, end) != (0, depth):
            parts = [build.sliced(node.input[0], axes[0], begin, end),
                     _part(build, node.input[1], axes[1], begin, end, constants),
                     *(node.input[2:] if begin == 0 else [])]  # fmt: skip
        partial = build(node.op_type, *parts, **values)
        if total:
            partial = build("Add", total, build.rounded(partial, "fp16"))
        total = build.rounded(partial, "fp16", last=end == depth)
    return True


def _part(
    build: edit.Builder, name: str, axis: int, begin: int, end: int, constants: dict[str, Array]
) -> str:
    if name not in constants:
        return build.sliced(name, axis, begin, end)
    return build.constant(np.take(constants[name], range(begin, end), axis))


EXAMPLES = (Accumulation(dtype="fp16", block=4),)
PASS = GraphPass(AXIS, 500, Accumulation, Accumulation(), apply, EXAMPLES)
