"""Bits of stored numbers, counted from 0, the least significant one."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

WIDTHS = {
    "float32": 32, "float16": 16, "bfloat16": 16, "int32": 32, "int8": 8, "uint8": 8, "int4": 4,
    "uint4": 4,
}  # fmt: skip
"""How many bits an element has, by the name of its type."""
_OF_ONNX = ("bfloat16", "int4", "uint4")
"""Types that NumPy itself does not have."""
EXPONENTS = {"float32": range(23, 31), "float16": range(10, 15), "bfloat16": range(7, 15)}
"""The bits of the exponent; the sign is the bit above them."""


class Kind(StrEnum):
    """What happens to a bit."""

    FLIP = "flip"
    STUCK_AT_0 = "stuck_at_0"
    STUCK_AT_1 = "stuck_at_1"


def dtype(storage: str) -> np.dtype[Any]:
    """Return the NumPy type of a stored type; elements of 4 bits have a byte each in NumPy."""
    if storage not in _OF_ONNX:
        return np.dtype(storage)
    from onnx import TensorProto, helper

    return helper.tensor_dtype_to_np_dtype(TensorProto.DataType.Value(storage.upper()))


def disturb(values: NDArray[Any], index: int, bit: int, kind: Kind) -> tuple[float, float]:
    """Change a bit of one element in place.

    Args:
        values: contiguous and writable, of one of the types in :data:`WIDTHS`.
        index: of the element in the flattened array.
        bit: from 0, the least significant one.
        kind: what happens to it.

    Returns:
        The element before and after.

    Raises:
        ValueError: the type has no such bit, or there is no such element.
    """
    storage = values.dtype.name
    width = WIDTHS[storage]
    if not 0 <= bit < width:
        raise ValueError(f"{storage} has the bits 0 to {width - 1}, got {bit}")
    if not 0 <= index < values.size:
        raise ValueError(f"element {index} of {values.size}")
    raw = values.reshape(-1).view(f"u{values.dtype.itemsize}")
    before = float(values.reshape(-1)[index])
    code, mask = int(raw[index]), 1 << bit
    changed = {Kind.FLIP: code ^ mask, Kind.STUCK_AT_0: code & ~mask, Kind.STUCK_AT_1: code | mask}
    new = changed[kind]
    if storage == "int4":  # NumPy keeps the sign in the upper half of the byte
        new = (new & 15) | (0xF0 if new & 8 else 0)
    raw[index] = new
    return before, float(values.reshape(-1)[index])
