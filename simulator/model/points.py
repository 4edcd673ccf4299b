"""The tensors of an ONNX graph that can be compared, and the graph cut at each of them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
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
    def kinds(self) -> dict[str, np.dtype[Any]]:
        """The type of every floating-point tensor."""
        return edit.dtypes_of(self.model)

    @cached_property
    def stored(self) -> dict[str, onnx.TensorProto]:
        """Every stored tensor, as the file has it."""
        return {tensor.name: tensor for tensor in self.model.graph.initializer}

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
        rounded, kinds = edit.rounded(self.model), self.kinds
        shapes, passed = edit.shapes_of(self.model), set(rounded.values())
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


def in_order(train: Graph, deploy: Graph) -> list[tuple[Point, Point]]:
    """Return the points of two graphs with the same operators and shapes; none of others."""
    mine, theirs = ([*side.points.values()] for side in (train, deploy))
    kinds = [[(one.operator, one.shape) for one in side] for side in (mine, theirs)]
    if kinds[0] != kinds[1]:
        return []
    pairs = zip(mine, theirs, strict=True)
    return [(a, b) for a, b in pairs if b.operator != "Input" or b.read != b.tensor]


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
    kinds = graph.kinds
    return _part(graph, graph.model.graph.node, [], {name: kinds[name] for name in names})


def alone(graph: Graph, cuts: Sequence[Point], wanted: Sequence[Point]) -> onnx.ModelProto:
    """Return a model in which every layer runs by itself.

    A cut tensor becomes an input, which the layers after it read; what its own layer makes is an
    output with :data:`ALONE` behind its name. Both are rounded as in the whole graph.

    Args:
        graph: the network.
        cuts: the points whose values are given.
        wanted: those that are computed.
    """
    given = {point.tensor for point in cuts}
    known = {value.name for value in graph.model.graph.input}
    nodes, outputs = list[onnx.NodeProto](), dict[str, np.dtype[Any]]()
    for node in graph.model.graph.node:
        own = node
        if not given.isdisjoint(node.output):
            own = onnx.NodeProto()
            own.CopyFrom(node)
            own.output[:] = [f"{name}{ALONE}" if name in given else name for name in node.output]
        nodes.append(own)
    for point in wanted:
        cut = point.tensor in given and point.tensor not in known
        made = f"{point.tensor}{ALONE}" if cut else point.tensor
        if point.read != point.tensor:
            nodes += _rounded_again(graph, point, made)
            made = f"{point.read}{ALONE}"
        outputs[made] = graph.kinds[point.read]
    inputs = [
        helper.make_tensor_value_info(
            point.tensor,
            helper.np_dtype_to_tensor_dtype(graph.kinds[point.tensor]),
            [size or None for size in point.shape],
        )
        for point in cuts
        if point.tensor not in known
    ]
    return _part(graph, nodes, inputs, outputs)


def _part(
    graph: Graph,
    nodes: Sequence[onnx.NodeProto],
    inputs: Iterable[onnx.ValueInfoProto],
    outputs: Mapping[str, np.dtype[Any]],
) -> onnx.ModelProto:
    """Return a model of the nodes that some outputs need, with the tensors that these need."""
    used, kept = set(outputs), list[onnx.NodeProto]()
    for node in reversed(nodes):
        if not used.isdisjoint(node.output):
            kept.insert(0, node)
            used.update(edit.uses(node))
    made = helper.make_graph(
        kept,
        "part",
        [value for value in (*graph.model.graph.input, *inputs) if value.name in used],
        [
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(kind), None)
            for name, kind in outputs.items()
        ],
        [tensor for name, tensor in graph.stored.items() if name in used],
    )
    whole = graph.model
    return edit.inferred(
        helper.make_model(
            made,
            opset_imports=whole.opset_import,
            functions=whole.functions,
            ir_version=whole.ir_version,
        )
    )


def output_of(point: Point, is_cut: bool) -> str:
    """Return the name under which :func:`alone` gives a point."""
    if point.read != point.tensor:
        return f"{point.read}{ALONE}"
    return f"{point.tensor}{ALONE}" if is_cut else point.tensor


def _rounded_again(graph: Graph, point: Point, made: str) -> list[onnx.NodeProto]:
    """Return a copy of the pair that rounds a point, on what its own layer makes."""
    back, codes = graph.makers[point.read], f"{point.tensor}/codes"
    pair = [onnx.NodeProto(), onnx.NodeProto()]
    for copy, node in zip(pair, (graph.makers[back.input[0]], back), strict=True):
        copy.CopyFrom(node)
        copy.name = f"{node.name}{ALONE}"
    pair[0].input[0], pair[0].output[0] = made, codes
    pair[1].input[0], pair[1].output[0] = codes, f"{point.read}{ALONE}"
    return pair
