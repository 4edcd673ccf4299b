"""Cut an ONNX graph at tensors: the rest of the network, and what crosses the cut."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
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
    """What depends on tensors, or a part of that.

    Attributes:
        starts: those of the tensors that it takes; they may be stored ones.
        nodes: that depend on them and that an output of the network needs, in order.
        crossing: the other tensors that these nodes take, which are not stored.
        outputs: of what these nodes make, the network's outputs and what later parts take.
    """

    starts: tuple[str, ...]
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
    return (*cuts(graph, [start]), Cut((start,), (), (), ()))[0]


def cuts(graph: onnx.GraphProto, starts: Collection[str]) -> list[Cut]:
    """Find what follows from tensors, in parts.

    Of each part all starts are known before it runs: they do not depend on one another, or earlier
    parts have made them. What crosses into a part crosses the cut at one of its starts alone too.

    Args:
        graph: its nodes are sorted, as ONNX demands.
        starts: the tensors.

    Returns:
        The parts in the order in which they run; none if nothing follows.
    """
    level, after = dict.fromkeys(starts, 0), list[tuple[int, onnx.NodeProto]]()
    for node in graph.node:
        own = max((level[name] for name in uses(node) if name in level), default=-1)
        if own >= 0:
            after.append((own, node))
            level |= {name: own + (name in starts) for name in filter(None, node.output)}
    ends = [value.name for value in graph.output]
    needed, kept = {*ends, *starts}, list[tuple[int, onnx.NodeProto]]()
    for own, node in reversed(after):
        if not needed.isdisjoint(node.output):
            kept.insert(0, (own, node))
            needed.update(uses(node))
    stored = {tensor.name for tensor in graph.initializer}
    parts = []
    for part in sorted({own for own, _ in kept}):
        nodes = tuple(node for own, node in kept if own == part)
        made = dict.fromkeys(name for node in nodes for name in node.output)
        taken = dict.fromkeys(name for node in nodes for name in uses(node) if name not in made)
        later = {name for own, node in kept if own > part for name in uses(node)}
        parts.append(Cut(
            tuple(name for name in starts if name in taken),
            nodes,
            tuple(n for n in taken if n not in stored and n not in starts),
            (
                *(name for name in ends if name in made),
                *(n for n in made if n not in ends and (n in later or n in starts)),
            ),
        ))  # fmt: skip
    return parts


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
    """Make the model of a cut; its inputs are the starts and what crosses, in this order.

    Args:
        model: of which *found* is a cut.
        found: it has nodes.
        types: the ONNX type and, if it is fixed, the shape of each input.
        taps: further nodes on tensors of the cut; the last one makes the last output.
    """
    used = {name for node in found.nodes for name in uses(node)}.difference(found.starts)
    inputs, casts = [], []
    for start in found.starts:
        (kind, shape), first = types[start], start
        if kind in FED:
            first = f"{start}/fed"
            casts.append(helper.make_node("Cast", [first], [start], to=kind))
        inputs.append((first, FED.get(kind, kind), shape))
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
