"""Tools for rewrites: reading a graph, writing nodes, and checking that shapes still fit."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
from onnx import helper, numpy_helper, shape_inference, version_converter

from simulator.contract import Array
from simulator.errors import ModelError, one_line

if TYPE_CHECKING:
    from simulator.modalities.modality import Feed

FLOATS: dict[int, np.dtype[Any]] = {
    onnx.TensorProto.FLOAT: np.dtype(np.float32),
    onnx.TensorProto.FLOAT16: np.dtype(np.float16),
    onnx.TensorProto.DOUBLE: np.dtype(np.float64),
}
ROUNDED = {"fp16": onnx.TensorProto.FLOAT16, "bf16": onnx.TensorProto.BFLOAT16}
Shapes = Mapping[str, Sequence[int]]
Attributes = dict[str, Any]


class Misfit(Exception):
    """A node does not fit its inputs.

    Attributes:
        node: its name.
    """

    def __init__(self, node: str, reason: str) -> None:
        self.node = node
        super().__init__(reason)


def nodes_of(model: onnx.ModelProto, *kinds: str) -> list[onnx.NodeProto]:
    """Return the nodes of the given standard ONNX operators, in order."""
    return [n for n in model.graph.node if n.op_type in kinds and n.domain in ("", "ai.onnx")]


def label(node: onnx.NodeProto) -> str:
    """Return a node's name for messages; not every exporter names nodes."""
    return f"{node.op_type} {node.name or 'of output ' + node.output[0]!r}"


def attributes(node: onnx.NodeProto) -> Attributes:
    """Return the attributes that are set, with text as ``str``."""
    found = {a.name: helper.get_attribute_value(a) for a in node.attribute}
    return {name: v.decode() if isinstance(v, bytes) else v for name, v in found.items()}


def set_attributes(node: onnx.NodeProto, **values: Any) -> None:
    """Set attributes; None removes one, and others do not change."""
    kept = [attribute for attribute in node.attribute if attribute.name not in values]
    made = [helper.make_attribute(k, v) for k, v in values.items() if v is not None]
    del node.attribute[:]
    node.attribute.extend([*kept, *made])


def opset(model: onnx.ModelProto) -> int:
    """Return the version of the standard ONNX operator set that the model uses."""
    return next((o.version for o in model.opset_import if o.domain in ("", "ai.onnx")), 0)


def need_opset(model: onnx.ModelProto, least: int, what: str) -> None:
    """Refuse a model with an older opset.

    Raises:
        ModelError: the model's opset is lower than *least*.
    """
    if opset(model) < least:
        raise ModelError(
            f"{what} needs opset {least} or later, the model has {opset(model)}; export it again"
        )


def raise_opset(model: onnx.ModelProto, least: int, what: str) -> None:
    """Convert a model to an opset, in place.

    Raises:
        ModelError: onnx's converter cannot.
    """
    try:
        raised = version_converter.convert_version(model, least)
    except (RuntimeError, ValueError) as error:
        raise ModelError(
            f"{what} needs opset {least} or later, the model has {opset(model)} and cannot be "
            f"converted: {one_line(error)}; export it again"
        ) from error
    model.CopyFrom(raised)


def pin(model: onnx.ModelProto, feeds: Sequence[Feed]) -> int:
    """Set the free dimensions of a model's inputs to the sizes of its feeds.

    A dimension that depends on the sample stays free.

    Args:
        model: changed in place.
        feeds: the feeds of all inputs, by name; one without a name belongs to the only input.

    Returns:
        The number of dimensions that were free and now have a size.
    """
    shapes = {feed.name: feed.shape for feed in feeds}
    pinned = 0
    for value in inputs_of(model):
        dims = value.type.tensor_type.shape.dim
        shape = shapes.get(value.name, shapes.get(None, ()))
        for dim, size in zip(dims, shape, strict=False):
            if size is not None:
                pinned += not dim.HasField("dim_value")
                dim.dim_value = size
    return pinned


def inputs_of(model: onnx.ModelProto) -> list[onnx.ValueInfoProto]:
    """Return the inputs that a model must be fed, without constants."""
    constants = {tensor.name for tensor in model.graph.initializer}
    return [value for value in model.graph.input if value.name not in constants]


def inferred(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return the model with all shapes inferred again from its inputs."""
    del model.graph.value_info[:]
    for output in model.graph.output:
        output.type.tensor_type.ClearField("shape")
    return shape_inference.infer_shapes(model, data_prop=True)


def until(model: onnx.ModelProto, outputs: Iterable[str]) -> onnx.ModelProto:
    """Return a copy of a model, cut after the nodes that give *outputs*."""
    kinds = dtypes_of(model)
    part = onnx.ModelProto()
    part.CopyFrom(model)
    values = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(kinds[name]), None)
        for name in outputs
    ]
    del part.graph.output[:]
    part.graph.output.extend(values)
    splice(part, {})
    return inferred(part)


def constants(model: onnx.ModelProto) -> dict[str, Array]:
    """Return every constant tensor of the graph by name."""
    found = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    for node in nodes_of(model, "Constant"):
        values = attributes(node)
        if "value" in values:
            found[node.output[0]] = numpy_helper.to_array(values["value"])
        elif "value_float" in values:
            found[node.output[0]] = np.asarray(values["value_float"], np.float32)
    return found


def shapes_of(model: onnx.ModelProto) -> dict[str, list[int]]:
    """Return the shape of every tensor that has one; a free dimension is 0."""
    return _shapes(shape_inference.infer_shapes(model, data_prop=True))


def dtypes_of(model: onnx.ModelProto) -> dict[str, np.dtype[Any]]:
    """Return the floating type of every tensor that has one."""
    graph = shape_inference.infer_shapes(model).graph
    kinds = {v.name: v.type.tensor_type.elem_type for v in (*graph.value_info, *graph.output)}
    kinds |= {v.name: v.type.tensor_type.elem_type for v in graph.input}
    return {name: FLOATS[kind] for name, kind in kinds.items() if kind in FLOATS}


def rounded(model: onnx.ModelProto) -> dict[str, str]:
    """From each tensor that QuantizeLinear rounds to what DequantizeLinear makes of it."""
    codes = {n.output[0]: n.input[0] for n in model.graph.node if n.op_type == "QuantizeLinear"}
    return {
        codes[n.input[0]]: n.output[0]
        for n in model.graph.node
        if n.op_type == "DequantizeLinear" and n.input[0] in codes
    }


def forget(model: onnx.ModelProto, stale: Iterable[str]) -> None:
    """Remove the stored shapes of the model's tensors, and those of the outputs in *stale*."""
    del model.graph.value_info[:]
    for output in model.graph.output:
        if output.name in stale:
            output.type.tensor_type.ClearField("shape")


def infer(model: onnx.ModelProto, stale: Iterable[str] = ()) -> dict[str, list[int]]:
    """Infer all shapes again and check that each node fits.

    Args:
        model: gets the inferred shapes of its outputs; other stored shapes are removed.
        stale: outputs whose stored shapes may be wrong now.

    Raises:
        Misfit: a node does not fit; the error has the name of the first.
    """
    forget(model, stale)
    probe = onnx.ModelProto()
    probe.CopyFrom(model)
    for node in probe.graph.node:
        node.name = node.name or f"of output {node.output[0]}"
    try:
        inferred = shape_inference.infer_shapes(probe, strict_mode=True, data_prop=True)
    except (shape_inference.InferenceError, RuntimeError, ValueError) as error:
        reason = one_line(error)
        first = re.search(r"\(op_type:\w+, node name: (.*?)\): .*?(?= \(op_type:|$)", reason)
        raise (Misfit(first[1], first[0]) if first else Misfit("", reason)) from error
    shapes = _shapes(inferred)
    _check_reshapes(probe, shapes)
    for mine, known in zip(model.graph.output, inferred.graph.output, strict=True):
        mine.CopyFrom(known)
    return shapes


def _check_reshapes(model: onnx.ModelProto, shapes: Shapes) -> None:
    """Refuse a Reshape that changes the number of elements; shape inference does not check it."""
    for node in nodes_of(model, "Reshape"):
        given, made = (shapes.get(name, [0]) for name in (node.input[0], node.output[0]))
        if math.prod(given) != math.prod(made) and 0 not in (*given, *made):
            reason = f"(op_type:Reshape, node name: {node.name}): {given} to {made}"
            raise Misfit(node.name, reason)


def _shapes(model: onnx.ModelProto) -> dict[str, list[int]]:
    graph = model.graph
    found = {
        value.name: [dim.dim_value for dim in value.type.tensor_type.shape.dim]
        for value in (*graph.input, *graph.value_info, *graph.output)
        if value.type.tensor_type.HasField("shape")
    }
    return found | {tensor.name: list(tensor.dims) for tensor in graph.initializer}


@dataclass
class Builder:
    """Writes the nodes that replace one node.

    Attributes:
        model: receives the new constants.
        axis: part of the new nodes' names.
        output: the output name of the last node.
        dtype: the type of floating point constants.
        nodes: the nodes written so far.
    """

    model: onnx.ModelProto
    axis: str
    output: str
    dtype: np.dtype[Any] = FLOATS[onnx.TensorProto.FLOAT]
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    _count: Iterator[int] = field(default_factory=itertools.count)
    _stem: str = ""

    def __post_init__(self) -> None:
        graph = self.model.graph
        taken = {out for node in graph.node for out in node.output}
        taken |= {tensor.name for tensor in graph.initializer}
        self._stem = f"simulator/{self.axis}/{self.output}"
        while any(name.startswith(f"{self._stem}/") for name in taken):
            self._stem += "+"

    def __call__(self, kind: str, *inputs: str, last: bool = False, **options: Any) -> str:
        """Write a node and return the name of its output."""
        name = self._name()
        made = self.output if last else name
        self.nodes.append(helper.make_node(kind, list(inputs), [made], name=name, **options))
        return made

    def constant(self, value: Any, dtype: Any = None) -> str:
        """Add a constant to the model and return its name."""
        tensor = numpy_helper.from_array(np.asarray(value, dtype or self.dtype), self._name())
        self.model.graph.initializer.append(tensor)
        self.model.ir_version = max(self.model.ir_version, 4)  # before, constants were inputs
        return str(tensor.name)

    def rounded(self, value: str, kind: str, last: bool = False) -> str:
        """Round to a narrower floating type and back."""
        narrow = self("Cast", value, to=ROUNDED[kind])
        return self("Cast", narrow, to=helper.np_dtype_to_tensor_dtype(self.dtype), last=last)

    def reduced(self, kind: str, value: str, axes: Sequence[int]) -> str:
        """Reduce over some axes, which are an attribute or an input depending on the opset."""
        since = {"ReduceSum": 13, "ReduceMax": 18}[kind]
        if opset(self.model) < since:
            return self(kind, value, axes=list(axes))
        return self(kind, value, self.constant(list(axes), np.int64))

    def sliced(self, value: str, axis: int, begin: int, end: int) -> str:
        """Take a part of one axis."""
        limits = (self.constant([n], np.int64) for n in (begin, end, axis))
        return self("Slice", value, *limits)

    def _name(self) -> str:
        return f"{self._stem}/{next(self._count)}"


def splice(model: onnx.ModelProto, made: Mapping[str, Sequence[onnx.NodeProto]]) -> None:
    """Replace nodes, given by the name of their first output, by new nodes.

    Nodes and constants that are no longer used are removed.
    """
    graph = model.graph
    nodes = [
        new for old in graph.node for new in (made.get(old.output[0], [old]) if old.output else [])
    ]
    outputs = {value.name for value in graph.output}
    count = -1
    while count != len(nodes):
        count = len(nodes)
        used = outputs | {name for node in nodes for name in uses(node)}
        nodes = [node for node in nodes if used.intersection(node.output)]
    tensors = [tensor for tensor in graph.initializer if tensor.name in used]
    dropped = {tensor.name for tensor in graph.initializer} - used
    inputs = [value for value in graph.input if value.name not in dropped]
    for target, kept in ((graph.node, nodes), (graph.initializer, tensors), (graph.input, inputs)):
        del target[:]
        target.extend(kept)


def uses(node: onnx.NodeProto) -> Iterator[str]:
    """Yield the tensors that a node reads, also inside the bodies of If and Loop."""
    yield from node.input
    for attribute in node.attribute:
        for graph in (attribute.g, *attribute.graphs):
            for inner in graph.node:
                yield from uses(inner)
            yield from (value.name for value in graph.output)
