"""The pooling axis: ``ceil_mode`` of every MaxPool and AveragePool."""

from __future__ import annotations

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
        rest = f", {silent} without effect because sizes divide" if silent else ""
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
        kept = [attribute for attribute in node.attribute if attribute.name != "ceil_mode"]
        del node.attribute[:]
        node.attribute.extend([*kept, helper.make_attribute("ceil_mode", int(ceil))])
    del model.graph.value_info[:]
    try:
        after = _shapes(model)
    except (shape_inference.InferenceError, RuntimeError) as error:
        reason = " ".join(str(error).split())
        raise ModelError(
            f"ceil_mode {'ceil' if ceil else 'floor'} breaks the model further down: {reason}"
        ) from error
    effective = sum(before.get(n.output[0]) != after.get(n.output[0]) for n in targets)
    return PoolingChange(len(pools), len(targets), effective)


def _ceil_mode(node: onnx.NodeProto) -> int:
    return next((a.i for a in node.attribute if a.name == "ceil_mode"), 0)


def _shapes(model: onnx.ModelProto) -> dict[str, list[int]]:
    inferred = shape_inference.infer_shapes(model, strict_mode=True, data_prop=True)
    return {
        value.name: [dim.dim_value for dim in value.type.tensor_type.shape.dim]
        for value in inferred.graph.value_info
    }
