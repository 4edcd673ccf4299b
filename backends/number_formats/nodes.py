"""ONNX nodes that round activations to a number format, in standard operators of FP32."""

from __future__ import annotations

from math import log
from typing import TYPE_CHECKING, Any

import numpy as np

from backends.number_formats.formats import (
    BIAS,
    E2M1,
    E4M3,
    Element,
    NumberFormat,
    tensor_scale,
    threshold,
)
from simulator.contract import Options

if TYPE_CHECKING:
    import onnx


class Rounding:
    """The nodes that round one tensor; every result is exact, except quotients by FP32 scales.

    Args:
        tensor: its name.
        part: the beginning of the new names.
        options: ``overflow`` and ``scale_mode``.
        opset: of the model; from 18 on ReduceMax takes its axes as an input.
    """

    def __init__(self, tensor: str, part: str, options: Options, opset: int) -> None:
        self.tensor, self.options, self._opset = tensor, options, opset
        self.nodes: list[onnx.NodeProto] = []
        self.constants: dict[str, Any] = {}
        self._part = part

    def whole(self, element: Element, largest: float) -> str:
        """Round with one scale, which maps *largest* to the largest number."""
        scale = np.float32((largest or 1.0) / element.largest)
        return self._scaled(self.tensor, self._constant(scale), element)

    def rows(self, element: Element, axes: tuple[int, ...]) -> str:
        """Round with a scale for what is left when some axes are taken together."""
        largest = self._largest(self.tensor, axes)
        scale = self("Div", largest, self._constant(np.float32(element.largest)))
        return self._scaled(self.tensor, self._or_one(scale), element)

    def blocks(self, format: NumberFormat, channels: int, last: bool, largest: float) -> str:
        """Round with a scale for each block of channels at one place.

        Args:
            format: of MX, or NVFP4.
            channels: of the tensor.
            last: whether they are its last axis; else they are the second.
            largest: of the tensor, as calibration saw it; for NVFP4 only.
        """
        element, block = format.element, format.block
        assert element is not None
        assert block is not None
        pads = -channels % block
        count = (channels + pads) // block
        first, places = (-1, []) if last else (0, [-1])
        flat = self("Reshape", self.tensor, self._ints([first, channels, *places]))
        if pads:
            none = [0] * (2 + len(places))
            flat = self("Pad", flat, self._ints([*none, 0, pads, *none[2:]]))
        table = self("Reshape", flat, self._ints([first, count, block, *places]))
        biggest = self._largest(table, (2,))
        if format.scale == "e8m0":
            made = self._scaled(table, self._powers(biggest, element), element)
        else:
            made = self._nvfp4(table, biggest, largest)
        made = self("Reshape", made, self._ints([first, channels + pads, *places]))
        if pads:
            made = self("Slice", made, *(self._ints([n]) for n in (0, channels, 1)))
        return self("Reshape", made, self("Shape", self.tensor))

    def _nvfp4(self, table: str, biggest: str, largest: float) -> str:
        tensor = tensor_scale(largest)
        wanted = self("Div", biggest, self._constant(np.float32(E2M1.largest)))
        wanted = self("Div", wanted, self._constant(tensor))
        ends = (self._constant(np.float32(end)) for end in (2.0**E4M3.lowest, E4M3.largest))
        scale = self._rounded(self("Clip", wanted, *ends), E4M3)
        inverse = self("Div", self._constant(np.float32(1) / tensor), scale)
        codes = self._rounded(self("Mul", table, inverse), E2M1)
        return self("Mul", codes, self("Mul", scale, self._constant(tensor)))

    def _scaled(self, tensor: str, scale: str, element: Element) -> str:
        codes = self._rounded(self("Div", tensor, scale), element)
        return self("Mul", codes, scale)

    def _rounded(self, tensor: str, element: Element) -> str:
        """Round to the nearest number of an element, ties to even."""
        power = self._power(self("Abs", tensor), element.lowest, element.highest)
        step = self("Mul", power, self._constant(np.float32(2.0**-element.mantissa)))
        codes = self("Mul", self("Round", self("Div", tensor, step)), step)
        most = self._constant(np.float32(element.largest))
        if self.options.get("overflow", "saturate") == "saturate" or element.beyond is None:
            return self("Clip", codes, self._constant(np.float32(-element.largest)), most)
        beyond = self("Mul", self("Sign", codes), self._constant(np.float32(element.beyond)))
        return self("Where", self("Greater", self("Abs", codes), most), beyond, codes)

    def _powers(self, biggest: str, element: Element) -> str:
        """Return the powers of two that are the scales of blocks; 1 where all is 0."""
        shifted = self("Mul", biggest, self._constant(np.float32(2.0**-element.highest)))
        power = self._power(shifted, 1 - BIAS, BIAS)
        bound, reached = threshold(element, self.options["scale_mode"])
        if bound < 2:
            limit = self("Mul", power, self._constant(np.float32(bound)))
            raised = self("GreaterOrEqual" if reached else "Greater", shifted, limit)
            power = self("Where", raised, self._double(power), power)
        return power

    def _power(self, magnitude: str, low: int, high: int) -> str:
        """Return the largest power of two, 2^low to 2^high, that is not above a magnitude.

        The logarithm may be one off next to a power of two; comparisons correct it.
        """
        from onnx import TensorProto

        normal = self("Max", magnitude, self._constant(np.finfo(np.float32).tiny))
        exponent = self("Mul", self("Log", normal), self._constant(np.float32(1 / log(2))))
        place = self("Cast", self("Floor", exponent), to=TensorProto.INT32)
        place = self("Sub", place, self._constant(np.int32(low)))
        ends = (self._constant(np.int32(end)) for end in (0, high - low))
        place = self("Clip", place, *ends)
        table = np.ldexp(np.float32(1), np.arange(low, high + 1)).astype(np.float32)
        power = self("Gather", self._constant(table), place)
        least, most, half = (self._constant(np.float32(x)) for x in (2.0**low, 2.0**high, 0.5))
        below = self("Max", self("Mul", power, half), least)
        power = self("Where", self("Less", magnitude, power), below, power)
        above = self._double(power)
        reached = self("GreaterOrEqual", magnitude, above)
        return self("Where", reached, self("Min", above, most), power)

    def _double(self, power: str) -> str:
        return self("Mul", power, self._constant(np.float32(2)))

    def _largest(self, tensor: str, axes: tuple[int, ...]) -> str:
        magnitudes = self("Abs", tensor)
        if self._opset >= 18:
            return self("ReduceMax", magnitudes, self._ints(axes), keepdims=1)
        return self("ReduceMax", magnitudes, axes=list(axes), keepdims=1)

    def _or_one(self, scale: str) -> str:
        zero = self._constant(np.float32(0))
        return self("Where", self("Greater", scale, zero), scale, self._constant(np.float32(1)))

    def _ints(self, values: Any) -> str:
        return self._constant(np.array(values, np.int64))

    def _constant(self, value: Any) -> str:
        name = f"{self._part}.{len(self.constants)}"
        self.constants[name] = np.asarray(value)
        return name

    def __call__(self, op_type: str, *inputs: str, **attributes: Any) -> str:
        """Add a node; return the name of its output."""
        from onnx import helper

        output = f"{self._part}.{op_type}.{len(self.nodes)}"
        made = helper.make_node(op_type, list(inputs), [output], name=output, **attributes)
        self.nodes.append(made)
        return output
