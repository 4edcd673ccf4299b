"""Separable resampling in float64 with half-pixel centres: the yardstick, slow and short."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

F64 = NDArray[np.float64]
_Kernel = tuple[float, Callable[[F64], F64]]


def resize(
    plane: NDArray[np.uint8],
    height: int,
    width: int,
    interpolation: str,
    *,
    antialias: bool,
    edge: str,
) -> F64:
    """Resample one plane.

    An output pixel at index i lies at (i + 0.5) x scale - 0.5 in the source. With
    *antialias* the kernel is as many times wider as the source is larger. Weights are
    normalised.

    Args:
        plane: (H, W) or (H, W, C) uint8.
        height: rows wanted.
        width: columns wanted.
        interpolation: ``nearest``, ``box``, ``bilinear``, ``hamming``, ``bicubic`` (a = -0.5),
            ``bicubic_75`` (a = -0.75), ``lanczos`` (3 lobes).
        antialias: whether the kernel widens when shrinking.
        edge: ``drop`` the weights that reach over the edge (Pillow), or ``repeat`` the edge
            pixel for them (OpenCV, DALI).

    Returns:
        float64, neither rounded nor clipped.

    Source:
        ONNX operator Resize (half_pixel, cubic_coeff_a, antialias, exclude_outside);
        Pillow's src/libImaging/Resample.c; R. Keys, 1981 (cubic convolution).
    """
    samples = plane.astype(np.float64)
    rows = weights(plane.shape[0], height, interpolation, antialias=antialias, edge=edge)
    columns = weights(plane.shape[1], width, interpolation, antialias=antialias, edge=edge)
    return np.asarray(np.einsum("hy,yx...,wx->hw...", rows, samples, columns, optimize=True))


def weights(size: int, wanted: int, interpolation: str, *, antialias: bool, edge: str) -> F64:
    """The (wanted, size) matrix that resamples one axis."""
    out = np.zeros((wanted, size))
    index = np.arange(wanted)
    if interpolation == "nearest":
        # The pixel that holds the centre; integers, because many centres lie on a border.
        out[index, (2 * index + 1) * size // (2 * wanted)] = 1
        return out
    scale = size / wanted
    centres = (index + 0.5) * scale - 0.5
    support, kernel = _KERNELS[interpolation]
    stretch = max(scale, 1.0) if antialias else 1.0
    for row, centre in zip(out, centres, strict=True):
        low = int(np.floor(centre - support * stretch))
        taps = np.arange(low, int(np.ceil(centre + support * stretch)) + 1)
        if edge == "drop":
            taps = taps[(taps >= 0) & (taps < size)]
        np.add.at(row, np.clip(taps, 0, size - 1), kernel((taps - centre) / stretch))
    return np.asarray(out / out.sum(axis=1, keepdims=True))


def _box(x: F64) -> F64:
    return np.asarray(((x > -0.5) & (x <= 0.5)).astype(np.float64))


def _triangle(x: F64) -> F64:
    return np.asarray(np.clip(1 - np.abs(x), 0, None))


def _hamming(x: F64) -> F64:
    window = np.where(np.abs(x) < 1, 0.54 + 0.46 * np.cos(np.pi * x), 0)
    return np.asarray(np.sinc(x) * window)


def _cubic(a: float) -> Callable[[F64], F64]:
    def kernel(x: F64) -> F64:
        d = np.abs(x)
        near = ((a + 2) * d - (a + 3)) * d * d + 1
        far = (((d - 5) * d + 8) * d - 4) * a
        return np.where(d < 1, near, np.where(d < 2, far, 0.0))

    return kernel


def _lanczos(x: F64) -> F64:
    return np.where(np.abs(x) < 3, np.sinc(x) * np.sinc(x / 3), 0.0)


_KERNELS: dict[str, _Kernel] = {
    "box": (0.5, _box),
    "bilinear": (1.0, _triangle),
    "hamming": (1.0, _hamming),
    "bicubic": (2.0, _cubic(-0.5)),
    "bicubic_75": (2.0, _cubic(-0.75)),
    "lanczos": (3.0, _lanczos),
}
