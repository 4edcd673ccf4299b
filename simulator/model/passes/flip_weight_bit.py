"""A memory fault: one bit of one stored weight, as the file stores it, is flipped."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import onnx
from onnx import external_data_helper, helper, numpy_helper
from pydantic import BaseModel, ConfigDict, Field

from simulator.contract.passes import AfterPass
from simulator.contract.recipe import generator
from simulator.errors import ModelError
from simulator.model.onnxfile import structure, tensors
from simulator.profile.section import Section

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


NAME = "flip_weight_bit"
WIDTHS = {
    "float64": 64, "float32": 32, "float16": 16, "bfloat16": 16,
    "float8_e4m3fn": 8, "float8_e4m3fnuz": 8, "float8_e5m2": 8, "float8_e5m2fnuz": 8,
    "float4_e2m1fn": 4,
    "int32": 32, "uint32": 32, "int16": 16, "uint16": 16, "int8": 8, "uint8": 8,
    "int4": 4, "uint4": 4, "int2": 2, "uint2": 2,
}  # fmt: skip
"""Bits per stored element. Elements of less than 8 bits share bytes, the first in the low bits.

Source: onnx.proto, ``TensorProto.raw_data``.
"""
TYPED = ("float_data", "int32_data", "int64_data", "double_data", "uint64_data")


class Options(Section):
    """The bit to flip, and the values that seed the choice of the weight.

    Attributes:
        bit: from 0, the least significant one.
        condition: the name of the condition that requests the flip.
        trial: the number of its trial; equal conditions and trials choose the same element.
    """

    bit: Annotated[int, Field(ge=0)]
    condition: str
    trial: Annotated[int, Field(ge=0)]


class Flip(BaseModel):
    """Report of a flipped bit.

    Attributes:
        tensor: the name of the stored weight.
        layer: the first layer that multiplies by it: its name, or the name of its first output.
        index: the position of the element in the tensor.
        bit: from 0, the least significant one.
        stored: the type of the element in the file, as NumPy names it.
        before: the stored number; for a quantized weight its integer code.
        after: the number after the flip; it may be infinite or NaN.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="strings")

    tensor: str
    layer: str
    index: tuple[int, ...]
    bit: int
    stored: str
    before: float
    after: float


def apply(source: Path, target: Path, options: Options) -> Flip:
    """Write a copy of a model in which one bit of one weight is flipped.

    The element is drawn uniformly from all elements of all weights; see :func:`weights`. Two files
    of one network whose weights have the same order and number get the flip in the same element,
    whatever their types.

    Args:
        source: an ONNX file; its external data stays external, and is copied.
        target: where the copy goes.
        options: the bit and the draw.

    Raises:
        ModelError: the model has no stored weights, or a weight's type has no such bit.
    """
    model, _ = structure(source)
    found = weights(model)
    _check(source, found, options.bit)
    ends = np.cumsum([weight.count for weight in found])
    drawn = int(generator(options.condition, options.trial).integers(ends[-1]))
    which = int(np.searchsorted(ends, drawn, side="right"))
    weight = found[which]
    place = drawn - int(ends[which]) + weight.count
    before, after = _flip(weight, place, options.bit, source.parent)
    _write(model, source, target)
    return Flip(
        tensor=weight.name,
        layer=weight.layer,
        index=tuple(int(i) for i in np.unravel_index(place, tuple(weight.tensor.dims))),
        bit=options.bit,
        stored=weight.stored,
        before=before,
        after=after,
    )


def _check(source: Path, found: list[Weight], bit: int) -> None:
    if not found:
        raise ModelError(f"{NAME}: {source.name} has no stored weights of a Conv, Gemm or MatMul")
    for weight in found:
        width = WIDTHS.get(weight.stored, 0)
        if bit >= width:
            bits = f"whose bits are 0 to {width - 1}" if width else "which cannot be changed"
            raise ModelError(
                f"{NAME}: bit {bit}: {source.name} stores the weight {weight.name!r} as "
                f"{weight.stored}, {bits}"
            )


def _flip(weight: Weight, place: int, bit: int, folder: Path) -> tuple[float, float]:
    """Flip a bit of an element, in place; return the element before and after."""
    tensor, width = weight.tensor, WIDTHS[weight.stored]
    _make_raw(tensor, folder)
    raw = bytearray(tensor.raw_data)
    before = _number(tensor.data_type, raw, place, width)
    at = place * width + bit
    raw[at // 8] ^= 1 << at % 8
    tensor.raw_data = bytes(raw)
    return before, _number(tensor.data_type, raw, place, width)


def _make_raw(tensor: onnx.TensorProto, folder: Path) -> None:
    """Move the data of a tensor into ``raw_data``, unchanged."""
    if tensor.data_location == onnx.TensorProto.EXTERNAL:
        external_data_helper.load_external_data_for_tensor(tensor, str(folder))
        del tensor.external_data[:]
        tensor.data_location = onnx.TensorProto.DEFAULT
    if not tensor.HasField("raw_data"):
        raw = numpy_helper.from_array(numpy_helper.to_array(tensor)).raw_data
        for name in TYPED:
            tensor.ClearField(name)
        tensor.raw_data = raw


def _number(kind: int, raw: bytearray, place: int, width: int) -> float:
    """Return one element as a number."""
    if width < 8:
        each = 8 // width
        code = raw[place // each] >> place % each * width & (1 << width) - 1
        own = bytes([code])
    else:
        own = bytes(raw[place * width // 8 : (place + 1) * width // 8])
    tensor = onnx.TensorProto(data_type=kind, dims=[1], raw_data=own)
    return float(numpy_helper.to_array(tensor)[0])


def _write(model: onnx.ModelProto, source: Path, target: Path) -> None:
    """Write a model, and copy the external data that it still uses into the same folder."""
    target.write_bytes(model.SerializeToString())
    external = [t for t in tensors(model.graph) if t.data_location == onnx.TensorProto.EXTERNAL]
    for location in {e.value for t in external for e in t.external_data if e.key == "location"}:
        copy = target.parent / location
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source.parent / location, copy)


PASS = AfterPass(NAME, ("onnx",), Options, Flip, apply)
