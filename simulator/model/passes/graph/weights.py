"""The weights of a model, in the form in which the file stores them."""

from __future__ import annotations

from dataclasses import dataclass

import onnx
from onnx import helper

PLACES = {
    "Conv": (1,), "ConvTranspose": (1,), "ConvInteger": (1,), "QLinearConv": (3,),
    "FusedConv": (1,), "NhwcFusedConv": (1,), "QGemm": (3,), "FusedGemm": (1,),
    "Gemm": (0, 1), "MatMul": (0, 1), "FusedMatMul": (0, 1), "MatMulInteger": (0, 1),
    "QLinearMatMul": (0, 3), "MatMulIntegerToFloat": (0, 1), "DynamicQuantizeMatMul": (1,),
    "MatMulNBits": (1,), "LSTM": (1, 2), "GRU": (1, 2), "RNN": (1, 2),
}  # fmt: skip
"""The inputs of each layer that hold weights if they are constant; biases do not count."""
ON_THE_WAY = frozenset({
    "DequantizeLinear", "QuantizeLinear", "Cast", "Identity",
    "Reshape", "Transpose", "Squeeze", "Unsqueeze", "Slice",
})  # fmt: skip
"""Operators allowed between a stored weight and its layer; the weight is their first input."""
DOMAINS = ("", "ai.onnx", "com.microsoft")


@dataclass(frozen=True, slots=True)
class Weight:
    """A tensor that a file stores, and the first layer that multiplies by it.

    Attributes:
        name: the name of the tensor.
        tensor: the tensor itself, inside the model.
        layer: the layer's name, or the name of its first output.
    """

    name: str
    tensor: onnx.TensorProto
    layer: str

    @property
    def count(self) -> int:
        """The number of elements."""
        count = 1
        for size in self.tensor.dims:
            count *= size
        return count

    @property
    def stored(self) -> str:
        """The type of its elements in the file, as NumPy names it."""
        return str(helper.tensor_dtype_to_np_dtype(self.tensor.data_type).name)


def weights(model: onnx.ModelProto) -> list[Weight]:
    """Return every weight once, in the order of the layers.

    The order does not depend on the names that a quantizer gives its tensors. Layers inside the
    bodies of If and Loop are ignored.
    """
    stored = {tensor.name: tensor for tensor in model.graph.initializer}
    made = {}
    for node in model.graph.node:
        made.update(dict.fromkeys(node.output, node))
        if node.op_type == "Constant" and node.attribute[0].name == "value":
            stored[node.output[0]] = node.attribute[0].t
    found: dict[str, Weight] = {}
    for node in model.graph.node:
        if node.domain not in DOMAINS:
            continue
        for place in PLACES.get(node.op_type, ()):
            name = node.input[place] if place < len(node.input) else ""
            while name in made and made[name].op_type in ON_THE_WAY:
                name = made[name].input[0]
            if name in stored and name not in found:
                found[name] = Weight(name, stored[name], node.name or node.output[0])
    return [weight for weight in found.values() if weight.count]
