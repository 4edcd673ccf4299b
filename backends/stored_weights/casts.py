"""Weights stored in BF16 or in 8, 6, 4 or 2 bits, in standard ONNX, by our own arithmetic."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from backends.stored_weights.codes import quantize
from backends.stored_weights.floats import FIELDS, FLOATS, MAY_BE_LEFT_OUT
from backends.stored_weights.nodes import StoredWeights, weight_inputs
from simulator.contract import (
    Admits,
    Array,
    AtLeast,
    Backend,
    Evidence,
    KeepList,
    Offer,
    Stage,
)

if TYPE_CHECKING:
    import onnx

_BITS = {"int8": 8, "int6": 6, "int4": 4, "int2": 2}
_TYPES = {4: (21, 10), 2: (25, 13)}  # bits: the first opset and IR version with such a type
_SHAPING = frozenset({"Resize", "Upsample", "Range"})


class Bf16Weights(StoredWeights):
    """Every FP32 constant rounded to the nearest BF16, ties to even, behind a Cast to FP32.

    These stay in FP32: the inputs of kept nodes, the constants of Resize, Upsample and Range (they
    decide shapes), and the bodies of If and Loop.
    """

    def places(self, node: onnx.NodeProto) -> Iterator[tuple[int, int]]:
        """Yield every input; the axis of channels is not used."""
        if node.op_type not in _SHAPING:
            yield from ((index, 0) for index in range(len(node.input)))

    def store(self, name: str, weight: Array, axis: int) -> str:
        """Round to nearest, ties to even."""
        from onnx import TensorProto, helper

        rounded = weight.astype(helper.tensor_dtype_to_np_dtype(TensorProto.BFLOAT16))
        return self.node("Cast", self.constant(f"{name}.bf16", rounded), to=TensorProto.FLOAT)


class IntegerWeights(StoredWeights):
    """Weights of Conv, ConvTranspose, Gemm and MatMul as integer codes with FP32 scales.

    Symmetric codes go from -(2^(b-1) - 1) to 2^(b-1) - 1, so that both ends of a range are exact;
    asymmetric ones from 0 to 2^b - 1, with zero inside the range. A block consists of consecutive
    weights of one output channel in row-major order; the last one may be shorter.
    Biases, kept nodes and the bodies of If and Loop stay in FP32.

    The codes are a table with one row per scale; DequantizeLinear and Reshape turn it into the
    weight. It has ONNX's 8-bit type, its 4-bit type from opset 21, or its 2-bit type from opset 25.
    6 bits, and fewer bits in an older model, are stored in bytes: the numbers are the same, but
    the file is larger. The Reshape prevents ONNX Runtime from fusing DequantizeLinear and MatMul
    to MatMulNBits, which by default also rounds the activations to INT8.

    Source:
        ONNX DequantizeLinear-13, -21, -25; Nagel et al., A White Paper on Neural Network
        Quantization, https://arxiv.org/abs/2106.08295, section 2.
    """

    def places(self, node: onnx.NodeProto) -> Iterator[tuple[int, int]]:
        """Yield the weight inputs of the operators that multiply."""
        yield from weight_inputs(node)

    def store(self, name: str, weight: Array, axis: int) -> str:
        """Quantize a weight, and add the nodes that restore its values and shape."""
        groups = self.grouped(name, weight, axis)
        bits, symmetric = _BITS[self.options["storage"]], self.options["symmetric"]
        codes, scales, zeros = quantize(groups, bits, symmetric)
        sign = "" if symmetric else "U"
        dtype = self.typed(f"{sign}INT{bits}", *_TYPES[bits]) if bits in _TYPES else None
        if dtype is None:
            dtype = self.typed(f"{sign}INT8", 0, 0)
        part = f"{name}.{self.options['storage']}.{axis}"
        parameters = [self.constant(f"{part}.scale", scales)]
        if not symmetric:
            parameters.append(self.constant(f"{part}.zero", zeros.astype(dtype)))
        stored = self.constant(part, codes.astype(dtype))
        made = self.node("DequantizeLinear", stored, *parameters, axis=0)
        return self.shaped(made, codes.size, weight, axis, part)


_INTEGER: dict[str, Admits] = {
    "storage": tuple(_BITS),
    "symmetric": (True, False),
    "keep": KeepList(),
}
_SOURCE = "https://onnx.ai/onnx/operators/onnx__DequantizeLinear.html"

BACKEND = Backend(
    name="weight_only",
    summary="weights stored in BF16, FP8, MX, NVFP4, NF4 or integers, and computed in FP32",
    offers=(
        Offer(
            Stage.CAST,
            {"storage": ("bf16",), "keep": KeepList()},
            Bf16Weights,
            Evidence.EMULATED,
            "IEEE 754 rounding to nearest, ties to even; https://onnx.ai/onnx/operators/onnx__Cast.html",
        ),
        Offer(
            Stage.CAST,
            {**_INTEGER, "granularity": ("block",), "block_size": AtLeast(2)},
            IntegerWeights,
            Evidence.EMULATED,
            _SOURCE,
        ),
        Offer(
            Stage.CAST,
            {**_INTEGER, "granularity": ("per_channel", "per_tensor")},
            IntegerWeights,
            Evidence.EMULATED,
            _SOURCE,
        ),
        *FLOATS,
    ),
    fields=FIELDS,
    may_be_left_out=MAY_BE_LEFT_OUT,
)
