"""Cut an ONNX graph at one tensor: the rest of the network, and what crosses the cut."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import onnx
from onnx import TensorProto, helper

Shape = tuple[int, ...]
FED: dict[int, int] = {
    TensorProto.INT4: TensorProto.INT8,
    TensorProto.UINT4: TensorProto.UINT8,
    TensorProto.BFLOAT16: TensorProto.FLOAT,
}
"""Types that runtimes do not take from NumPy, and the wider ones that are fed instead."""
FED_AS = {"int4": "int8", "uint4": "uint8", "bfloat16": "float32"}
"""The same by NumPy's names."""

_VARYING = frozenset({
    "Compress", "If", "Loop", "NonMaxSuppression", "NonZero", "Scan", "SequenceMap", "Unique",
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class Cut:
    """What depends on one tensor.

    Attributes:
        start: the tensor; it may be a stored one.
        nodes: all nodes that depend on it and that an output of the network needs, in order.
        crossing: the other tensors that these nodes take, which are not stored.
        outputs: the network's outputs that these nodes make.
    """

    start: str
    nodes: tuple[onnx.NodeProto, ...]
    crossing: tuple[str, ...]
    outputs: tuple[str, ...]

    @property
    def made(self) -> set[str]:
        """The tensors that its nodes make."""
        return {name for node in self.nodes for name in node.output}


def read(artifact: Path) -> onnx.ModelProto:
    """Load a model with a batch of 1 where it is free, and with constants as stored tensors."""
    model = onnx.load(str(artifact))
    graph = model.graph
    stored = {tensor.name for tensor in graph.initializer}
    for value in graph.input:
        dims = value.type.tensor_type.shape.dim
        if value.name not in stored and dims and not dims[0].HasField("dim_value"):
            dims[0].dim_value = 1
    nodes = []
    for node in graph.node:
        if node.op_type == "Constant" and node.attribute[0].name == "value":
            graph.initializer.append(node.attribute[0].t)
            graph.initializer[-1].name = node.output[0]
        else:
            nodes.append(node)
    return remade(model, nodes, graph.input, graph.output, graph.initializer)


def cut(graph: onnx.GraphProto, start: str) -> Cut:
    """Find what follows from a tensor; the nodes of *graph* are sorted, as ONNX demands."""
    reached, after = {start}, []
    for node in graph.node:
        if not reached.isdisjoint(uses(node)):
            after.append(node)
            reached.update(filter(None, node.output))
    ends = [value.name for value in graph.output]
    needed, kept = set(ends), list[Any]()
    for node in reversed(after):
        if not needed.isdisjoint(node.output):
            kept.insert(0, node)
            needed.update(uses(node))
    made = {name for node in kept for name in node.output}
    stored = {tensor.name for tensor in graph.initializer}
    taken = dict.fromkeys(name for node in kept for name in uses(node))
    return Cut(
        start,
        tuple(kept),
        tuple(n for n in taken if n not in made and n not in stored and n != start),
        tuple(name for name in ends if name in made),
    )


def uses(node: onnx.NodeProto) -> Iterator[str]:
    """Yield the tensors that a node takes, with those that its inner graphs take from outside."""
    yield from filter(None, node.input)
    for attribute in node.attribute:
        for inner in [attribute.g] if attribute.HasField("g") else attribute.graphs:
            own = {value.name for value in (*inner.input, *inner.initializer)}
            own |= {name for one in inner.node for name in one.output}
            named = [name for one in inner.node for name in uses(one)]
            yield from (n for n in (*named, *(v.name for v in inner.output)) if n not in own)


def varying(graph: onnx.GraphProto) -> set[str]:
    """Return the tensors whose shape may depend on the values of the network's input."""
    found = set[str]()
    for node in graph.node:
        if node.op_type in _VARYING or not found.isdisjoint(uses(node)):
            found.update(node.output)
    return found


def rest(
    model: onnx.ModelProto,
    found: Cut,
    types: Mapping[str, tuple[int, Shape | None]],
    taps: Sequence[onnx.NodeProto],
) -> onnx.ModelProto:
    """Make the model of a cut; its inputs are the start and what crosses, in this order.

    Args:
        model: of which *found* is a cut.
        found: it has nodes.
        types: the ONNX type and, if it is fixed, the shape of each input.
        taps: further nodes on tensors of the cut; the last one makes the last output.
    """
    used = {name for node in found.nodes for name in uses(node)} - {found.start}
    kind, shape = types[found.start]
    first, casts = found.start, []
    if kind in FED:
        first = f"{found.start}/fed"
        casts = [helper.make_node("Cast", [first], [found.start], to=kind)]
    inputs = [(first, FED.get(kind, kind), shape)]
    inputs += [(name, *types[name]) for name in found.crossing]
    names = [*found.outputs, *(name for tap in taps[-1:] for name in tap.output)]
    return remade(
        model,
        [*casts, *found.nodes, *taps],
        [helper.make_tensor_value_info(*value) for value in inputs],
        [helper.make_empty_tensor_value_info(name) for name in names],
        [tensor for tensor in model.graph.initializer if tensor.name in used],
    )


def with_outputs(model: onnx.ModelProto, names: Iterable[str]) -> onnx.ModelProto:
    """Return a copy of a model that also gives inner tensors."""
    graph = model.graph
    more = [helper.make_empty_tensor_value_info(name) for name in names]
    return remade(model, graph.node, graph.input, [*graph.output, *more], graph.initializer)


def remade(
    model: onnx.ModelProto,
    nodes: Iterable[Any],
    inputs: Iterable[Any],
    outputs: Iterable[Any],
    stored: Iterable[Any],
) -> onnx.ModelProto:
    """Return a model with the operator sets and functions of *model* and another graph."""
    graph = helper.make_graph(
        list(nodes), model.graph.name or "rest", list(inputs), list(outputs), list(stored)
    )
    return helper.make_model(
        graph,
        opset_imports=model.opset_import,
        functions=model.functions,
        ir_version=model.ir_version,
    )
