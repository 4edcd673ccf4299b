"""Scales and shifts of normalizations in an ONNX graph, in whatever operators it is written."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import numpy as np

from simulator.contract import Array

if TYPE_CHECKING:
    import onnx

OWN = {
    "BatchNormalization": (1, 2),
    "GroupNormalization": (1, 2),
    "InstanceNormalization": (1, 2),
    "LayerNormalization": (1, 2),
    "RMSNormalization": (1,),
}
"""Operators that normalize: which inputs are the scale and the shift."""
_SHAPES = ("Cast", "Identity", "Reshape", "Squeeze", "Transpose", "Unsqueeze")
_LIMITS = ("Clip", "Expand", "Max", "Sqrt")
_DEVIATION, _INVERSE, _NORMAL = range(3)
"""What a value is: what is divided by, its reciprocal, or normalized."""
Slot = tuple["onnx.NodeProto", int]


def to_inputs(model: onnx.ModelProto) -> dict[str, Array]:
    """Make each scale and shift an input of the graph, in place.

    A normalization is an operator of that name; or what is divided by the root of a mean of
    squares, as exporters write LayerNormalization and RMSNormalization before they were operators.
    Its scale is the constant it is multiplied by, and its shift the one that is added then; so are
    those behind an operator whose own are ones and zeros, as GroupNorm is exported. Exporters merge
    constants that happen to be equal: each normalization gets its own.

    Returns:
        The values, by the names of the new inputs, in their order.
    """
    from onnx import helper

    graph = _Graph(model)
    found: dict[str, Array] = {}
    for number, (node, index) in enumerate(graph.slots()):
        value, name = graph.held[node.input[index]], f"affine_{number}"
        node.input[index] = name
        kind = helper.np_dtype_to_tensor_dtype(value.dtype)
        model.graph.input.append(helper.make_tensor_value_info(name, kind, value.shape))
        found[name] = value
    return found


class _Graph:
    """Nodes by what they read and write, and what is constant."""

    def __init__(self, model: onnx.ModelProto) -> None:
        self.nodes = model.graph.node
        self.made = {name: node for node in self.nodes for name in node.output}
        self.users: dict[str, list[onnx.NodeProto]] = defaultdict(list)
        for node in self.nodes:
            for name in dict.fromkeys(node.input):
                self.users[name].append(node)
        self.held = _folded(model)

    def slots(self) -> list[Slot]:
        """Return nodes and the inputs of them that are a scale or a shift, each once."""
        found: dict[tuple[str, int], Slot] = {}
        for node in self.nodes:
            for slot in self._of(node):
                found[slot[0].output[0], slot[1]] = slot
        return list(found.values())

    def _of(self, node: onnx.NodeProto) -> list[Slot]:
        if node.op_type in OWN:
            own = [(node, index) for index in OWN[node.op_type] if self._is_given(node, index)]
            behind = self._walked(node.output[0], _NORMAL) if self._is_trivial(own) else []
            return behind or own
        squares = node.op_type in ("ReduceL2", "ReduceSumSquare")
        if squares or (node.op_type in ("ReduceMean", "ReduceSum") and self._is_square(node)):
            return self._walked(node.output[0], _DEVIATION)
        return []

    def _is_given(self, node: onnx.NodeProto, index: int) -> bool:
        return len(node.input) > index and node.input[index] in self.held

    def _is_trivial(self, own: list[Slot]) -> bool:
        return all((self.held[node.input[index]] == 2 - index).all() for node, index in own)

    def _is_square(self, node: onnx.NodeProto) -> bool:
        before = self.made.get(node.input[0])
        if before is None or before.op_type not in ("Mul", "Pow"):
            return False
        return before.input[0] == before.input[1] or self._is_number(before.input[1], 2)

    def _is_number(self, name: str, value: float) -> bool:
        return name in self.held and self.held[name].size == 1 and bool(self.held[name] == value)

    def _walked(self, value: str, state: int) -> list[Slot]:
        """Follow a value, and collect the constants that scale and shift what is normalized."""
        found: list[Slot] = []
        todo = [(value, state)]
        while todo:
            value, state = todo.pop()
            for node in self.users[value]:
                after, slot = self._step(node, value, state)
                found += [slot] if slot else []
                todo += [(node.output[0], after)] if after is not None else []
        return found

    def _step(self, node: onnx.NodeProto, value: str, state: int) -> tuple[int | None, Slot | None]:
        """Return what a node makes of a value, None where the normalization ends; and its slot."""
        kind, own = node.op_type, list(node.input).index(value)
        if kind in _SHAPES:
            return (state if own == 0 else None), None
        size = self._size(node, 1 - own)
        if state == _DEVIATION:
            return self._divided(node, own, size), None
        if size > 1 and (kind == "Mul" or (state == _NORMAL and kind in ("Add", "Sub"))):
            return (state if kind == "Mul" else None), (node, 1 - own)
        if kind == "Mul" and size == 0:
            return (_NORMAL if state == _INVERSE else None), None
        return (state if size == 1 and _keeps(kind, own) else None), None

    def _divided(self, node: onnx.NodeProto, own: int, size: int) -> int | None:
        """Return what a node makes of a mean of squares, or of its root."""
        kind = node.op_type
        if kind == "Div" and own == 1:
            return _INVERSE if size else _NORMAL
        if kind == "Reciprocal" or (kind == "Pow" and self._is_number(node.input[1], -0.5)):
            return _INVERSE
        rooted = kind == "Pow" and self._is_number(node.input[1], 0.5)
        limited = kind in _LIMITS and own == 0
        return _DEVIATION if rooted or limited or (size == 1 and _keeps(kind, own)) else None

    def _size(self, node: onnx.NodeProto, index: int) -> int:
        """How many numbers a constant input has; 0 where it is none."""
        name = node.input[index] if len(node.input) == 2 else ""
        return self.held[name].size if name in self.held else 0


def _keeps(kind: str, own: int) -> bool:
    """Whether a value stays what it is under arithmetic with one number."""
    return kind in ("Add", "Mul") or (kind in ("Div", "Sub") and own == 0)


def _folded(model: onnx.ModelProto) -> dict[str, Array]:
    """Return all constants, and what is made of nothing but constants."""
    from onnx import numpy_helper
    from onnx.reference import ReferenceEvaluator

    found = {one.name: numpy_helper.to_array(one) for one in model.graph.initializer}
    for node in model.graph.node:
        if node.op_type in ("Add", "Constant", *_SHAPES) and set(node.input) <= set(found):
            (value,) = ReferenceEvaluator(node).run(
                None, {name: found[name] for name in node.input}
            )
            found[node.output[0]] = np.asarray(value)
    return found
