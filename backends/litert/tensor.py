"""The inputs and outputs of a .tflite file, and how float32 becomes what they store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from simulator.contract import Array, Port, Unsupported

_WHOLE = (np.uint8, np.int32, np.int64)
"""Types that may have no scale: pixels, and numbers of classes."""


@dataclass(frozen=True, slots=True)
class Tensor:
    """An input or output: float32 outside, the file's type inside; labels have no scale.

    Images may be NCHW or NHWC, whichever the file uses. Integers are quantized as
    q = clip(round_half_even(x / scale) + zero), and dequantized as (q - zero) x scale,
    with the file's scale and zero point; ``scale`` is 0 if the file stores float32.
    """

    name: str
    index: int
    dtype: np.dtype[Any]
    shape: tuple[int | None, ...]
    scale: np.float32
    zero: int

    @classmethod
    def of(cls, detail: Mapping[str, Any]) -> Tensor:
        """Read one tensor's entry of ``get_input_details`` or ``get_output_details``.

        Raises:
            Unsupported: it is neither float32, nor an integer with a scale, nor one of labels.
        """
        name, dtype = detail["name"], np.dtype(detail["dtype"])
        scale, zero = detail["quantization"]
        whole = dtype in _WHOLE or (dtype in (np.int8, np.int16) and scale)
        if dtype != np.float32 and not whole:
            raise Unsupported(
                f"{name!r} is {dtype} with scale {scale}; supported: float32, uint8, int32, int64, "
                "and int8 and int16 with a scale"
            )
        shape = tuple(None if size < 0 else int(size) for size in detail["shape_signature"])
        return cls(name, int(detail["index"]), dtype, shape, np.float32(scale), int(zero))

    @property
    def port(self) -> Port:
        """Return the port outside."""
        return Port(self.name, self.outside, self.shape, either_layout=True)

    @property
    def outside(self) -> np.dtype[Any]:
        """The type outside."""
        return np.dtype(np.float32 if self.scale else self.dtype)

    def batched(self) -> Tensor:
        """Return the tensor with a free batch: the interpreter resizes it."""
        return replace(self, shape=(None, *self.shape[1:])) if self.shape[:1] == (1,) else self

    def fixed(self) -> Tensor:
        """Return the tensor with every free dimension set to 1."""
        return replace(self, shape=sizes(self.shape))

    def store(self, value: Array) -> Array:
        """Convert a float32 array to the file's type and layout."""
        order = self.port.order(value.shape)
        assert order is not None  # the contract has checked it
        value = value.transpose(order)
        if self.scale and self.dtype != np.float32:
            limits = np.iinfo(self.dtype)
            whole = np.rint(value / self.scale) + np.float32(self.zero)
            value = np.clip(whole, limits.min, limits.max).astype(self.dtype)
        return np.ascontiguousarray(value)

    def load(self, value: Array) -> Array:
        """Convert an array of the file's type to float32."""
        if self.dtype == np.float32 or not self.scale:
            return value
        return (value.astype(np.float32) - np.float32(self.zero)) * self.scale


def sizes(shape: Sequence[int | None]) -> tuple[int, ...]:
    """Return a shape with every free dimension at 1."""
    return tuple(1 if size is None else size for size in shape)
