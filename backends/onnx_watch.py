"""Looking for NaN and Inf between the layers of an ONNX graph while it runs."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from math import isfinite
from typing import Any

import onnx
from onnx import TensorProto, helper

from backends.onnx_cut import Cut, Shape

FINITE = "simulator.finite"
"""The output that is 0 where all watched tensors are finite, and NaN where one is not."""
_BOUNDED = frozenset({"Clip", "HardSigmoid", "Sigmoid", "Tanh"})

Types = Mapping[str, tuple[int, Shape | None]]


def taps(watched: Collection[str], types: Types) -> Iterator[onnx.NodeProto]:
    """Yield nodes that add up 0 times every element; the last one makes :data:`FINITE`.

    A sum of magnitudes would overflow for large finite values, and a largest value drops NaN.
    """
    if not watched:
        return
    zero, zeros = helper.make_tensor("zero", TensorProto.FLOAT, [], [0.0]), f"{FINITE}.zero"
    yield helper.make_node("Constant", [], [zeros], value=zero)
    for name in watched:
        own, taken = f"{FINITE}/{name}", name
        if types[name][0] != TensorProto.FLOAT:
            taken = f"{own}/float"
            yield helper.make_node("Cast", [name], [taken], to=TensorProto.FLOAT)
        yield helper.make_node("Mul", [taken, zeros], [f"{own}/zeros"])
        yield helper.make_node("ReduceSum", [f"{own}/zeros"], [own], keepdims=0)
    yield helper.make_node("Sum", [f"{FINITE}/{name}" for name in watched], [FINITE])


def needed(graph: onnx.GraphProto, found: Cut, layers: Collection[str], types: Types) -> set[str]:
    """Choose what to watch, so that every NaN and Inf in the outputs of layers is seen.

    A convolution or matrix product turns every NaN or Inf that it reads into one of its own: also
    a weight of 0 does, and nothing brings back a finite sum. So does Add. An activation may end
    Inf; but the fused ones, which ONNX Runtime alone has, keep NaN. So behind a bounded fused
    activation there is NaN only, which shows in any layer that follows.

    Args:
        graph: the whole one.
        found: what runs of it.
        layers: floating-point outputs of layers that it has.
        types: see :func:`backends.onnx_cut.rest`; without one a tensor cannot stand for another.

    Returns:
        Some of *layers*, and sums of others that are not outputs of the network.
    """
    seen = set(layers)
    for node in found.nodes:
        if node.op_type == "Add" and not seen.isdisjoint(node.input):
            seen.update({node.output[0]}.intersection(types).difference(found.outputs))
    makers = {node.output[0]: node for node in graph.node}
    return {
        name
        for name in seen
        if not any(
            node.output[0] in seen and _shows(makers.get(name), node, name, types)
            for node in found.nodes
            if name in node.input
        )
    }


def _shows(maker: Any, taker: Any, name: str, types: Types) -> bool:
    """Whether every NaN and Inf of a tensor shows in the output of a node that takes it."""
    if taker.op_type == "Add":
        return True
    if taker.op_type in ("Gemm", "MatMul"):
        return name in taker.input[:2] and _attributes(taker).get("alpha", 1) != 0
    if taker.op_type == "FusedConv" and not (maker is not None and _bounded(maker)):
        return False
    if taker.op_type not in ("Conv", "FusedConv") or name != taker.input[0]:
        return False
    return _covers(taker, types)


def _bounded(node: Any) -> bool:
    own = _attributes(node)
    parameters = own.get("activation_params", [])
    return own.get("activation", b"").decode() in _BOUNDED and all(map(isfinite, parameters))


def _covers(node: Any, types: Types) -> bool:
    """Whether a convolution reads every element of its input."""
    own = _attributes(node)
    sizes, weights, out = (types.get(n, (0, None))[1] for n in (*node.input[:2], node.output[0]))
    if sizes is None or weights is None or out is None:
        return False
    if own.get("auto_pad", b"NOTSET") != b"NOTSET":
        return False
    kernel, axes = weights[2:], len(sizes) - 2
    strides, pads = own.get("strides", [1] * axes), own.get("pads", [0] * 2 * axes)
    if min(pads) < 0 or max(own.get("dilations", [1])) > 1:
        return False
    return all(
        stride <= k and (count - 1) * stride + k - start >= size
        for stride, k, count, start, size in zip(
            strides, kernel, out[2:], pads[:axes], sizes[2:], strict=True
        )
    )


def _attributes(node: Any) -> dict[str, Any]:
    return {one.name: helper.get_attribute_value(one) for one in node.attribute}
