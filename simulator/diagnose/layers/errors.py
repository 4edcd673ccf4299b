"""The error of a tensor against its own signal, added up over samples."""

from __future__ import annotations

import numpy as np

from simulator.contract import Array
from simulator.results.layers import LayerError

FAINT = 1e-4
"""Of the whole tensor's root mean square: a channel with less has no error of its own."""


class Sums:
    """What the error of one tensor is computed of."""

    def __init__(self) -> None:
        self._lost = self._signal = self._other = self._dot = 0.0
        self._largest, self._not_finite = 0.0, 0
        self._channels: list[tuple[Array, Array]] = []

    def add(self, train: Array, deploy: Array) -> None:
        """Add one sample.

        Args:
            train: the values that are right, of any floating type.
            deploy: of the same shape.
        """
        one, other = train.astype(np.float64), deploy.astype(np.float64)
        fine = np.isfinite(other) == np.isfinite(one)
        self._not_finite += int(fine.size - np.count_nonzero(fine))
        both = np.isfinite(one) & np.isfinite(other)
        one, other = np.where(both, one, 0), np.where(both, other, 0)
        off = other - one
        self._lost += float((off * off).sum())
        self._signal += float((one * one).sum())
        self._other += float((other * other).sum())
        self._dot += float((one * other).sum())
        self._largest = max(self._largest, float(np.abs(off).max(initial=0)))
        if one.ndim >= 3:
            axes = _others(one.ndim)
            self._channels.append(((off * off).sum(axis=axes), (one * one).sum(axis=axes)))

    def error(self) -> LayerError:
        """Return the figures of all samples."""
        whole = not self._not_finite
        norm = np.sqrt(self._signal * self._other)
        return LayerError(
            rms=float(np.sqrt(self._lost / self._signal)) if whole and self._signal else None,
            channel=self._channel() if whole else None,
            largest=self._largest if whole else None,
            cosine=float(self._dot / norm) if norm else None,
            not_finite=self._not_finite,
        )

    def _channel(self) -> float | None:
        if not self._channels or len({lost.shape for lost, _ in self._channels}) > 1:
            return None
        lost, signal = (sum(parts) for parts in zip(*self._channels, strict=True))
        there = np.asarray(signal > FAINT**2 * self._signal)
        return float(np.sqrt(np.max(lost[there] / signal[there]))) if there.any() else None


def _others(axes: int) -> tuple[int, ...]:
    """Return all axes but that of channels: the second of maps, the last of sequences."""
    channel = 1 if axes > 3 else 2
    return tuple(axis for axis in range(axes) if axis != channel)


def worst_channel(values: Array, right: Array) -> float:
    """Return :func:`relative` of the channel where it is largest; of the whole without channels."""
    if values.shape != right.shape or right.ndim < 3:
        return relative(values, right)
    sums = Sums()
    sums.add(right, values)
    found = sums.error()
    return np.inf if found.not_finite else (found.channel or 0.0)


def rms(values: Array) -> float:
    """Return the root mean square of finite values; infinite where one is not finite."""
    whole = values.astype(np.float64)
    return float(np.sqrt(np.mean(whole * whole))) if np.isfinite(whole).all() else np.inf


def relative(values: Array, right: Array) -> float:
    """Return the root mean square of a difference by that of what is right.

    Values of another shape, or not finite ones, are infinitely far.
    """
    if values.shape != right.shape:
        return np.inf
    with np.errstate(invalid="ignore", over="ignore"):
        lost = rms(values.astype(np.float64) - right.astype(np.float64))
    return lost / rms(right) if rms(right) else (np.inf if lost else 0.0)
