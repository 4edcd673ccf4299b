"""Builds an ONNX graph, one node after the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from simulator.contract import Array, ModelError

OPSET, IR_VERSION = 18, 10
PROTOBUF = 2**31
"""Bytes of a file; Protocol Buffers know no more."""
MASKED = -1e4
"""What attention adds to a score that does not count; FP16 can store it."""


class Nodes:
    """The nodes and constants of one graph, float32; a constant is stored once.

    There is no Cast between floating-point types, so that converters to FP16 find one type.
    """

    def __init__(self) -> None:
        self._nodes: list[onnx.NodeProto] = []
        self._constants: dict[str, onnx.TensorProto] = {}
        self._bytes = 0

    def model(
        self,
        name: str,
        inputs: Sequence[onnx.ValueInfoProto],
        outputs: Sequence[onnx.ValueInfoProto],
        about: dict[str, str],
    ) -> onnx.ModelProto:
        """Return the model, with *about* as its metadata."""
        graph = helper.make_graph(self._nodes, name, list(inputs), list(outputs))
        made = helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION
        )
        while self._constants:  # the model has its own copy: no more than one is held twice
            made.graph.initializer.append(self._constants.pop(next(iter(self._constants))))
        helper.set_model_props(made, about)
        return made

    def add(self, kind: str, inputs: Sequence[str], name: str, **attributes: Any) -> str:
        """Add a node; its name is also that of its output, which is returned."""
        self._nodes.append(helper.make_node(kind, list(inputs), [name], name=name, **attributes))
        return name

    def constant(self, name: str, value: Any) -> str:
        """Add a constant, unless it is there; return its name.

        Raises:
            ModelError: all constants together do not fit into one file.
        """
        if name not in self._constants:
            array = np.asarray(value)
            self._bytes += array.nbytes
            if self._bytes >= PROTOBUF:
                raise ModelError(
                    "the weights in FP32 do not fit into an ONNX file, which holds 2 GB at most; "
                    "take a smaller model"
                )
            self._constants[name] = numpy_helper.from_array(array, name)
        return name

    def linear(self, value: str, name: str, weight: Array, bias: Array | None = None) -> str:
        """Multiply by a weight (out, in), as checkpoints store it.

        It is stored as (in, out): quantizers look for MatMul with a constant.
        """
        self.constant(f"{name}.weight", np.ascontiguousarray(weight.T))
        made = self.add("MatMul", [value, f"{name}.weight"], name)
        if bias is None:
            return made
        return self.add("Add", [made, self.constant(f"{name}.bias", bias)], f"{name}.biased")

    def reshape(self, value: str, name: str, *sizes: int) -> str:
        """Reshape; a size of 0 is kept, one of -1 is the rest."""
        word = f"shape.{'x'.join(map(str, sizes))}"
        return self.add("Reshape", [value, self.constant(word, np.array(sizes))], name)

    def split(self, value: str, sizes: str, parts: Sequence[str]) -> None:
        """Cut the last axis into parts of these sizes."""
        name = f"{value}.split"
        self._nodes.append(helper.make_node("Split", [value, sizes], list(parts), name, axis=-1))

    def size(self, value: str, axis: int, name: str) -> str:
        """Return a dimension, as a tensor of one int64."""
        return self.add("Shape", [value], name, start=axis, end=axis + 1)


def port(name: str, kind: int, *shape: int | str) -> onnx.ValueInfoProto:
    """Return an input or output; a text is a free dimension."""
    return helper.make_tensor_value_info(name, kind, list(shape))


def ids_and_mask() -> list[onnx.ValueInfoProto]:
    """Return the inputs that every text model has: (batch, seq) int64."""
    free = ("batch", "seq")
    return [port(name, TensorProto.INT64, *free) for name in ("input_ids", "attention_mask")]
