"""NumPy: the transform as scripts write it, librosa's mel formulas, and bare resampling."""

from __future__ import annotations

import numpy as np

from backends.sound.framing import divisor, padded, transforms, window
from backends.sound.mel_formulas import bank
from backends.sound.vocoders import FIELDS, NumpyVocoder, vocoders
from simulator.contract import (
    Array,
    Backend,
    Evidence,
    MelFilters,
    Offer,
    Resampler,
    SampleError,
    Stage,
    Stft,
)


class NumpyStft(Stft):
    """Frames are cut out, multiplied with the window and transformed.

    Args:
        options: ``algorithm`` is ``fft`` (``numpy.fft.rfft``) or ``matmul``, the product with a
            matrix of window and transform, as networks without an FFT have it. ``arithmetic`` is
            the type of samples, window, matrix and an FFT's spectrum; what is float16 is rounded
            to it, and sums are taken in float32.
    """

    def _spectrum(self, samples: Array, n_fft: int, win_length: int, hop: int) -> Array:
        whole = padded(samples, self.options, n_fft, hop)
        if whole.size < n_fft:
            return np.empty((n_fft // 2 + 1, 0), np.float32)
        frames = np.lib.stride_tricks.sliding_window_view(whole, n_fft)[::hop]
        shape = window(self.options, win_length, n_fft)
        real, imaginary = self._transform(frames, shape / divisor(self.options, shape))
        found = np.hypot(real, imaginary).T
        return np.square(found) if self.options["power"] == 2 else found

    def _transform(self, frames: Array, shape: Array) -> tuple[Array, Array]:
        """Return the real and the imaginary part, (frames, bins)."""
        kind = np.dtype(self.options["arithmetic"])
        wide = np.float64 if kind == np.float64 else np.float32

        def stored(values: Array) -> Array:
            return values.astype(kind).astype(wide)

        if self.options["algorithm"] == "fft":
            found = np.fft.rfft(stored(frames) * stored(shape), axis=1)
            return stored(found.real), stored(found.imag)
        turns = np.outer(np.arange(shape.size), np.arange(shape.size // 2 + 1)) % shape.size
        angles, column = 2 * np.pi / shape.size * turns, shape[:, None]
        rows = stored(frames)
        return rows @ stored(column * np.cos(angles)), rows @ stored(column * -np.sin(angles))


class NumpyResampler(Resampler):
    """Takes samples, or straight lines between them, with no filter.

    ``linear`` is ``numpy.interp`` at the times n / rate; ``nearest`` takes the sample at or before
    that time, as decimation does; ``mean`` takes the mean of a whole number of samples.
    """

    def _resample(self, samples: Array, rate: int, wanted: int) -> Array:
        count = -(-samples.size * wanted // rate)
        if self.options["quality"] == "mean":
            if rate % wanted:
                raise SampleError(f"means go by whole factors, not {rate} to {wanted}")
            whole = samples.size * wanted // rate * (rate // wanted)
            means: Array = samples[:whole].reshape(-1, rate // wanted).mean(axis=1)
            return means
        if self.options["quality"] == "nearest":
            return samples[np.arange(count) * rate // wanted]
        at = np.arange(count) * (rate / wanted)
        lines: Array = np.interp(at, np.arange(samples.size), samples)
        return lines


class FormulaFilters(MelFilters):
    """The triangles of ``librosa.filters.mel``, in its formulas: equal to it in every bit."""

    def _matrix(self, rate: int, n_fft: int, n_mels: int, fmin: float, fmax: float) -> Array:
        scale, norm = self.options["scale"], self.options["norm"]
        return bank(rate, n_fft, n_mels, fmin, fmax, scale, norm)


BACKEND = Backend(
    name="numpy",
    summary="NumPy: rfft over frames, librosa's mel formulas, bare resampling, Griffin-Lim",
    offers=(
        *transforms(
            NumpyStft,
            "numpy.fft.rfft, over frames cut as librosa.stft cuts them",
            windows=("hann", "hamming", "povey", "none"),
            scaling=("none", "window_sum", "window_power", "sqrt_n"),
            frames=("whole", "padded", "every_hop"),
            algorithm=("fft",),
            arithmetic=("float32", "float64", "float16"),
        ),
        *transforms(
            NumpyStft,
            "the matrix of the transform, as exported front ends have it for want of an FFT",
            scaling=("none", "window_sum", "window_power", "sqrt_n"),
            frames=("whole", "padded", "every_hop"),
            evidence=Evidence.EMULATED,
            algorithm=("matmul",),
            arithmetic=("float32", "float16"),
        ),
        Offer(
            Stage.MEL,
            {"scale": ("slaney", "htk"), "norm": ("slaney", "none"), "triangles": ("hertz",)},
            FormulaFilters,
            evidence=Evidence.EMULATED,
            source="librosa 0.11, filters.mel and core.convert",
        ),
        *vocoders(
            NumpyVocoder,
            "numpy.fft.irfft, frames added as librosa.istft adds them",
            windows=("hann", "hamming", "none"),
            scaling=("none", "window_sum", "sqrt_n"),
            overlap=("window_square", "constant", "none"),
        ),
        Offer(
            Stage.RESAMPLE,
            {"quality": ("linear", "nearest", "mean")},
            NumpyResampler,
            source="numpy.interp; indexing; mean over an axis",
        ),
    ),
    fields={
        "algorithm": "a fast Fourier transform, or the product with its matrix",
        "arithmetic": "type of samples, window, matrix and the spectrum of fft",
        **FIELDS,
    },
)
