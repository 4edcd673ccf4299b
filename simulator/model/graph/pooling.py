"""The pooling axis: ``ceil_mode`` of every MaxPool and AveragePool."""

from __future__ import annotations

import math
from dataclasses import dataclass

import onnx
from onnx import helper, shape_inference

from simulator.errors import ModelError

POOLS = ("MaxPool", "AveragePool")


@dataclass(frozen=True, slots=True)
class PoolingChange:
    """What the rewrite did to one model.

    Attributes:
        pools: MaxPool and AveragePool nodes in the model.
        rewritten: nodes whose ``ceil_mode`` was another one before.
        effective: rewritten nodes whose output size is now another one.
    """

    pools: int
    rewritten: int
    effective: int

    def __str__(self) -> str:
        if not self.pools:
            return "this axis does not exist in this model: it has no MaxPool or AveragePool"
        if not self.rewritten:
            return f"all {self.pools} pooling nodes already have this ceil_mode"
        silent = self.rewritten - self.effective
        rest = f", {silent} without effect at these sizes" if silent else ""
        return f"{self.rewritten} of {self.pools} pooling nodes rewritten{rest}"


def set_ceil_mode(model: onnx.ModelProto, ceil: bool) -> PoolingChange:
    """Set ``ceil_mode`` on every pooling node, in place.

    Args:
        model: an ONNX model of opset 10 or later; MaxPool got ``ceil_mode`` in opset 10,
            AveragePool too.
        ceil: round the output size up, or down.

    Raises:
        ModelError: a later node no longer fits the new size; the message names it.

    Source:
        ONNX operators MaxPool and AveragePool, attribute ``ceil_mode``.
    """
    pools = [node for node in model.graph.node if node.op_type in POOLS]
    targets = [node for node in pools if _ceil_mode(node) != int(ceil)]
    if not targets:
        return PoolingChange(len(pools), 0, 0)
    opset = next((o.version for o in model.opset_import if o.domain in ("", "ai.onnx")), 0)
    if opset < 10:
        raise ModelError(f"ceil_mode needs opset 10 or later, the model has {opset}; export anew")
    before = _shapes(model)
    for node in targets:
        _set(node, ceil)
        if ceil and _adds_nothing(model, node):
            _set(node, False)
    del model.graph.value_info[:]
    after = _fitted(model, ceil, before)
    effective = sum(before.get(n.output[0]) != after.get(n.output[0]) for n in targets)
    return PoolingChange(len(pools), len(targets), effective)


def output_sizes(model: onnx.ModelProto) -> dict[str, list[int]]:
    """Return the output shape of every pooling node, by the name of the output."""
    shapes = _shapes(model)
    names = [node.output[0] for node in model.graph.node if node.op_type in POOLS]
    return {name: shapes.get(name, []) for name in names}


def _ceil_mode(node: onnx.NodeProto) -> int:
    return next((a.i for a in node.attribute if a.name == "ceil_mode"), 0)


def _set(node: onnx.NodeProto, ceil: bool) -> None:
    kept = [attribute for attribute in node.attribute if attribute.name != "ceil_mode"]
    del node.attribute[:]
    node.attribute.extend([*kept, helper.make_attribute("ceil_mode", int(ceil))])


def _adds_nothing(model: onnx.ModelProto, node: onnx.NodeProto) -> bool:
    """Whether every window that rounding up adds would start in the right padding.

    PyTorch, ONNX Runtime and ONNX's reference drop such windows, so that the node is what it
    was; ONNX's shape inference (1.23) counts them, and would find faults further down.
    """
    values = {a.name: helper.get_attribute_value(a) for a in node.attribute}
    rank = len(values["kernel_shape"])
    strides, dilations = (values.get(name, [1] * rank) for name in ("strides", "dilations"))
    pads = values.get("pads", [0] * 2 * rank)
    spans = [(k - 1) * d + 1 for k, d in zip(values["kernel_shape"], dilations, strict=True)]
    if all(pads[rank + i] + strides[i] <= spans[i] for i in range(rank)):
        return False
    sizes = _shapes(model).get(node.input[0], [])[2:]
    if len(sizes) != rank or 0 in sizes:
        return False
    for i in range(rank):
        whole, rest = divmod(sizes[i] + pads[i] + pads[rank + i] - spans[i], strides[i])
        if rest and (whole + 1) * strides[i] < sizes[i] + pads[i]:
            return False
    return True


def _fitted(
    model: onnx.ModelProto, ceil: bool, before: dict[str, list[int]]
) -> dict[str, list[int]]:
    """Infer every shape anew, those of the model's outputs included."""
    for output in model.graph.output:
        if output.name in before:
            output.type.tensor_type.ClearField("shape")
    try:
        inferred = shape_inference.infer_shapes(model, strict_mode=True, data_prop=True)
        shapes = _shapes(inferred)
        _check_reshapes(model, shapes)
    except (shape_inference.InferenceError, RuntimeError, ValueError) as error:
        reason = " ".join(str(error).split())
        raise ModelError(
            f"ceil_mode {'ceil' if ceil else 'floor'} breaks the model further down: {reason}"
        ) from error
    for output, known in zip(model.graph.output, inferred.graph.output, strict=True):
        output.CopyFrom(known)
    return shapes


def _check_reshapes(model: onnx.ModelProto, shapes: dict[str, list[int]]) -> None:
    """Refuse a Reshape that loses values; shape inference does not count them."""
    for node in (node for node in model.graph.node if node.op_type == "Reshape"):
        given, made = (shapes.get(name, [0]) for name in (node.input[0], node.output[0]))
        if math.prod(given) != math.prod(made) and 0 not in (*given, *made):
            raise ValueError(f"(op_type:Reshape, node name: {node.name}): {given} to {made}")


def _shapes(model: onnx.ModelProto) -> dict[str, list[int]]:
    """The shape of every tensor that has one; a free dimension is 0."""
    inferred = shape_inference.infer_shapes(model, data_prop=True)
    graph = inferred.graph
    return {
        value.name: [dim.dim_value for dim in value.type.tensor_type.shape.dim]
        for value in (*graph.input, *graph.value_info, *graph.output)
        if value.type.tensor_type.HasField("shape")
    }
