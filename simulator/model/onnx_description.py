"""What an ONNX file says of itself.

Sources: onnx/onnx, ``docs/Operators.md``; microsoft/onnxruntime, ``docs/ContribOperators.md`` and
"Quantize ONNX models" (QDQ and QOperator).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
from onnx import helper, numpy_helper, shape_inference

from simulator.contract import Array
from simulator.contract.description import (
    Beginning,
    Description,
    Preprocessing,
    Value,
    operators,
    precision,
    schemes,
)
from simulator.model.onnxfile import dims, structure
from simulator.model.passes.graph.edit import attributes, inputs_of

PRODUCTS = {
    "Conv": 1, "ConvTranspose": 1, "Gemm": 1, "MatMul": 1, "FusedConv": 1, "FusedMatMul": 1,
    "QLinearConv": 3, "QLinearMatMul": 3, "QGemm": 3, "ConvInteger": 1, "MatMulInteger": 1,
    "MatMulIntegerToFloat": 1, "DynamicQuantizeMatMul": 1, "MatMulNBits": 1, "LSTM": 1, "GRU": 1,
}  # fmt: skip
"""Convolutions and matrix products, each with the place of its weights among its inputs."""
_SUPPRESS = {"NonMaxSuppression", "EfficientNMS_TRT", "BatchedNMS_TRT", "BatchedNMSDynamic_TRT"}
_SMALL = 4096
"""Elements of a constant whose values are read; others are only typed."""
_LAYOUTS = ([0, 3, 1, 2], [0, 2, 3, 1])


def describe(path: Path) -> Description:
    """Read a file; the data of its large weights are left alone.

    Raises:
        ModelError: it is not an ONNX model, or lacks external data.
    """
    model, _ = structure(path)
    graph = _Graph(model)
    made = operators(graph.typed(node) for node in graph.nodes if node.op_type != "Constant")
    stored, computed = precision(made, PRODUCTS)
    return Description(
        inputs=tuple(graph.value(value) for value in inputs_of(model)),
        outputs=tuple(graph.value(value) for value in model.graph.output),
        operators=made,
        quantization=schemes(graph.schemes()),
        form=graph.form(),
        storage=stored,
        compute=computed,
        preprocessing=_preprocessing(model, graph),
        postprocessing=tuple(
            dict.fromkeys(n.op_type for n in model.graph.node if n.op_type in _SUPPRESS)
        ),
        metadata=_metadata(model),
    )


def _metadata(model: onnx.ModelProto) -> dict[str, str]:
    sets = ", ".join(f"{one.domain or 'ai.onnx'} {one.version}" for one in model.opset_import)
    said = {
        "producer": f"{model.producer_name} {model.producer_version}".strip(),
        "operator sets": sets,
        "IR version": str(model.ir_version),
        "graph": model.graph.name,
        "description": model.doc_string,
    }
    own = {one.key: one.value for one in model.metadata_props}
    return {key: value for key, value in {**said, **own}.items() if value}


class _Graph:
    """A graph's constants, and the type and the maker of every tensor."""

    def __init__(self, model: onnx.ModelProto) -> None:
        self.nodes = list(model.graph.node)
        self.makers = {name: node for node in self.nodes for name in node.output}
        self.small: dict[str, Array] = {}
        self.types: dict[str, int] = {}
        self.stored = {one.name for one in model.graph.initializer}
        for one in model.graph.initializer:
            self.types[one.name] = one.data_type
            external = one.data_location == onnx.TensorProto.EXTERNAL
            if not external and np.prod(one.dims, dtype=np.int64) <= _SMALL:
                self.small[one.name] = numpy_helper.to_array(one)
            else:
                one.ClearField("raw_data")
        for node in self.nodes:
            if node.op_type == "Constant" and node.attribute[0].name == "value":
                value = node.attribute[0].t
                self.types[node.output[0]] = value.data_type
                self.small[node.output[0]] = numpy_helper.to_array(value)
                self.stored.add(node.output[0])
        self._infer(model)

    def _infer(self, model: onnx.ModelProto) -> None:
        """Take the types that shape inference finds; operators of others stay without one."""
        try:
            known = shape_inference.infer_shapes(model).graph
        except Exception:  # of a file that onnx cannot follow, what is written is all there is
            known = model.graph
        for value in (*known.input, *known.value_info, *known.output):
            self.types.setdefault(value.name, value.type.tensor_type.elem_type)

    def kind(self, name: str) -> str:
        """NumPy's name of a tensor's type; empty where it is not known."""
        number = self.types.get(name, 0)
        if number == 0:
            return ""
        try:
            kind: str = helper.tensor_dtype_to_np_dtype(number).name
        except (KeyError, ValueError):
            return str(onnx.TensorProto.DataType.Name(number)).lower()
        return kind

    def value(self, value: onnx.ValueInfoProto) -> Value:
        return Value(value.name, self.kind(value.name), dims(value))

    def constant(self, name: str) -> bool:
        """Whether a tensor does not depend on the input: it is stored, or made of such alone."""
        for _ in self.nodes:
            if name in self.stored:
                return True
            maker = self.makers.get(name)
            if maker is None or not maker.input:
                return False
            name = maker.input[0]
        return False

    def quantized(self, name: str) -> str:
        """The type in which a tensor is quantized, through changes of its shape, or its own."""
        for _ in self.nodes:
            maker = self.makers.get(name)
            if maker is None or maker.op_type not in (
                "DequantizeLinear", "Transpose", "Reshape", "Identity", "Squeeze", "Unsqueeze"
            ):  # fmt: skip
                break
            name = maker.input[0]
            if maker.op_type == "DequantizeLinear":
                break
        return self.kind(name) or self._rounded(name)

    def _rounded(self, name: str) -> str:
        """The type that a QuantizeLinear gives, which inference does not know of all domains."""
        maker = self.makers.get(name)
        if maker is None or maker.op_type != "QuantizeLinear":
            return ""
        return self.kind(maker.input[2]) if len(maker.input) > 2 else "uint8"

    def typed(self, node: onnx.NodeProto) -> tuple[str, str, str]:
        """An operator's name, and the types of its weights and of what it takes."""
        place = PRODUCTS.get(node.op_type)
        first = node.input[0] if node.input else ""
        taken = self.quantized(first) if place is not None else self.kind(first)
        if node.op_type == "DynamicQuantizeMatMul":
            taken = "uint8"
        if node.op_type.startswith("QLinear") and len(node.input) > 2:
            taken = self.kind(node.input[2])  # of the zero point
        if place is None or len(node.input) <= place or not self.constant(node.input[place]):
            return node.op_type, "", taken
        kind = self.quantized(node.input[place])
        if node.op_type == "MatMulNBits":
            kind = f"int{attributes(node).get('bits', 4)}"
        return node.op_type, kind, taken

    def form(self) -> str:
        """How quantization is written."""
        kinds = {node.op_type for node in self.nodes}
        makers = {name: node.op_type for node in self.nodes for name in node.output}
        found = {
            "QDQ": any(
                makers.get(name) == "DequantizeLinear"
                for node in self.nodes
                if node.op_type in PRODUCTS
                for name in node.input
            ),
            "QOperator": any(k.startswith("QLinear") or k == "QGemm" for k in kinds),
            "dynamic": any(k.startswith("DynamicQuantize") for k in kinds),
            "blocks of weights": "MatMulNBits" in kinds,
        }
        return ", ".join(name for name, there in found.items() if there)

    def schemes(self) -> Iterator[tuple[str, str, str, bool | None]]:
        """Yield how each quantized tensor is; a bias of int32 has the scale of its product."""
        for node in self.nodes:
            kind = node.op_type
            if kind == "DequantizeLinear" and self.constant(node.input[0]):
                yield from self._scheme("weights", node, 0, 1)
            elif kind == "QuantizeLinear" and not self.constant(node.input[0]):
                yield from self._scheme("activations", node, None, 1)
            elif kind in ("QLinearConv", "QLinearMatMul", "QGemm"):
                yield from self._scheme("weights", node, 3, 4)
                yield from self._scheme("activations", node, None, 1)
            elif kind in ("MatMulInteger", "ConvInteger"):
                yield from self._scheme("weights", node, 1, None, 3)
            elif kind == "MatMulNBits":
                yield "weights", f"int{attributes(node).get('bits', 4)}", "block", None

    def _scheme(
        self, of: str, node: onnx.NodeProto, value: int | None, scale: int | None,
        zero: int | None = None,
    ) -> Iterator[tuple[str, str, str, bool | None]]:  # fmt: skip
        zero = scale + 1 if zero is None and scale is not None else zero
        named = node.input[zero] if zero is not None and len(node.input) > zero else ""
        kind = self.kind(node.input[value]) if value is not None else ""
        kind = kind or (self.kind(named) if named else "uint8")
        if kind == "int32":
            return
        per = "tensor"
        if scale is not None and (scales := self._sides(node.input[scale])):
            per = "channel" if len(scales) == 1 else "block"
        points = self.small.get(named)
        middle = 128 if kind == "uint8" else 0
        symmetric = (
            None
            if named and points is None
            else points is None or bool(np.all(np.asarray(points, np.int64) == middle))
        )
        yield of, kind, per, symmetric

    def _sides(self, name: str) -> tuple[int, ...]:
        """The shape of a stored scale; empty for one number, or where it is not known."""
        value = self.small.get(name)
        return () if value is None or value.size == 1 else value.shape


def _preprocessing(model: onnx.ModelProto, graph: _Graph) -> Preprocessing | None:
    """Follow the only image from the input to the first operator of the network itself."""
    inputs = inputs_of(model)
    if len(inputs) != 1 or len(dims(inputs[0])) != 4:
        return None
    begun, at = Beginning(), inputs[0].name
    for _ in graph.nodes:
        users = [node for node in graph.nodes if at in node.input]
        if len(users) != 1 or not _taken(begun, graph, users[0], at):
            break
        at = users[0].output[0]
    return begun.made()


def _taken(begun: Beginning, graph: _Graph, node: onnx.NodeProto, at: str) -> bool:
    """Whether an operator is still preprocessing."""
    kind, own = node.op_type, attributes(node)
    if kind == "Cast":
        to = helper.tensor_dtype_to_np_dtype(own["to"]).name
        return begun.then(f"{graph.kind(at) or 'input'} to {to}")
    if kind == "Transpose" and own.get("perm") in _LAYOUTS:
        last = own["perm"] == _LAYOUTS[0]
        return begun.then("NHWC to NCHW" if last else "NCHW to NHWC")
    if kind == "Resize":
        return begun.then("Resize", "resizes its input")
    return kind in ("QuantizeLinear", "DequantizeLinear", "Identity") or (
        _with_constant(begun, graph, node, at)
    )


def _with_constant(begun: Beginning, graph: _Graph, node: onnx.NodeProto, at: str) -> bool:
    """Whether an operator and its constant are still preprocessing."""
    kind, others = node.op_type, [name for name in node.input if name != at]
    value = graph.small.get(others[0]) if len(others) == 1 else None
    if value is None:
        return False
    if kind == "Gather":
        return value.ravel().tolist() == [2, 1, 0] and begun.reverse()
    # x - c and x / c only: c - x and c / x are the network's
    in_order = node.input[0] == at or kind in ("Add", "Mul")
    if kind not in ("Add", "Sub", "Mul", "Div") or not in_order or value.dtype.kind != "f":
        return False
    if _rounded(graph, node.output[0]):
        return False
    return begun.arithmetic(kind, [float(one) for one in value.ravel()])


def _rounded(graph: _Graph, at: str) -> bool:
    """Whether a value becomes a code: what scales it is a quantizer written as arithmetic."""
    return any(
        user.op_type == "Round" or (user.op_type == "Clip" and _rounded(graph, user.output[0]))
        for user in graph.nodes
        if at in user.input
    )
