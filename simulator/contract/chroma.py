"""Integer and float arithmetic on chroma planes, shared by several converters."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from simulator.contract.frame import U8, Frame

F32 = NDArray[np.float32]
Rows = tuple[tuple[int, int, int], tuple[int, int, int], tuple[int, int, int]]


def full_chroma(frame: Frame, chroma_upsampling: str) -> tuple[U8, U8]:
    """Upsample U and V to the size of the luma plane, as integers.

    Args:
        frame: any YUV frame.
        chroma_upsampling: ``nearest`` repeats each sample; ``linear`` interpolates between
            centred samples (weights 3/4 and 1/4 when doubling, edges repeated) and rounds half
                up once, after both directions.

    Returns:
        U and V, each (H, W) uint8.

    Source:
        The geometry of libjpeg-turbo's "fancy" upsampling, jdsample.c (triangle filter).
    """
    if chroma_upsampling == "nearest":
        u, v = (_repeat(plane, frame) for plane in frame.chroma)
        return u, v
    u, v = (_rounded(*_weighted(plane, frame)) for plane in frame.chroma)
    return u, v


def full_chroma_float(frame: Frame, chroma_upsampling: str) -> tuple[F32, F32]:
    """Upsample U and V to the size of the luma plane, without rounding; see `full_chroma`.

    Returns:
        U and V, each (H, W) float32.
    """
    if chroma_upsampling == "nearest":
        u, v = (_repeat(plane, frame).astype(np.float32) for plane in frame.chroma)
        return u, v
    u, v = (_divided(*_weighted(plane, frame)) for plane in frame.chroma)
    return u, v


def fixed_point_rgb(y: U8, u: U8, v: U8, rows: Rows, *, bias: int, half: int) -> U8:
    """Multiply YUV by an integer matrix in units of 1/256.

    Args:
        y: (H, W) uint8.
        u: (H, W) uint8.
        v: (H, W) uint8.
        rows: the rows for R, G and B; each has factors for Y, U and V in units of 1/256.
        bias: subtracted from Y first (16 or 0); U and V always lose 128.
        half: added before the arithmetic shift by 8: 0 floors, 128 rounds.

    Returns:
        (H, W, 3) uint8, clipped to 0-255.
    """
    blue = u.astype(np.int32) - 128
    red = v.astype(np.int32) - 128
    luma: dict[int, NDArray[np.int32]] = {}
    out = np.empty((*y.shape, 3), np.uint8)
    for channel, (of_y, of_u, of_v) in enumerate(rows):
        if of_y not in luma:
            luma[of_y] = y.astype(np.int32) * of_y + (half - bias * of_y)
        total = luma[of_y].copy()
        if of_u:
            total += blue * of_u
        if of_v:
            total += red * of_v
        total >>= 8
        out[..., channel] = np.clip(total, 0, 255, out=total)
    return out


def _repeat(plane: U8, frame: Frame) -> U8:
    v, h = frame.format.subsampling
    full = np.repeat(plane, h, axis=1) if h > 1 else plane
    full = np.repeat(full, v, axis=0) if v > 1 else full
    return full[: frame.height, : frame.width]


def _weighted(plane: U8, frame: Frame) -> tuple[NDArray[np.uint16], int]:
    """Return the interpolated samples times a denominator, and that denominator."""
    v, h = frame.format.subsampling
    full, total = plane.astype(np.uint16), 1
    if v > 1:
        full, total = _stretch(full, v), total * 2 * v
    if h > 1:
        full, total = _stretch(full.T, h).T, total * 2 * h
    return full[: frame.height, : frame.width], total


def _stretch(rows: NDArray[np.uint16], factor: int) -> NDArray[np.uint16]:
    """Interpolate between rows at half-pixel centres; the result is scaled by 2 x factor."""
    above = np.concatenate((rows[:1], rows[:-1]))
    below = np.concatenate((rows[1:], rows[-1:]))
    out = np.empty((rows.shape[0] * factor, *rows.shape[1:]), np.uint16)
    for step in range(factor):
        offset = 2 * step + 1 - factor  # from the sample's centre, in 1 / (2 x factor)
        weight = abs(offset)
        other = above if offset < 0 else below
        out[step::factor] = rows * np.uint16(2 * factor - weight) + other * np.uint16(weight)
    return out


def _rounded(samples: NDArray[np.uint16], total: int) -> U8:
    shift = total.bit_length() - 1
    out: U8 = ((samples + np.uint16(total // 2)) >> shift).astype(np.uint8)
    return out


def _divided(samples: NDArray[np.uint16], total: int) -> NDArray[Any]:
    return samples.astype(np.float32) * np.float32(1 / total)
