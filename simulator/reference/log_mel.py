"""A log-mel spectrogram in float64 numpy, by which two waveforms are compared."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
_STEP, _BREAK, _RATIO = 200 / 3, 1000.0, np.log(6.4) / 27
"""Slaney's scale: linear steps in Hz up to the break, then 27 steps for a factor of 6.4."""
N_FFT, HOP, N_MELS = 1024, 256, 80
"""Samples of a window, samples from one frame to the next, and bands of a spectrogram."""
_FLOOR = 1e-5
"""Magnitudes below it become it."""


def log_mel(samples: NDArray[np.floating], rate: int) -> Floats:
    """Return (:data:`N_MELS`, frames), the natural logarithm of the mel magnitudes.

    Centred frames with reflected edges under a periodic Hann window; Slaney's scale and norm from
    0 Hz to half the rate. A sound too short to be reflected is padded with zeros first.

    Args:
        samples: (N,), N at least 1.
        rate: samples a second.
    """
    signal = np.asarray(samples, np.float64)
    signal = np.pad(signal, (0, max(0, N_FFT // 2 + 1 - signal.size)))
    signal = np.pad(signal, N_FFT // 2, mode="reflect")
    frames = np.lib.stride_tricks.sliding_window_view(signal, N_FFT)[::HOP]
    window = np.hanning(N_FFT + 1)[:-1]
    magnitudes = np.abs(np.fft.rfft(frames * window, axis=1)).T
    found: Floats = np.log(np.maximum(slaney(rate, N_FFT, N_MELS) @ magnitudes, _FLOOR))
    return found


def slaney(rate: int, n_fft: int, n_mels: int) -> Floats:
    """Return (n_mels, n_fft // 2 + 1) triangles of equal area on Slaney's scale.

    Source:
        Slaney, Auditory Toolbox, Technical Report 1998-010, Interval Research (1998).
    """
    corners = mel_corners(0.0, rate / 2, n_mels)
    bins = np.fft.rfftfreq(n_fft, 1 / rate)
    widths = np.diff(corners)[:, None]
    rising = (bins - corners[:-2, None]) / widths[:-1]
    falling = (corners[2:, None] - bins) / widths[1:]
    heights = 2 / (corners[2:] - corners[:-2])
    found: Floats = np.maximum(0, np.minimum(rising, falling)) * heights[:, None]
    return found


def mel_corners(low: float, high: float, n_mels: int, scale: str = "slaney") -> Floats:
    """Return (n_mels + 2,) Hz, equally far on a mel scale: filter k has its peak at corner k + 1.

    Args:
        low: where the first filter begins, in Hz.
        high: where the last one ends, in Hz.
        n_mels: filters.
        scale: ``slaney`` or ``htk``.

    Source:
        HTK: 2595 log10(1 + f / 700), Young et al., The HTK Book 3.4, equation 5.13.
    """
    if scale == "htk":
        found: Floats = np.geomspace(1 + low / 700, 1 + high / 700, n_mels + 2)
        return 700 * (found - 1)
    return _hertz(np.linspace(_mels(low), _mels(high), n_mels + 2))


def _mels(hertz: float) -> float:
    if hertz < _BREAK:
        return hertz / _STEP
    return float(_BREAK / _STEP + np.log(hertz / _BREAK) / _RATIO)


def _hertz(mels: Floats) -> Floats:
    top = _BREAK / _STEP
    found: Floats = np.where(
        mels < top, mels * _STEP, _BREAK * np.exp(_RATIO * (np.maximum(mels, top) - top))
    )
    return found
