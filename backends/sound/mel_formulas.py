"""Mel filter banks in librosa's formulas."""

from __future__ import annotations

import numpy as np

from simulator.contract import Array


def bank(
    rate: int, n_fft: int, n_mels: int, fmin: float, fmax: float, scale: str, norm: str
) -> Array:
    """Return (n_mels, n_fft // 2 + 1) float32.

    Args:
        rate: samples a second.
        n_fft: length of the transform.
        n_mels: number of triangles.
        fmin: where the first begins, in Hz.
        fmax: where the last one ends, in Hz.
        scale: ``slaney`` or ``htk``.
        norm: ``slaney`` gives each the same area, ``none`` a peak of 1.

    Source:
        librosa 0.11, ``filters.mel``, ``core.convert.mel_frequencies``; Slaney, Auditory Toolbox
        1998; HTK Book 3.4, 5.6.
    """
    frequencies = np.fft.rfftfreq(n_fft, 1 / rate)
    low, high = to_mel(np.array([fmin, fmax]), scale)
    points = to_hertz(np.linspace(low, high, n_mels + 2), scale)
    widths, ramps = np.diff(points), np.subtract.outer(points, frequencies)
    found = np.zeros((n_mels, frequencies.size), np.float32)
    for band in range(n_mels):
        up, down = -ramps[band] / widths[band], ramps[band + 2] / widths[band + 1]
        found[band] = np.maximum(0, np.minimum(up, down))
    if norm == "slaney":
        found *= (2.0 / (points[2:] - points[:-2]))[:, None]
    return found


_STEP, _CORNER, _BEND = 200 / 3, 1000.0, np.log(6.4) / 27


def to_mel(hertz: Array, scale: str) -> Array:
    """Return mels of frequencies in Hz; float64."""
    if scale == "htk":
        return 2595.0 * np.log10(1.0 + hertz / 700.0)
    high = _CORNER / _STEP + np.log(np.maximum(hertz, _CORNER) / _CORNER) / _BEND
    return np.where(hertz >= _CORNER, high, hertz / _STEP)


def to_hertz(mels: Array, scale: str) -> Array:
    """Return frequencies in Hz of mels; float64."""
    if scale == "htk":
        return 700.0 * (10.0 ** (mels / 2595.0) - 1.0)
    above = mels - _CORNER / _STEP
    return np.where(above >= 0, _CORNER * np.exp(_BEND * above), mels * _STEP)
