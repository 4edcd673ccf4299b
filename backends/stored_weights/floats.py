"""Weights in FP8, MX, NVFP4 and NF4, in standard ONNX, by our own arithmetic."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from backends.number_formats import formats
from backends.number_formats.formats import FORMATS, FP8, MX, SCALE_MODES
from backends.stored_weights.nodes import StoredWeights, weight_inputs
from simulator.contract import Admits, Array, Evidence, KeepList, Offer, Stage

if TYPE_CHECKING:
    import onnx


class FloatWeights(StoredWeights):
    """Weights of Conv, ConvTranspose, Gemm and MatMul as codes with scales, decoded to FP32.

    A block consists of consecutive weights of one output channel in row-major order. FP8 and NF4
    have FP32 scales: the largest magnitude over the largest number; FP8 may have none
    (``scaling: none``). Scales of MX are codes of E8M0, those of NVFP4 are codes of E4M3.

    FP8 codes have ONNX's own type from opset 19 on. Others are UINT4 (from opset 21 on) or UINT8,
    which Gather looks up in a table of their numbers: ONNX Runtime 1.31 has no kernel for
    FLOAT4E2M1, and ONNX no type for 6 bits, E8M0 and NF4 that runtimes read.
    """

    def places(self, node: onnx.NodeProto) -> Iterator[tuple[int, int]]:
        """Yield the weight inputs of the operators that multiply."""
        yield from weight_inputs(node)

    def store(self, name: str, weight: Array, axis: int) -> str:
        """Round a weight, and add the nodes that restore its values and shape."""
        storage = self.options["storage"]
        format, part = FORMATS[storage], f"{name}.{storage}.{axis}"
        groups = self.grouped(name, weight, axis).astype(np.float32)
        largest = np.abs(groups).max(1, keepdims=True)
        scale = None
        if format.scale == "e8m0":
            element = format.element
            assert element is not None
            codes = formats.powers(largest, element, self.options["scale_mode"])
            scales = np.ldexp(np.float32(1), codes.astype(np.int32) - formats.BIAS)
            scale = self._looked_up(f"{part}.scale", codes, formats.E8M0.levels)
        elif format.scale == "e4m3":
            tensor = formats.tensor_scale(float(largest.max()))
            coded = formats.block_scales(largest, tensor)
            of_blocks = self._decoded(f"{part}.scale", coded, formats.E4M3.levels)
            scale = self.node("Mul", of_blocks, self.constant(f"{part}.tensor", tensor))
            inverse = (np.float32(1) / tensor) / coded.astype(np.float32)
            groups, scales = groups * inverse, np.ones_like(largest)
        elif self.options.get("scaling") == "none":
            scales = np.ones_like(largest)
        else:
            most = np.float32(format.element.largest if format.element else 1)
            scales = np.where(largest > 0, largest / most, np.float32(1)).astype(np.float32)
            scale = self.constant(f"{part}.scale", scales)
        levels = format.element.levels if format.element else formats.NF4
        codes = format.codes(groups / scales, self.options.get("overflow", "saturate"))
        made = self._decoded(part, codes, levels)
        if scale is not None:
            made = self.node("Mul", made, scale)
        return self.shaped(made, codes.size, weight, axis, part)

    def _decoded(self, part: str, codes: Array, levels: Array) -> str:
        """Add codes, and the nodes that give their numbers; return the name of the result."""
        element = next((e for e in formats.ELEMENTS if e.dtype == codes.dtype), None)
        kind = element and element.onnx and self.typed(element.onnx, 19, 9)
        if kind is None:
            return self._looked_up(part, codes.view(np.uint8), levels)
        from onnx import TensorProto

        return self.node("Cast", self.constant(part, codes.astype(kind)), to=TensorProto.FLOAT)

    def _looked_up(self, part: str, codes: Array, levels: Array) -> str:
        from onnx import TensorProto

        half = self.typed("UINT4", 21, 10) if len(levels) <= 16 else None
        stored = self.constant(part, codes.astype(half or np.uint8))
        places = self.node("Cast", stored, to=TensorProto.INT32)
        table = self.constant(f"levels.{zlib.crc32(levels.tobytes()):08x}", levels)
        return self.node("Gather", table, places, after=1)


_BLOCKS = (16, 32, 64, 128, 256)
_ALL: dict[str, Admits] = {"keep": KeepList()}
_SCALED: dict[str, Admits] = {"scaling": ("max",), "overflow": ("saturate",)}
_RAW: dict[str, Admits] = {
    "granularity": ("per_tensor",),
    "scaling": ("none",),
    "overflow": ("saturate", "inf"),
}
_FORMS: tuple[dict[str, Admits], ...] = (
    {"storage": FP8, **_SCALED, "granularity": ("per_channel", "per_tensor")},
    {"storage": FP8, **_SCALED, "granularity": ("block",), "block_size": _BLOCKS},
    {"storage": FP8, **_RAW},
    {"storage": MX, "granularity": ("block",), "block_size": (32,), "scale_mode": SCALE_MODES},
    {"storage": ("nvfp4",), "granularity": ("block",), "block_size": (16,)},
    {"storage": ("nf4",), "granularity": ("block",), "block_size": _BLOCKS},
)
FLOATS = tuple(
    Offer(
        Stage.CAST,
        {**_ALL, **form},
        FloatWeights,
        Evidence.EMULATED,
        "OCP OFP8 1.0; OCP MX 1.0; NVIDIA NVFP4; QLoRA, https://arxiv.org/abs/2305.14314",
    )
    for form in _FORMS
)
FIELDS = {
    "scaling": "FP8: the largest magnitude becomes the largest number (max), or there is no scale",
    "overflow": "what numbers beyond the largest become: it, or infinity (E4M3: NaN)",
    "scale_mode": "how a power of two is found for a block: OCP's floor, NVIDIA's rceil, or even",
}
MAY_BE_LEFT_OUT = ("scaling",)
