"""The tensors of an ONNX graph that can be compared, and the graph cut at each of them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

import onnx
from onnx import helper

from simulator.contract import Array
from simulator.contract.keep import kept
from simulator.model.passes.graph import edit

ALONE = "/alone"
"""What the name of a layer's output ends with where the layer runs by itself."""
_WAY = frozenset({"Cast", "DequantizeLinear", "Identity", "QuantizeLinear"})
"""What may stand between a layer and a tensor that another file calls by the layer's name."""
_ACTIVATIONS = frozenset({"Clip", "HardSwish", "LeakyRelu", "Relu"})


@dataclass(frozen=True, slots=True)
class Point:
    """A tensor that can be compared.

    Attributes:
        tensor: its name, as its layer makes it.
        read: the name of what the next layers take: the same, or what DequantizeLinear makes of it.
        layer: the name of the node, as keep lists name it; of the network's input, the input's.
        operator: the node's type, ``Input`` for the network's input.
        shape: empty where it is not known; 0 for a free dimension.
    """

    tensor: str
    read: str
    layer: str
    operator: str
    shape: tuple[int, ...]

    @property
    def elements(self) -> int:
        """How many elements it has at least."""
        return prod(size or 1 for size in self.shape)


class Graph:
    """An ONNX model whose inner tensors are looked at.

    Args:
        model: nodes without a name get one here, that of their first output.
    """

    def __init__(self, model: onnx.ModelProto) -> None:
        kept(model, {"nodes": [], "op_types": []})
        self.model = model

    @cached_property
    def makers(self) -> dict[str, onnx.NodeProto]:
        """The node that makes each tensor."""
        return {name: node for node in self.model.graph.node for name in node.output if name}

    @cached_property
    def constants(self) -> dict[str, Array]:
        """Every stored tensor, and what DequantizeLinear makes of stored ones."""
        found = edit.constants(self.model)
        for node in edit.nodes_of(self.model, "DequantizeLinear"):
            if all(name in found for name in node.input if name):
                found[node.output[0]] = dequantized(node, *(found[n] for n in node.input if n))
        return found

    @cached_property
    def points(self) -> dict[str, Point]:
        """The floating-point tensors that depend on the input, in the order of the graph."""
        rounded, kinds = edit.rounded(self.model), edit.dtypes_of(self.model)
        shapes, passed = edit.shapes_of(self.model), set(edit.rounded(self.model).values())
        inputs = [value.name for value in edit.inputs_of(self.model)]
        known, found = set(inputs), dict[str, Point]()
        for name in inputs:
            if name in kinds:
                shape = tuple(shapes.get(name, ()))
                found[name] = Point(name, rounded.get(name, name), name, "Input", shape)
        for node in self.model.graph.node:
            if known.isdisjoint(edit.uses(node)):
                continue
            known.update(filter(None, node.output))
            for name in node.output:
                if name in kinds and name not in passed:
                    owner = self._layer(node)
                    shape = tuple(shapes.get(name, ()))
                    found[name] = Point(
                        name, rounded.get(name, name), owner.name, owner.op_type, shape
                    )
        return found

    def _layer(self, node: onnx.NodeProto) -> onnx.NodeProto:
        """The node whose values another one only passes on."""
        while node.op_type in _WAY and node.input[0] in self.makers:
            node = self.makers[node.input[0]]
        return node

    def part(self, point: Point, inputs: Collection[str]) -> list[onnx.NodeProto]:
        """Return the nodes that make a point of other tensors, in order.

        Args:
            point: what is made.
            inputs: tensors at which the part begins.
        """
        wanted, found = {point.tensor}, list[onnx.NodeProto]()
        for node in reversed(self.model.graph.node):
            if not wanted.isdisjoint(node.output):
                found.insert(0, node)
                wanted.update(n for n in edit.uses(node) if n not in inputs)
        return found


def dequantized(node: onnx.NodeProto, codes: Array, scale: Array, zero: Any = 0) -> Array:
    """Return what DequantizeLinear makes of a stored tensor, float64; blocks are not known here.

    Source:
        https://onnx.ai/onnx/operators/onnx__DequantizeLinear.html
    """
    axis = edit.attributes(node).get("axis", 1)
    shape = [1] * codes.ndim
    if scale.size > 1:
        shape[axis] = scale.size
        scale, zero = scale.reshape(shape), zero.reshape(shape) if getattr(zero, "ndim", 0) else 0
    whole: Array = (codes.astype(float) - zero) * scale.astype(float)
    return whole


def matched(train: Graph, deploy: Graph) -> list[tuple[Point, Point]]:
    """Return the points of two graphs that have one name, and their outputs by position.

    A quantizer may take an activation into the layer before it; the tensor then has the
    activation's name, and what is compared is what the next layer reads.
    """
    theirs = dict(deploy.points)
    pairs = {point.tensor: point for point in train.points.values() if point.tensor in theirs}
    own = [value.name for value in train.model.graph.output]
    ends = [value.name for value in deploy.model.graph.output]
    found = [
        (point, theirs[name])
        for name, point in pairs.items()
        if theirs[name].operator != "Input" or theirs[name].read != name
    ]
    if len(own) == len(ends):
        makers = {point.read: point for point in theirs.values()}
        mine = {point.read: point for point in train.points.values()}
        taken = {point.tensor for _, point in found}
        for a, b in zip(own, ends, strict=True):
            one, other = mine.get(a), makers.get(b)
            if one and other and one.tensor not in pairs and other.tensor not in taken:
                found.append((one, other))
    return found


def fused(graph: Graph) -> set[str]:
    """Return the tensors that integer kernels do not make: between a layer and its activation."""
    rounds = edit.rounded(graph.model)
    takers: dict[str, list[onnx.NodeProto]] = {}
    for node in graph.model.graph.node:
        for name in edit.uses(node):
            takers.setdefault(name, []).append(node)
    ends = {value.name for value in graph.model.graph.output}
    return {
        name
        for name, nodes in takers.items()
        if name not in rounds
        and name not in ends
        and len(nodes) == 1
        and nodes[0].op_type in _ACTIVATIONS
        and nodes[0].output[0] in rounds
        and graph.makers.get(name) is not None
    }


def with_points(graph: Graph, names: Iterable[str]) -> onnx.ModelProto:
    """Return a model that ends in some of its tensors."""
    return edit.until(graph.model, names)


def alone(graph: Graph, cuts: Sequence[Point], wanted: Sequence[Point]) -> onnx.ModelProto:
    """Return a model in which every layer runs by itself.

    A cut tensor becomes an input, which the layers after it read; what its own layer makes is an
    output with :data:`ALONE` behind its name. Both are rounded as in the whole graph.

    Args:
        graph: the network.
        cuts: the points whose values are given.
        wanted: those that are computed.
    """
    model = onnx.ModelProto()
    model.CopyFrom(graph.model)
    known, kinds = {value.name for value in model.graph.input}, edit.dtypes_of(model)
    new = {point.tensor: f"{point.tensor}{ALONE}" for point in (*cuts, *wanted)}
    given = {point.tensor for point in cuts}
    for node in model.graph.node:
        names = [new[n] if n in new and n in given else n for n in node.output]
        node.output[:] = names
    del model.graph.value_info[:], model.graph.output[:]
    outputs = []
    for point in wanted:
        made = new[point.tensor] if point.tensor in given else point.tensor
        made = point.tensor if point.tensor in known else made
        if point.read != point.tensor:
            made = _rounded_again(graph, model, point, made)
        outputs.append(made)
    model.graph.input.extend(
        helper.make_tensor_value_info(
            point.tensor,
            helper.np_dtype_to_tensor_dtype(kinds[point.tensor]),
            [size or None for size in point.shape],
        )
        for point in cuts
        if point.tensor not in known
    )
    found = edit.until(model, outputs)
    used = {name for node in found.graph.node for name in edit.uses(node)}
    inputs = [value for value in found.graph.input if value.name in used]
    del found.graph.input[:]
    found.graph.input.extend(inputs)
    return found


def output_of(point: Point, is_cut: bool) -> str:
    """Return the name under which :func:`alone` gives a point."""
    if point.read != point.tensor:
        return f"{point.read}{ALONE}"
    return f"{point.tensor}{ALONE}" if is_cut else point.tensor


def _rounded_again(graph: Graph, model: onnx.ModelProto, point: Point, made: str) -> str:
    """Append a copy of the pair that rounds a point, on what its own layer makes."""
    back = graph.makers[point.read]
    pair = [graph.makers[back.input[0]], back]
    for node, takes, gives in zip(
        pair, (made, f"{point.tensor}/codes"), (f"{point.tensor}/codes", f"{point.read}{ALONE}"),
        strict=True,
    ):  # fmt: skip
        copy = model.graph.node.add()
        copy.CopyFrom(node)
        copy.name = f"{node.name}{ALONE}"
        copy.input[0], copy.output[0] = takes, gives
    return f"{point.read}{ALONE}"
