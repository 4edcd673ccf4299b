"""The layers of an ONNX graph, with the tensors of theirs that a fault may hit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import onnx

from simulator.contract import Target

_OPERANDS: dict[str, tuple[tuple[int, ...], int | None]] = {
    "Conv": ((1,), 2),
    "FusedConv": ((1,), 2),
    "ConvTranspose": ((1,), 2),
    "ConvInteger": ((1,), None),
    "QLinearConv": ((3,), 8),
    "Gemm": ((1, 0), 2),
    "FusedGemm": ((1, 0), 2),
    "QGemm": ((3, 0), 6),
    "MatMul": ((1, 0), None),
    "FusedMatMul": ((1, 0), None),
    "MatMulInteger": ((1, 0), None),
    "MatMulIntegerToFloat": ((1, 0), 6),
    "DynamicQuantizeMatMul": ((1,), 4),
    "QLinearMatMul": ((3, 0), None),
    "MatMulNBits": ((), 5),
}
"""Where the weights of an operator may stand among its inputs, and where its bias does.

The weights of MatMulNBits are not reached: ONNX Runtime also rounds activations to INT8, but only
for weights that are constants."""
_WAY = frozenset({
    "Cast", "DequantizeLinear", "Flatten", "Identity", "Reshape", "Slice", "Squeeze", "Transpose",
    "Unsqueeze",
})  # fmt: skip
"""What may stand between a stored tensor and the layer."""
_ACTIVATIONS = frozenset({
    "Clip", "Elu", "HardSigmoid", "HardSwish", "LeakyRelu", "Relu", "Sigmoid", "Tanh",
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class Place:
    """One tensor of a layer.

    Attributes:
        layer: the name of the node, or of its first output if it has none or shares it.
        operator: its type.
        target: what of the layer it is.
        tensor: its name in the graph.
    """

    layer: str
    operator: str
    target: Target
    tensor: str


def places(graph: onnx.GraphProto, fuses: bool) -> Iterator[Place]:
    """Yield the inputs, and the tensors of every layer in the order in which they are computed.

    A stored tensor that several layers use has the first of their names in the alphabet, which no
    optimization changes: a fault hits them all.

    Args:
        graph: its nodes are sorted.
        fuses: whether the runtime fuses layers with the activations after them, so that the
            layer's own output does not exist; the neurons are then those after the activation.
    """
    stored = {tensor.name for tensor in graph.initializer}
    makers = {name: node for node in graph.node for name in node.output}
    names = [node.name for node in graph.node]
    for value in graph.input:
        if value.name not in stored:
            yield Place(value.name, "Input", Target.INPUT, value.name)
    layers = {
        node.output[0]: node.name if names.count(node.name) == 1 and node.name else node.output[0]
        for node in graph.node
        if node.op_type in _OPERANDS
    }
    owners: dict[str, str] = {}
    for node in graph.node:
        if node.op_type in _OPERANDS:
            for _, tensor in _operands(node, makers, stored):
                layer = layers[node.output[0]]
                owners[tensor] = min(layer, owners.get(tensor, layer))
    for node in graph.node:
        if node.op_type not in _OPERANDS:
            continue
        layer = layers[node.output[0]]
        for target, tensor in _operands(node, makers, stored):
            if tensor in owners:
                yield Place(owners.pop(tensor), node.op_type, target, tensor)
        neurons = _fused(graph, node) if fuses else node.output[0]
        yield Place(layer, node.op_type, Target.NEURONS, neurons)


def _operands(node: Any, makers: dict[str, Any], stored: set[str]) -> Iterator[tuple[Target, str]]:
    weights, bias = _OPERANDS[node.op_type]
    found = (_source(node.input[i], makers, stored) for i in weights if i < len(node.input))
    if tensor := next(filter(None, found), None):
        yield Target.WEIGHTS, tensor
    given = bias is not None and bias < len(node.input)
    if given and (tensor := _source(node.input[bias], makers, stored)):
        yield Target.BIASES, tensor


def _source(name: str, makers: dict[str, Any], stored: set[str]) -> str | None:
    """Follow a tensor back to the stored one that it is made of; None if it is computed."""
    while name not in stored:
        node = makers.get(name)
        if node is None or node.op_type not in _WAY:
            return None
        name = node.input[0]
    return name


def _fused(graph: Any, node: Any) -> str:
    """Return the output of the activation that alone takes the layer's output, or that output."""
    output: str = node.output[0]
    takers = [one for one in graph.node if output in one.input]
    ends = {value.name for value in graph.output}
    if output in ends or len(takers) != 1 or takers[0].op_type not in _ACTIVATIONS:
        return output
    return str(takers[0].output[0])
