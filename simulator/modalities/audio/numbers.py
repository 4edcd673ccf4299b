"""The arithmetic of our own between the libraries: fitting, logarithm, normalization, layout."""

from __future__ import annotations

import math

import numpy as np

from simulator.contract import Array

PER_BEL = {"ln": math.log(10), "log10": 1.0, "db": 10.0}
"""What ten decibels are in each kind of logarithm."""


def fitted(array: Array, length: int | None) -> Array:
    """Return an array whose last axis is cut, or padded with 0 at its end, to a length."""
    if length is None or array.shape[-1] == length:
        return array
    short = max(length - array.shape[-1], 0)
    return np.pad(array[..., :length], [(0, 0)] * (array.ndim - 1) + [(0, short)])


def logarithm(power: Array, kind: str, floor: str, value: float, top_db: float | None) -> Array:
    """Return the logarithm of a spectrogram.

    Args:
        power: (bands, frames) float32, at least 0.
        kind: ``ln``, ``log10`` or ``db``, ten times log10.
        floor: ``add`` adds *value* before, ``max`` raises smaller powers to it.
        value: above 0.
        top_db: values more than this many decibels below the largest are raised to that; None
            leaves them.

    Returns:
        The same shape in float32.
    """
    least = np.float32(value)
    safe = power + least if floor == "add" else np.maximum(power, least)
    found: Array = np.log(safe) if kind == "ln" else np.log10(safe)
    if kind == "db":
        found *= np.float32(10)
    if top_db is not None:
        found = np.maximum(found, found.max() - np.float32(top_db / 10 * PER_BEL[kind]))
    return found


def normalized(
    array: Array,
    kind: str,
    mean: float | None,
    std: float | None,
    epsilon: float | None,
    divide: bool | None,
) -> Array:
    """Return values minus a mean, divided by a deviation, in float32.

    Args:
        array: (..., N) float32.
        kind: ``none``; ``fixed``, with *mean* and *std*; ``clip``, those of the array; ``bands``,
            those of each row.
        mean: see *kind*.
        std: see *kind*.
        epsilon: added to the variance before the root.
        divide: whether ``clip`` and ``bands`` divide by the deviation at all.
    """
    if kind == "none":
        return array
    if kind == "fixed":
        assert mean is not None and std is not None
        return (array - np.float32(mean)) / np.float32(std)
    axis = -1 if kind == "bands" else None
    centred: Array = array - array.mean(axis, keepdims=True, dtype=np.float64).astype(np.float32)
    if not divide:
        return centred
    variance = np.square(centred, dtype=np.float64).mean(axis, keepdims=True)
    found: Array = (centred / np.sqrt(variance + epsilon)).astype(np.float32)
    return found


def laid_out(array: Array, layout: str) -> Array:
    """Return an array of (samples,) or (bands, frames) with the axes of a layout.

    Args:
        array: float32.
        layout: ``NS``, ``NCS``, ``NMT``, ``NTM``, ``NCMT`` or ``NCTM``; N and C are 1.
    """
    turned = array.T if layout.endswith("TM") else array
    shape = (1,) * (len(layout) - turned.ndim) + turned.shape
    return np.ascontiguousarray(turned, np.float32).reshape(shape)
