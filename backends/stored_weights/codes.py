"""Integer codes, scales and zero points of weights."""

from __future__ import annotations

import numpy as np

from simulator.contract import Array


def quantize(groups: Array, bits: int, symmetric: bool) -> tuple[Array, Array, Array]:
    """Round every row to integers, with one scale and one zero point per row.

    Args:
        groups: (rows, columns) float32, finite.
        bits: 2 to 8.
        symmetric: whether codes have both signs and zero points are 0; else codes start at 0.

    Returns:
        Codes (rows, columns) int16, scales (rows,) float32, zero points (rows,) int16; the
        decoded value, ``(code - zero) * scale``, is within half a scale of the input.
    """
    wide = groups.astype(np.float64)
    if symmetric:
        low, high = 1 - 2 ** (bits - 1), 2 ** (bits - 1) - 1
        span = np.abs(wide).max(1) / high
    else:
        low, high = 0, 2**bits - 1
        bottom = np.minimum(wide.min(1), 0)
        span = (np.maximum(wide.max(1), 0) - bottom) / high
    scales = np.maximum(span, np.finfo(np.float32).tiny).astype(np.float32)
    zeros = np.zeros(len(wide)) if symmetric else np.rint(-bottom / scales)
    codes = np.clip(np.rint(wide / scales[:, None]) + zeros[:, None], low, high)
    return codes.astype(np.int16), scales, zeros.astype(np.int16)
