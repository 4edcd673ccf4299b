"""ONNX weights in another storage: the graph changes made by `weight_only`."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from simulator.contract import Array, Cast, ModelError, Options, kept

if TYPE_CHECKING:
    import onnx

_OPSET = 13  # the first with BF16 in Cast, and a scale for each channel in DequantizeLinear


class StoredWeights(Cast):
    """Replaces weights by stored weights and the nodes that convert them to FP32.

    Attributes:
        opset: the opset of the current model.
        ir_version: the lowest IR version that the stored types need.
    """

    opset: int
    ir_version = 0

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        self._initializers: dict[str, Array] = {}
        self._nodes: list[onnx.NodeProto] = []

    def cast(self, source: Path, target: Path) -> None:
        """Write *source* to *target*, with its weights in the requested type."""
        import onnx
        from onnx import numpy_helper

        model = onnx.load(str(source))
        graph = model.graph
        self.opset = next(o.version for o in model.opset_import if o.domain in ("", "ai.onnx"))
        if self.opset < _OPSET:
            raise ModelError(f"opset {self.opset}: {_OPSET} or later is needed; convert the model")
        spared = kept(model, self.options["keep"])
        weights, made = constants(graph), dict[tuple[str, int], str]()
        for node in graph.node:
            for index, axis in () if node.name in spared else self.places(node):
                name = node.input[index]
                if name in weights:
                    if (name, axis) not in made:
                        made[name, axis] = self.store(name, weights[name], axis)
                    node.input[index] = made[name, axis]
        if not made:
            raise ModelError("there are no FP32 weights to store outside the keep list")
        drop_unused(graph, {name for name, _ in made})
        graph.initializer.extend(
            numpy_helper.from_array(a, name) for name, a in self._initializers.items()
        )
        nodes = [*self._nodes, *graph.node]
        del graph.node[:]
        graph.node.extend(nodes)
        model.ir_version = max(model.ir_version, self.ir_version)
        onnx.save(model, str(target))

    def node(self, op_type: str, *inputs: str, after: int = 0, **attributes: Any) -> str:
        """Add a node, whose output is named after one of its inputs; return that name."""
        from onnx import helper

        output = f"{inputs[after]}.{op_type}"
        self._nodes.append(
            helper.make_node(op_type, list(inputs), [output], name=output, **attributes)
        )
        return output

    def constant(self, name: str, value: Any) -> str:
        """Add an initializer; return its name."""
        self._initializers[name] = np.asarray(value)
        return name

    def grouped(self, name: str, weight: Array, axis: int) -> Array:
        """Return a weight as one row per scale; the last row of a channel is padded with zeros.

        Raises:
            ModelError: a value is not finite.
        """
        if not np.isfinite(weight).all():
            raise ModelError(f"weight {name!r} has values that are not finite")
        rows = np.moveaxis(weight, axis, 0) if weight.ndim > 1 else weight[None]
        table = rows.reshape(len(rows), -1)
        granularity = self.options["granularity"]
        if granularity == "per_tensor":
            return table.reshape(1, -1)
        if granularity == "per_channel":
            return table
        block = min(self.options["block_size"], table.shape[1])
        return np.pad(table, ((0, 0), (0, -table.shape[1] % block))).reshape(-1, block)

    def shaped(self, made: str, count: int, weight: Array, axis: int, part: str) -> str:
        """Add the nodes that give a table of *count* values the shape of a weight."""
        straight = weight.ndim < 2 or axis % weight.ndim == 0
        turned = np.moveaxis(weight, axis, 0) if weight.ndim > 1 else weight[None]
        channels, columns = len(turned), weight.size // len(turned)
        if count > weight.size:
            padded = self.constant(f"{part}.padded", np.array([channels, -1]))
            made = self.node("Reshape", made, padded)
            ends = (("from", 0), ("to", columns), ("axis", 1))
            edges = [self.constant(f"{part}.{word}", np.array([n])) for word, n in ends]
            made = self.node("Slice", made, *edges)
        shape = weight.shape if straight else turned.shape
        made = self.node("Reshape", made, self.constant(f"{part}.shape", np.array(shape)))
        if straight:
            return made
        order = list(range(1, weight.ndim))
        order.insert(axis % weight.ndim, 0)
        return self.node("Transpose", made, perm=order)

    def typed(self, kind: str, since: int, ir_version: int) -> Any:
        """Return the NumPy type of an ONNX type; None where the model's opset lacks it."""
        from onnx import TensorProto, helper

        if self.opset < since:
            return None
        self.ir_version = max(self.ir_version, ir_version)
        return helper.tensor_dtype_to_np_dtype(TensorProto.DataType.Value(kind))

    @abstractmethod
    def places(self, node: onnx.NodeProto) -> Iterator[tuple[int, int]]:
        """Yield the indices of weight inputs, each with the axis of its output channels."""

    @abstractmethod
    def store(self, name: str, weight: Array, axis: int) -> str:
        """Add the stored form of a weight; return the name of the FP32 tensor made from it."""


def weight_inputs(node: onnx.NodeProto) -> Iterator[tuple[int, int]]:
    """Yield where an operator that multiplies may have weights, with the axis of their outputs."""
    if node.op_type == "Conv":
        yield 1, 0
    elif node.op_type == "ConvTranspose":
        yield 1, 1
    elif node.op_type == "Gemm":
        transposed = any(a.name == "transB" and a.i for a in node.attribute)
        yield 1, 0 if transposed else 1
    elif node.op_type == "MatMul":
        yield from ((0, -2), (1, -1))


def constants(graph: onnx.GraphProto) -> dict[str, Array]:
    """Return every FP32 constant of a graph, from initializers and Constant nodes."""
    from onnx import TensorProto, numpy_helper

    tensors = {tensor.name: tensor for tensor in graph.initializer}
    for node in graph.node:
        if node.op_type == "Constant" and node.attribute[0].name == "value":
            tensors[node.output[0]] = node.attribute[0].t
    return {
        name: numpy_helper.to_array(tensor)
        for name, tensor in tensors.items()
        if tensor.data_type == TensorProto.FLOAT
    }


def drop_unused(graph: onnx.GraphProto, names: set[str]) -> None:
    """Remove the constants in *names* that are no longer read."""
    dead = names - set(_read(graph))
    for held in (graph.initializer, graph.input):
        for value in [value for value in held if value.name in dead]:
            held.remove(value)
    for node in [node for node in graph.node if node.op_type == "Constant"]:
        if node.output[0] in dead:
            graph.node.remove(node)


def _read(graph: onnx.GraphProto) -> Iterator[str]:
    """Yield every tensor that a graph reads or returns, also in the bodies of If and Loop."""
    yield from (port.name for port in graph.output)
    for node in graph.node:
        yield from node.input
        for attribute in node.attribute:
            for inner in (attribute.g, *attribute.graphs):
                yield from _read(inner)
