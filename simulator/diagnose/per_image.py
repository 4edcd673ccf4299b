"""Levels that follow from the image itself: its own mean, range or histogram."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from simulator.contract import Array
from simulator.diagnose import curve
from simulator.diagnose.finding import Difference
from simulator.identify.affine import affine

_ROUNDED = 1.6
"""Levels that are left where what an image's own numbers made was rounded."""
_GRAY = np.array([0.299, 0.587, 0.114])[:, None, None]
_FIXED = "use the training's numbers, the same for every image"


def named(
    levels: Sequence[Array], other: Sequence[Array], tensors: Sequence[Array]
) -> tuple[Difference, float] | None:
    """Name what is made of each image by its own numbers, and say how many levels it leaves.

    Args:
        levels: of the training, each (3, H, W).
        other: the deployment's, on the scale of the training's numbers.
        tensors: the deployment's, as they are.
    """
    if any(not np.isfinite(one).all() for one in (*levels, *other)):
        return None
    for name, made in _standardized(levels):
        gap = max(float(np.abs(a - b).max()) for a, b in zip(made, tensors, strict=True))
        if gap < 1e-3:
            return Difference(name, _FIXED), gap
    for name, made in _stretched(levels):
        gap = max(_gap(a, b) for a, b in zip(made, other, strict=True))
        if gap < _ROUNDED:
            return Difference(name, _FIXED), gap
    if (one := _contrast(levels, other)) is not None:
        return one
    return _own_curves(levels, other)


def _gap(made: Array, levels: Array) -> float:
    return float(np.abs(np.clip(made, 0, 255) - np.clip(levels, 0, 255)).max())


def _standardized(levels: Sequence[Array]) -> Iterator[tuple[str, list[Array]]]:
    whole = [(one - one.mean()) / one.std() for one in levels]
    yield "each image is standardized by its own mean and std", whole
    text = "each channel of each image is standardized by its own mean and std"
    yield text, [(one - _own(one.mean)) / _own(one.std) for one in levels]
    for low, high in ((0, 1), (-1, 1)):
        made = [low + (high - low) * (one - one.min()) / np.ptp(one) for one in levels]
        yield f"each image is stretched to [{low}, {high}] by its own least and largest level", made


def _stretched(levels: Sequence[Array]) -> Iterator[tuple[str, list[Array]]]:
    text = "each image is stretched to its own least and largest level"
    yield f"{text} (min-max)", [255 * (one - one.min()) / np.ptp(one) for one in levels]
    made = [
        255 * (one - _own(one.min)) / np.maximum(_own(one.max) - _own(one.min), 1) for one in levels
    ]
    yield f"{text} of each channel (autocontrast)", made


def _own(of: object) -> Array:
    """A figure of each channel."""
    assert callable(of)
    return np.asarray(of(axis=(1, 2), keepdims=True))


def _contrast(levels: Sequence[Array], other: Sequence[Array]) -> tuple[Difference, float] | None:
    """One scale around each image's own mean."""
    gains, left = [], 0.0
    for one, two in zip(levels, other, strict=True):
        inside = (two > 0.5) & (two < 254.5)
        mean = float((one * _GRAY).sum(axis=0).mean())
        x, y = one[inside] - mean, two[inside] - mean
        gains.append(float((x * y).sum() / max((x * x).sum(), 1e-9)))
        left = max(left, _gap(mean + gains[-1] * (one - mean), two))
    if np.ptp(gains) > 0.01 or left > _ROUNDED or abs(np.mean(gains) - 1) < 0.01:
        return None
    text = f"contrast times {np.mean(gains):.3g}, around each image's own mean"
    return Difference(text, "leave the contrast as it is decoded"), left


def _own_curves(levels: Sequence[Array], other: Sequence[Array]) -> tuple[Difference, float] | None:
    """Another curve for each image."""
    found = [curve.named([one], [two]) for one, two in zip(levels, other, strict=True)]
    if any(one is None for one in found):
        return None
    left = max(one.left for one in found if one)
    flat = [np.histogram(one, 8, (0, 256))[0] / one.size for one in other]
    if max(float(np.abs(8 * one - 1).max()) for one in flat) < 0.35:
        text = "histogram equalization of each image"
    elif all(
        affine([two], [one]).levels < _ROUNDED for one, two in zip(levels, other, strict=True)
    ):
        text = "each image has a scale and an offset of its own"
    elif len(levels) > 1:
        text = "levels go through a curve of each image's own (a stretched or equalized histogram)"
    else:
        return None
    return Difference(text, _FIXED), left
