"""A log-mel spectrogram in float64 numpy, by which two waveforms are compared."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from simulator.reference.sound import mel_filters

Floats = NDArray[np.float64]
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
    filters = mel_filters(rate, N_FFT, N_MELS, (0.0, rate / 2), "slaney", "slaney", "hertz")
    found: Floats = np.log(np.maximum(filters @ magnitudes, _FLOOR))
    return found
