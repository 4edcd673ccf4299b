"""RGB and YUV in float64, straight from the standards: the yardstick, slow and short."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

F64 = NDArray[np.float64]

# ITU-R BT.601-7 2.5.1 and BT.709-6 3.2: E'Y = Kr E'R + Kg E'G + Kb E'B.
_LUMA = {"bt601": (0.299, 0.587, 0.114), "bt709": (0.2126, 0.7152, 0.0722)}
# BT.601-7 2.5.3 / BT.709-6 3.4 (limited), ITU-T T.871 7 (full): offset, luma and chroma spans.
_RANGE = {"limited": (16.0, 219.0, 224.0), "full": (0.0, 255.0, 255.0)}


def rgb_to_yuv(rgb: NDArray[np.uint8], matrix: str, range: str) -> F64:
    """Convert without subsampling and without rounding.

    Args:
        rgb: (..., 3) uint8.
        matrix: ``bt601`` or ``bt709``.
        range: ``full`` or ``limited``.

    Returns:
        (..., 3) float64 Y, U, V on the 8-bit scale, not clipped.
    """
    return rgb.astype(np.float64) / 255 @ _forward(matrix, range).T + _offset(range)


def yuv_to_rgb(yuv: F64, matrix: str, range: str) -> F64:
    """Invert `rgb_to_yuv`, without rounding and clipping."""
    inverse = np.linalg.inv(_forward(matrix, range))
    return np.asarray((yuv.astype(np.float64) - _offset(range)) @ inverse.T * 255)


def downsample(plane: F64, v: int, h: int, how: str) -> F64:
    """Reduce a chroma plane: ``average`` of each (v, h) block, or ``nearest``, its top left.

    A block that the edge cuts is completed by repeating the last row and column.
    """
    if how == "nearest":
        return plane[::v, ::h]
    pad = ((0, -plane.shape[0] % v), (0, -plane.shape[1] % h))
    full = np.pad(plane, pad, mode="edge")
    return np.asarray(full.reshape(full.shape[0] // v, v, -1, h).mean(axis=(1, 3)))


def upsample(plane: F64, v: int, h: int, size: tuple[int, int], how: str) -> F64:
    """Enlarge a chroma plane: ``nearest`` or ``linear`` between centred samples.

    Linear is what libjpeg-turbo calls fancy upsampling (jdsample.c): samples sit in the
    middle of the luma that they cover, edges are repeated.
    """
    stretch = _repeat if how == "nearest" else _interpolate
    full = stretch(stretch(plane, v).T, h).T
    return full[: size[0], : size[1]]


def _repeat(rows: F64, factor: int) -> F64:
    return np.repeat(rows, factor, axis=0)


def _interpolate(rows: F64, factor: int) -> F64:
    """Interpolate between rows whose centres are *factor* apart."""
    last = rows.shape[0] - 1
    at = (np.arange(rows.shape[0] * factor) + 0.5) / factor - 0.5
    low = np.floor(at).astype(int)
    share = (at - low)[:, None]
    above, below = rows[low.clip(0, last)], rows[(low + 1).clip(0, last)]
    return np.asarray(above * (1 - share) + below * share)


def _forward(matrix: str, range: str) -> F64:
    """The 3x3 matrix from R, G, B on 0-1 to Y, U, V on the 8-bit scale, without offsets."""
    kr, kg, kb = _LUMA[matrix]
    _, luma, chroma = _RANGE[range]
    y = np.array((kr, kg, kb))
    u = (np.array((0, 0, 1)) - y) / (2 * (1 - kb))
    v = (np.array((1, 0, 0)) - y) / (2 * (1 - kr))
    return np.stack((y * luma, u * chroma, v * chroma))


def _offset(range: str) -> F64:
    return np.array((_RANGE[range][0], 128.0, 128.0))
