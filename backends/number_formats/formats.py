"""The formats: their elements, their blocks, and how a block finds its scale."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from simulator.contract import Array

BIAS = 127
"""Of E8M0, whose codes are powers of two."""
_LEAST_SCALE = 2.0**-6
"""The smallest normal number of E4M3; torchao's NVFP4 has no scale below it."""


@dataclass(frozen=True, slots=True)
class Element:
    """A number with a sign, an exponent and a mantissa.

    Attributes:
        name: of the type in ``ml_dtypes``.
        bits: of a code.
        mantissa: how many bits the mantissa has.
        lowest: the exponent of the smallest normal number.
        largest: the largest finite number.
        beyond: what larger numbers become where they do not saturate; None: they always do.
        onnx: ONNX's type, of opset 19, where runtimes have it.
    """

    name: str
    bits: int
    mantissa: int
    lowest: int
    largest: float
    beyond: float | None = None
    onnx: str | None = None

    @property
    def highest(self) -> int:
        """The exponent of the largest number."""
        return int(np.frexp(self.largest)[1]) - 1

    @property
    def levels(self) -> Array:
        """(2^bits,) float32: the number of each code; some are NaN or infinite."""
        codes = np.arange(2**self.bits, dtype=np.uint8)
        return codes.view(self.dtype).astype(np.float32)

    @property
    def dtype(self) -> np.dtype[Any]:
        """NumPy's type; a code has a byte."""
        import ml_dtypes

        found: type[Any] = getattr(ml_dtypes, self.name)
        return np.dtype(found)

    def rounded(self, values: Array, overflow: str = "saturate") -> Array:
        """Round to the nearest number, ties to an even mantissa; of :attr:`dtype`."""
        if overflow == "saturate":
            values = np.clip(values, -self.largest, self.largest)
        with np.errstate(over="ignore", invalid="ignore"):
            return values.astype(self.dtype)


E4M3 = Element("float8_e4m3fn", 8, 3, -6, 448, float("nan"), "FLOAT8E4M3FN")
E5M2 = Element("float8_e5m2", 8, 2, -14, 57344, float("inf"), "FLOAT8E5M2")
E2M3 = Element("float6_e2m3fn", 6, 3, 0, 7.5)
E3M2 = Element("float6_e3m2fn", 6, 2, -2, 28)
E2M1 = Element("float4_e2m1fn", 4, 1, 0, 6)
E8M0 = Element("float8_e8m0fnu", 8, 0, -BIAS, 2.0**BIAS)
ELEMENTS = (E4M3, E5M2, E2M3, E3M2, E2M1)

NF4 = np.array([
    -1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635,
    -0.18477343022823334, -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725,
    0.24611230194568634, 0.33791524171829224, 0.44070982933044434, 0.5626170039176941,
    0.7229568362236023, 1.0,
], np.float32)  # fmt: skip
"""The levels of NF4, in ascending order.

Source:
    Dettmers et al., QLoRA, https://arxiv.org/abs/2305.14314, appendix E.
"""


@dataclass(frozen=True, slots=True)
class NumberFormat:
    """A storage word: which elements, how many share a scale, and the type of scales.

    Attributes:
        element: None: the levels of NF4.
        block: how many consecutive weights of an output channel, or channels of an activation,
            share a scale; None where the profile says it.
        scale: of a scale: ``fp32``; ``e8m0``, a power of two; ``e4m3`` times an FP32 number for the
            whole tensor.

    Source:
        OCP 8-bit Floating Point Specification 1.0; OCP Microscaling Formats (MX) 1.0, table 1;
        NVIDIA, Introducing NVFP4.
    """

    element: Element | None
    block: int | None = None
    scale: Literal["fp32", "e8m0", "e4m3"] = "fp32"

    def codes(self, values: Array, overflow: str = "saturate") -> Array:
        """Return the nearest code of each number: of the element's type, or uint8."""
        if self.element is not None:
            return self.element.rounded(values, overflow)
        return np.searchsorted((NF4[1:] + NF4[:-1]) / 2, values).astype(np.uint8)


FORMATS: Mapping[str, NumberFormat] = {
    "fp8_e4m3": NumberFormat(E4M3),
    "fp8_e5m2": NumberFormat(E5M2),
    "mxfp8_e4m3": NumberFormat(E4M3, 32, "e8m0"),
    "mxfp8_e5m2": NumberFormat(E5M2, 32, "e8m0"),
    "mxfp6_e2m3": NumberFormat(E2M3, 32, "e8m0"),
    "mxfp6_e3m2": NumberFormat(E3M2, 32, "e8m0"),
    "mxfp4": NumberFormat(E2M1, 32, "e8m0"),
    "nvfp4": NumberFormat(E2M1, 16, "e4m3"),
    "nf4": NumberFormat(None),
}
"""By the word of a profile's ``precision.storage``."""
FP8 = tuple(name for name, format in FORMATS.items() if name.startswith("fp8"))
MX = tuple(name for name, format in FORMATS.items() if format.scale == "e8m0")
SCALE_MODES = ("floor", "rceil", "even")


def threshold(element: Element, mode: str) -> tuple[float, bool]:
    """Where the exponent of a block's largest number is raised by one.

    Returns:
        A bound in units of the largest power of two that is not above the number, and whether the
        bound itself is raised.

    Source:
        ``floor``: OCP MX 1.0, section 6.3; ``rceil``: cuBLAS, 1D block quantization; ``even``: as
        torchao's ScaleCalculationMode.EVEN and AMD Quark.
    """
    if mode == "floor":
        return 2.0, True
    if mode == "rceil":
        return element.largest / 2.0**element.highest, False
    return 2 - 2.0 ** -(element.mantissa + 1), True


def powers(largest: Array, element: Element, mode: str) -> Array:
    """Return E8M0 scales of blocks whose largest magnitudes are given: codes, uint8."""
    whole, exponents = np.frexp(largest.astype(np.float32))
    bound, reached = threshold(element, mode)
    raised = whole * 2 >= bound if reached else whole * 2 > bound
    found = exponents - 1 + raised - element.highest + BIAS
    return np.where(largest > 0, np.clip(found, 1, 254), 1).astype(np.uint8)


def block_scales(largest: Array, tensor: np.float32) -> Array:
    """Return E4M3 scales of NVFP4 blocks, behind the tensor's own.

    Source:
        torchao, ``nvfp4_quantize``.
    """
    wanted = (largest.astype(np.float32) / np.float32(E2M1.largest)) / tensor
    return E4M3.rounded(np.clip(wanted, _LEAST_SCALE, E4M3.largest))


def tensor_scale(largest: float) -> np.float32:
    """Return the FP32 scale of an NVFP4 tensor: the largest block then has the scale 448."""
    return np.float32((largest or 1.0) / (E2M1.largest * E4M3.largest))
