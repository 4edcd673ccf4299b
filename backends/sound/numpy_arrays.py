"""NumPy: the transform as scripts write it, librosa's mel formulas, and bare resampling."""

from __future__ import annotations

import numpy as np

from backends.sound.framing import divisor, padded, transforms, window
from backends.sound.mel_formulas import bank
from simulator.contract import (
    Array,
    Backend,
    Evidence,
    MelFilters,
    Offer,
    Resampler,
    Stage,
    Stft,
)


class NumpyStft(Stft):
    """Frames are cut out, multiplied with the window and given to ``numpy.fft.rfft``.

    Args:
        options: ``arithmetic`` is the type of samples and window.
    """

    def _spectrum(self, samples: Array, n_fft: int, win_length: int, hop: int) -> Array:
        whole = padded(samples.astype(self.options["arithmetic"]), self.options, n_fft, hop)
        if whole.size < n_fft:
            return np.empty((n_fft // 2 + 1, 0), np.float32)
        frames = np.lib.stride_tricks.sliding_window_view(whole, n_fft)[::hop]
        shape = window(self.options, win_length, n_fft)
        shape = (shape / divisor(self.options, shape)).astype(whole.dtype)
        magnitude = np.abs(np.fft.rfft(frames * shape, axis=1)).T
        return magnitude**2 if self.options["power"] == 2 else magnitude


class NumpyResampler(Resampler):
    """Takes samples, or straight lines between them, with no filter.

    ``linear`` is ``numpy.interp`` at the times n / rate; ``nearest`` takes the sample at or before
    that time, as decimation does.
    """

    def _resample(self, samples: Array, rate: int, wanted: int) -> Array:
        count = -(-samples.size * wanted // rate)
        if self.options["quality"] == "nearest":
            return samples[np.arange(count) * rate // wanted]
        return np.interp(np.arange(count) * (rate / wanted), np.arange(samples.size), samples)


class FormulaFilters(MelFilters):
    """The triangles of ``librosa.filters.mel``, in its formulas: equal to it in every bit."""

    def _matrix(self, rate: int, n_fft: int, n_mels: int, fmin: float, fmax: float) -> Array:
        scale, norm = self.options["scale"], self.options["norm"]
        return bank(rate, n_fft, n_mels, fmin, fmax, scale, norm)


BACKEND = Backend(
    name="numpy",
    summary="NumPy: rfft over frames, librosa's mel formulas, resampling without a filter",
    offers=(
        *transforms(
            NumpyStft,
            "numpy.fft.rfft, over frames cut as librosa.stft cuts them",
            windows=("hann", "hamming", "povey", "none"),
            scaling=("none", "window_sum", "window_power", "sqrt_n"),
            frames=("whole", "padded", "every_hop"),
            arithmetic=("float32", "float64"),
        ),
        Offer(
            Stage.MEL,
            {"scale": ("slaney", "htk"), "norm": ("slaney", "none")},
            FormulaFilters,
            evidence=Evidence.EMULATED,
            source="librosa 0.11, filters.mel and core.convert",
        ),
        Offer(
            Stage.RESAMPLE,
            {"quality": ("linear", "nearest")},
            NumpyResampler,
            source="numpy.interp; indexing",
        ),
    ),
    fields={"arithmetic": "type of the samples and of the window"},
)
