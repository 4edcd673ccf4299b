"""Which layers of an ONNX model are quantized, and the nodes that round in floating point."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from backends.fake_quant.formulas import Grid
from backends.stored_weights.nodes import constants, weight_inputs
from simulator.contract import Array, ModelError, kept

if TYPE_CHECKING:
    import onnx


@dataclass(frozen=True, slots=True)
class Layer:
    """A convolution or a product with constant weights.

    Attributes:
        node: the node.
        weight: the index of the weights among its inputs.
        axis: the axis of output channels of the weights.
        outer: whether no other layer comes before it, or none after it.
    """

    node: onnx.NodeProto
    weight: int
    axis: int
    outer: bool

    @property
    def data(self) -> int:
        """The index of the activations among the inputs of the node."""
        return 0 if self.weight else 1


def chosen(
    model: onnx.ModelProto, keep: Mapping[str, Any]
) -> tuple[Mapping[str, Array], list[Layer]]:
    """Return the FP32 constants of a model, and its layers outside a keep list.

    Raises:
        ModelError: there are none.
    """
    spared, held = kept(model, keep), constants(model.graph)
    every = [layer for layer in layers(model.graph, held) if layer.node.name not in spared]
    if not every:
        raise ModelError("there are no convolutions or products outside the keep list")
    return held, every


def layers(graph: onnx.GraphProto, held: Mapping[str, Array]) -> list[Layer]:
    """Return the layers of a graph, in its order; bodies of If and Loop are not looked into."""
    found = [(node, *where) for node in graph.node if (where := _weight(node, held))]
    products = {id(node) for node, _, _ in found}
    after = _reached(graph.node, products, lambda n: n.input, lambda n: n.output)
    before = _reached(reversed(graph.node), products, lambda n: n.output, lambda n: n.input)
    return [
        Layer(node, index, axis, not (id(node) in after and id(node) in before))
        for node, index, axis in found
    ]


def _weight(node: onnx.NodeProto, stored: Mapping[str, Array]) -> tuple[int, int] | None:
    """Return the index of a layer's weights and the axis of their outputs; None for no layer."""
    held = [(at, axis) for at, axis in weight_inputs(node) if node.input[at] in stored]
    if len(held) != 1 or stored[node.input[held[0][0]]].ndim < 2:
        return None
    return held[0]


def _reached(nodes: Iterable[Any], products: set[int], reads: Any, gives: Any) -> set[int]:
    """Return the ids of the nodes to which a path leads from a product."""
    live, reached = set[str](), set[int]()
    for node in nodes:
        if any(name in live for name in reads(node) if name):
            reached.add(id(node))
        if id(node) in reached or id(node) in products:
            live.update(gives(node))
    return reached


class Rounding:
    """Nodes and constants to be added to a graph."""

    def __init__(self) -> None:
        self.constants: dict[str, Array] = {}
        self.nodes: list[onnx.NodeProto] = []

    def rounded(self, tensor: str, grid: Grid, part: str) -> str:
        """Add Div, Clip, Round and Mul, which round a tensor to a grid; return the result's name.

        Args:
            tensor: its name.
            grid: with one step.
            part: the beginning of the new names.
        """
        step = self._constant(f"{part}.step", grid.step)
        low = self._constant(f"{part}.low", np.float32(grid.low))
        high = self._constant(f"{part}.high", np.float32(grid.high))
        codes = self._node("Div", part, tensor, step)
        codes = self._node("Clip", part, codes, low, high)
        codes = self._node("Round", part, codes)
        return self._node("Mul", part, codes, step)

    def paired(self, tensor: str, grid: Grid, part: str) -> str:
        """Add QuantizeLinear and DequantizeLinear; the grid must have 256 codes."""
        kind = np.int8 if grid.low else np.uint8
        scale = (self._constant(f"{part}.step", grid.step), self._constant(f"{part}.zero", kind(0)))
        codes = self._node("QuantizeLinear", part, tensor, *scale)
        return self._node("DequantizeLinear", part, codes, *scale)

    def stored(self, weights: Array, part: str) -> str:
        """Add weights in FP32; return their name."""
        return self._constant(part, weights)

    def coded(self, codes: Array, steps: Array, axis: int, part: str) -> str:
        """Add weights as INT8 codes behind DequantizeLinear; return the name of the weights.

        Args:
            codes: int8, in the shape of the weights.
            steps: (N,) float32, one for each index of *axis*, or one for all.
            axis: of *codes*.
            part: the beginning of the new names.
        """
        step = self._constant(f"{part}.step", steps if len(steps) > 1 else steps[0])
        stored = self._constant(f"{part}.codes", codes)
        return self._node("DequantizeLinear", part, stored, step, axis=axis % codes.ndim)

    def _constant(self, name: str, value: Any) -> str:
        self.constants[name] = np.asarray(value)
        return name

    def _node(self, op_type: str, part: str, *inputs: str, **attributes: Any) -> str:
        from onnx import helper

        output = f"{part}.{op_type}"
        node = helper.make_node(op_type, list(inputs), [output], name=output, **attributes)
        self.nodes.append(node)
        return output


def insert(
    graph: onnx.GraphProto, nodes: list[onnx.NodeProto], stored: Mapping[str, Array]
) -> None:
    """Add constants and nodes to a graph, each node before the first one that reads its result."""
    from onnx import numpy_helper

    graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in stored.items())
    by_output = {node.output[0]: node for node in nodes}
    ordered: list[onnx.NodeProto] = []

    def place(name: str) -> None:
        node = by_output.pop(name, None)
        if node is not None:
            for inner in node.input:
                place(inner)
            ordered.append(node)

    for node in graph.node:
        for name in node.input:
            place(name)
        ordered.append(node)
    del graph.node[:]
    graph.node.extend(ordered)
