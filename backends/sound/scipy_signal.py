"""SciPy: io.wavfile, resample_poly, resample and decimate, signal.stft and ShortTimeFFT."""

from __future__ import annotations

import io
import warnings
from math import gcd
from typing import Any

import numpy as np

from backends.sound.framing import check_one_frame, divisor, reflectable, transforms, window
from backends.sound.pcm import reads
from backends.sound.vocoders import FIELDS, Transform, TransformVocoder, vocoders
from simulator.contract import (
    Array,
    Backend,
    Library,
    Offer,
    Recording,
    Resampler,
    SampleError,
    SoundReader,
    Stage,
    Stft,
)
from simulator.errors import one_line

_signal = Library("scipy.signal", distribution="scipy", extra="audio")
_wavfile = Library("scipy.io.wavfile", distribution="scipy", extra="audio")


class ScipyReader(SoundReader):
    """Reads with ``scipy.io.wavfile.read``; its integers are divided by their full scale here."""

    reads = ("wav",)

    def _read(self, recording: Recording) -> tuple[Array, int]:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                rate, found = _wavfile.read(io.BytesIO(recording.data))
        except Exception as error:  # it raises what its parsing stumbles over
            raise SampleError(f"scipy.io.wavfile: {one_line(error)}") from error
        rows = found.reshape(len(found), -1)
        if rows.dtype == np.uint8:
            return (rows - np.float32(128)) / np.float32(128), rate
        if rows.dtype.kind == "i":
            return rows / 2.0 ** (8 * rows.dtype.itemsize - 1), rate
        return rows, rate


class ScipyResampler(Resampler):
    """``poly``: resample_poly; ``fft``: resample; ``decimate``: its IIR filter, whole factors."""

    def _resample(self, samples: Array, rate: int, wanted: int) -> Array:
        quality, common = self.options["quality"], gcd(rate, wanted)
        if quality == "poly":
            return _done(_signal.resample_poly(samples, wanted // common, rate // common))
        if quality == "fft":
            return _done(_signal.resample(samples, -(-samples.size * wanted // rate)))
        if rate % wanted:
            raise SampleError(
                f"scipy.signal.decimate goes by whole factors, not {rate} to {wanted}"
            )
        try:
            return _done(_signal.decimate(samples, rate // wanted))
        except ValueError as error:
            raise SampleError(f"scipy.signal.decimate: {error}") from error


def _done(found: Any) -> Array:
    made: Array = np.asarray(found)
    return made


class ScipyStft(Stft):
    """``scipy.signal.stft``; the window is ``n_fft`` long, zeros around it.

    Its result is divided by the window's sum; ``scaling: none`` multiplies that again.
    """

    def _spectrum(self, samples: Array, n_fft: int, win_length: int, hop: int) -> Array:
        options, shape = self.options, window(self.options, win_length, n_fft)
        pad = options["pad_mode"] if options["center"] else None
        reflectable(samples.size, str(pad), n_fft)
        if pad is None:
            check_one_frame(samples.size, n_fft)
        whole = samples
        if samples.size < n_fft:  # it would shorten the frame
            pad, whole = None, np.pad(samples, n_fft // 2, mode=_NUMPY[str(pad)])  # type: ignore[call-overload]
        if whole.size < n_fft:
            whole = np.pad(whole, (0, n_fft - whole.size))
        _, _, found = _signal.stft(
            whole, window=shape.astype(np.float32), nperseg=n_fft, noverlap=n_fft - hop,
            boundary=_BOUNDARY[pad], padded=options["frames"] == "padded",
        )  # fmt: skip
        total = shape.sum()
        magnitude: Array = np.abs(found) * np.float32(total / divisor(options, shape))
        return magnitude**2 if options["power"] == 2 else magnitude


_BOUNDARY = {"reflect": "even", "constant": "zeros", None: None}
_NUMPY = {"reflect": "reflect", "constant": "constant"}


class ScipyShortTimeFft(Stft):
    """``scipy.signal.ShortTimeFFT``: one frame for each position that touches the sound."""

    def _spectrum(self, samples: Array, n_fft: int, win_length: int, hop: int) -> Array:
        options, shape = self.options, window(self.options, win_length, n_fft)
        if samples.size <= n_fft:
            raise SampleError(f"{samples.size} samples are too few for ShortTimeFFT of {n_fft}")
        if hop > n_fft:
            raise SampleError(f"a hop of {hop} is longer than the frame of {n_fft}")
        found = _signal.ShortTimeFFT(shape, hop, fs=1.0).stft(
            samples, padding=_PADDING[options["pad_mode"]]
        )
        magnitude = np.abs(found) / divisor(options, shape)
        return _done(magnitude**2 if options["power"] == 2 else magnitude)


class ScipyVocoder(TransformVocoder):
    """``scipy.signal.istft``, which multiplies by the window's sum, and ``scipy.signal.stft``."""

    def _pair(self, n_fft: int, win_length: int, hop: int) -> tuple[Transform, Transform]:
        options, shape = self.options, window(self.options, win_length, n_fft)
        factor = np.float32(divisor(options, shape) / shape.sum())
        common = {"window": shape, "nperseg": n_fft, "noverlap": n_fft - hop}

        def forward(samples: Array) -> Array:
            pad = _BOUNDARY[options["pad_mode"]]
            _, _, found = _signal.stft(samples, boundary=pad, padded=False, **common)
            return _done(found) / factor

        def back(spectrum: Array) -> Array:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of ends that no window reaches
                _, found = _signal.istft(spectrum * factor, boundary=options["center"], **common)
            return _done(found).astype(np.float32)

        return forward, back


_PADDING = {"reflect": "even", "constant": "zeros", "edge": "edge"}
_SOURCE = "https://docs.scipy.org/doc/scipy/reference/"

BACKEND = Backend(
    name="scipy",
    summary="SciPy: io.wavfile, polyphase and FFT resampling, signal.stft, ShortTimeFFT",
    library=_signal,
    offers=(
        reads(ScipyReader, _SOURCE + "generated/scipy.io.wavfile.read.html"),
        Offer(
            Stage.RESAMPLE,
            {"quality": ("poly", "fft", "decimate")},
            ScipyResampler,
            source=_SOURCE + "signal.html",
        ),
        *transforms(
            ScipyStft,
            _SOURCE + "generated/scipy.signal.stft.html",
            pads=("constant", "reflect"),
            scaling=("window_sum", "none"),
            frames=("padded", "whole"),
        ),
        *transforms(
            ScipyShortTimeFft,
            _SOURCE + "generated/scipy.signal.ShortTimeFFT.html",
            pads=("constant", "reflect", "edge"),
            scaling=("none", "window_sum"),
            frames=("touching",),
            uncentred=False,
        ),
        *vocoders(
            ScipyVocoder,
            _SOURCE + "generated/scipy.signal.istft.html",
            windows=("hann", "hamming", "none"),
            scaling=("window_sum", "none"),
        ),
    ),
    fields=FIELDS,
)
