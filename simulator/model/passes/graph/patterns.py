"""Activations that exporters write as several nodes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import onnx

from simulator.contract import Array
from simulator.model.passes.graph import edit


class Graph:
    """The producer and the readers of each tensor.

    Attributes:
        constants: every constant tensor.
        made: the node that produces each tensor.
        readers: the nodes that read each tensor.
    """

    def __init__(self, model: onnx.ModelProto) -> None:
        self.constants: dict[str, Array] = edit.constants(model)
        self.made = {out: node for node in model.graph.node for out in node.output}
        self.readers: dict[str, list[onnx.NodeProto]] = {}
        for node in model.graph.node:
            for name in node.input:
                self.readers.setdefault(name, []).append(node)

    def is_number(self, name: str, value: float) -> bool:
        """Whether a tensor is one number, within the precision of FP16."""
        found = self.constants.get(name)
        return found is not None and found.size == 1 and bool(np.isclose(found, value, rtol=1e-3))

    def times(self, name: str, value: float) -> str | None:
        """Return x if a tensor is x times a number or x divided by its inverse; else None."""
        node = self.made.get(name)
        if node is None or node.op_type not in ("Mul", "Div"):
            return None
        first, second = node.input
        if node.op_type == "Div":
            return first if self.is_number(second, 1 / value) else None
        if self.is_number(second, value):
            return str(first)
        return str(second) if self.is_number(first, value) else None

    def others(self, kind: str, name: str) -> Iterator[tuple[onnx.NodeProto, str]]:
        """Yield the two-input nodes of a kind that read a tensor, each with its other input."""
        for node in self.readers.get(name, []):
            if node.op_type == kind and len(node.input) == 2:
                yield node, str(node.input[node.input[0] == name])


def gelus(model: onnx.ModelProto) -> dict[str, tuple[str, str]]:
    """Return (input, ``erf`` or ``tanh``) of every GELU, by the name of its output.

    It finds ONNX's Gelu, x / 2 * (1 + erf(x / sqrt 2)) and x / 2 * (1 + tanh(sqrt(2 / pi)
    * (x + 0.044715 x^3))), with factors in any order.
    """
    graph = Graph(model)
    found = {}
    for node in edit.nodes_of(model, "Gelu", "Erf", "Tanh"):
        if node.op_type == "Gelu":
            form = "tanh" if edit.attributes(node).get("approximate") == "tanh" else "erf"
            found[node.output[0]] = (str(node.input[0]), form)
            continue
        given = (_erf if node.op_type == "Erf" else _tanh)(graph, node.input[0])
        for out in _halved(graph, node.output[0], given) if given else ():
            found[out] = (str(given), node.op_type.lower())
    return found


def _erf(graph: Graph, name: str) -> str | None:
    return graph.times(name, 0.5**0.5)


def _tanh(graph: Graph, name: str) -> str | None:
    inner = graph.times(name, (2 / np.pi) ** 0.5)
    node = graph.made.get(inner or "")
    if node is None or node.op_type != "Add":
        return None
    for given, cubed in (tuple(node.input), tuple(reversed(node.input))):
        cube = graph.made.get(graph.times(cubed, 0.044715) or "")
        if cube is not None and _is_cube(graph, cube, given):
            return str(given)
    return None


def _is_cube(graph: Graph, node: onnx.NodeProto, given: str) -> bool:
    if node.op_type == "Pow":
        return node.input[0] == given and graph.is_number(node.input[1], 3)
    squares = [graph.made.get(name) for name in node.input if name != given]
    return (
        node.op_type == "Mul"
        and len(squares) == 1
        and squares[0] is not None
        and (list(squares[0].input) == [given, given] or (
            squares[0].op_type == "Pow" and squares[0].input[0] == given
            and graph.is_number(squares[0].input[1], 2)))
    )  # fmt: skip


def _halved(graph: Graph, bent: str, given: str) -> Iterator[str]:
    """Yield the products of 1 + *bent*, *given* and 1 / 2, in any order."""
    for plus, one in graph.others("Add", bent):
        if not graph.is_number(one, 1):
            continue
        for product, other in graph.others("Mul", plus.output[0]):
            if graph.times(other, 0.5) == given:
                yield product.output[0]
                continue
            rest = 0.5 if other == given else given if graph.is_number(other, 0.5) else None
            for whole, last in graph.others("Mul", product.output[0]) if rest else ():
                if last == rest or (rest == 0.5 and graph.is_number(last, 0.5)):
                    yield whole.output[0]


def swishes(model: onnx.ModelProto) -> set[str]:
    """Return the outputs of the Sigmoids that are multiplied only by their own input."""
    graph = Graph(model)
    outputs = {value.name for value in model.graph.output}
    found = set()
    for node in edit.nodes_of(model, "Sigmoid"):
        out = node.output[0]
        gates = [other == node.input[0] for _, other in graph.others("Mul", out)]
        if gates and all(gates) and len(gates) == len(graph.readers[out]) and out not in outputs:
            found.add(out)
    return found
