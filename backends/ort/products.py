"""Products of 8-bit codes with the accumulators that processors have, in NumPy.

Source:
    Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2, PMADDUBSW (two products
    of an unsigned and a signed byte, added with saturation to 16 bits) and VPDPBUSD (four, in 32);
    narrow accumulators: Ni et al., WrapNet, https://arxiv.org/abs/2007.13242, and Colbert et al.,
    A2Q, https://arxiv.org/abs/2308.13504.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from simulator.contract import Array, Options

BITS = {"int24": 24, "int16": 16}
"""Accumulators of fewer than 32 bits, to which one product after the other is added."""
_LOW, _HIGH = -(2**15), 2**15 - 1
_BYTE = 255


def product(x: Array, w: Array, zeros: tuple[Array, Array], options: Options) -> Array:
    """Multiply matrices of codes less their zero points, with one of the accumulators.

    Args:
        x: (..., M, K) 8-bit codes.
        w: (..., K, N) 8-bit codes.
        zeros: the zero points of both, of shapes that broadcast.
        options: ``accumulator`` and ``overflow``.

    Returns:
        (..., M, N) float64, whole numbers.
    """
    a, b = x.astype(np.float64), w.astype(np.float64)
    left, right = (codes - zero for codes, zero in zip((a, b), zeros, strict=True))
    sums = left @ right
    bits = BITS.get(options["accumulator"])
    if bits and options["overflow"] == "wrap":
        return np.asarray((sums + 2 ** (bits - 1)) % 2**bits - 2 ** (bits - 1))
    if bits:
        _one_by_one(sums, left, right, 2 ** (bits - 1))
    elif options["accumulator"] == "int16_pairs" and w.dtype == np.int8:
        _in_pairs(sums, a if x.dtype == np.uint8 else a + 128, b)
    return sums


def _one_by_one(sums: Array, left: Array, right: Array, limit: int) -> None:
    """Replace sums by those that stop at the accumulator's ends, if any product can reach them."""
    if (np.abs(left) @ np.abs(right)).max() < limit:
        return
    sums[...] = 0
    for k in range(left.shape[-1]):
        sums += left[..., k, None] * right[..., None, k, :]
        np.clip(sums, -limit, limit - 1, out=sums)


def _in_pairs(sums: Array, x: Array, w: Array) -> None:
    """Add what is lost where the products of two neighbours in K are cut to 16 bits together."""
    first, second = w[..., :-1:2, :], w[..., 1::2, :]
    hit = np.abs(first + second) * _BYTE > _HIGH  # of other signs, one is at most 255 x 128
    for at in np.ndindex(hit.shape[:-2]):
        rows, place = x[..., *at, :, :], sums[..., *at, :, :]
        for k in np.flatnonzero(hit[at].any(1)):
            n = np.flatnonzero(hit[at][k])
            both = rows[..., 2 * k, None] * first[at][k, n]
            both += rows[..., 2 * k + 1, None] * second[at][k, n]
            place[..., n] += np.clip(both, _LOW, _HIGH) - both


def convolve(
    x: Array, w: Array, zeros: tuple[Array, Array], how: Mapping[str, Any], options: Options
) -> Array:
    """Convolve codes; the sums run over the kernel's rows, its columns, and the channels.

    Depthwise kernels widen bytes before they multiply, so no pair of theirs is cut.

    Args:
        x: (batch, channels, ...) 8-bit codes; padding has the code of zero.
        w: (outputs, channels of a group, ...) 8-bit codes.
        zeros: of x one, of w one or one for each output.
        how: the attributes of ONNX's Conv.
        options: as of :func:`product`.

    Returns:
        (batch, outputs, ...) float64, whole numbers.
    """
    groups, size = how.get("group", 1), len(w.shape[2:])
    windows = _windows(x, w.shape[2:], zeros[0], how)
    batch, channels, *places = windows.shape[: x.ndim]
    apart = windows.reshape(batch, groups, channels // groups, *windows.shape[2:])
    order = (0, 1, *range(3, 3 + 2 * size), 2)
    rows = apart.transpose(order).reshape(batch, groups, int(np.prod(places)), -1)
    each = w.reshape(groups, -1, *w.shape[1:]).transpose(0, *range(3, 3 + size), 2, 1)
    if groups == channels == len(w) and options["accumulator"] == "int16_pairs":
        options = {**options, "accumulator": "int32"}
    zero = np.broadcast_to(zeros[1], len(w)).reshape(groups, 1, -1)
    matrix = each.reshape(groups, rows.shape[-1], -1)
    sums = product(rows, matrix, (zeros[0], zero), options)
    return sums.transpose(0, 1, 3, 2).reshape(batch, len(w), *places)


def _windows(x: Array, kernel: tuple[int, ...], zero: Array, how: Mapping[str, Any]) -> Array:
    """Return (batch, channels, places ..., kernel ...): what the kernel covers at each place."""
    strides, dilations = (how.get(name) or [1] * len(kernel) for name in ("strides", "dilations"))
    spans = [(size - 1) * step + 1 for size, step in zip(kernel, dilations, strict=True)]
    pads = _pads(x.shape[2:], spans, strides, how)
    x = np.pad(x, [(0, 0), (0, 0), *pads], constant_values=zero)
    windows = sliding_window_view(x, spans, tuple(range(2, x.ndim)))
    every = (slice(None, None, step) for step in (*strides, *dilations))
    return np.asarray(windows[(slice(None), slice(None), *every)])


def _pads(
    sizes: tuple[int, ...], spans: list[int], strides: list[int], how: Mapping[str, Any]
) -> list[tuple[int, int]]:
    """Return what stands before and after each direction."""
    auto = how.get("auto_pad", b"NOTSET").decode()
    if not auto.startswith("SAME"):
        given = how.get("pads") if auto == "NOTSET" else None
        ends = given or [0] * (2 * len(sizes))
        return list(zip(ends[: len(sizes)], ends[len(sizes) :], strict=True))
    pads = []
    for size, span, stride in zip(sizes, spans, strides, strict=True):
        total = max((-(-size // stride) - 1) * stride + span - size, 0)
        less, more = total // 2, total - total // 2
        pads.append((less, more) if auto == "SAME_UPPER" else (more, less))
    return pads
