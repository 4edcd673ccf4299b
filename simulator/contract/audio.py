"""Sound samples, and the stages that turn a sound file into a network's input."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from simulator.contract.backend import Implementation, Options
from simulator.contract.frame import Array
from simulator.errors import ModelError, SampleError


@dataclass(frozen=True, slots=True)
class Recording:
    """The source of a sound sample: a file whose header was checked.

    Attributes:
        data: the bytes of the file.
        format: ``wav``, ``flac``, ``mp3`` or ``ogg``.
        rate: samples a second; 0 where only the library that reads it knows.
        channels: 0 where only the library that reads it knows.
        frames: samples of each channel; 0 where only the library that reads it knows. Of an MP3
            file those of its frames: decoders drop some at both ends.
        name: what messages call the file.
    """

    data: bytes
    format: str
    rate: int
    channels: int
    frames: int
    name: str = ""


@dataclass(frozen=True, slots=True)
class Sound:
    """A waveform, the frame of a sound's chain.

    Attributes:
        samples: (N,) float32; full scale is -1 to 1, or -32768 to 32767 where the stack does not
            divide.
        rate: samples a second.
    """

    samples: Array
    rate: int


class SoundReader(Implementation):
    """Reads a sound file.

    Args:
        options: the fields of the profile's ``read`` section. ``width`` is what the stack keeps of
            each sample: that of the file, or 8 or 16 bits, rounded and clipped. ``scale`` is the
            full scale of the numbers: ``unit`` or ``int16``. ``channels`` says what becomes of
            several: their ``mean``, the ``first``, or ``refuse``.

    Attributes:
        reads: the formats that it reads, as :attr:`Recording.format` names them.
    """

    reads: ClassVar[tuple[str, ...]] = ("wav", "flac", "mp3", "ogg")

    def read(self, recording: Recording) -> Sound:
        """Return the waveform.

        Raises:
            SampleError: the file is of another format, damaged, or has no samples, or one that is
                not finite; or it has several channels, which the options refuse.
        """
        if recording.format not in self.reads:
            raise SampleError(f"a {' or '.join(self.reads)} file expected, got {recording.format}")
        if recording.channels > 1 and self.options["channels"] == "refuse":
            raise SampleError(f"one channel expected, got {recording.channels}")
        samples, rate = self._read(recording)
        if samples.ndim != 2 or not samples.size:
            raise SampleError("the file has no samples")
        if recording.format != "mp3" and len(samples) < recording.frames:
            raise SampleError(
                f"the {recording.format} file is truncated: {recording.frames:,} samples "
                f"expected, {len(samples):,} are there"
            )
        first = self.options["channels"] == "first"
        one = samples[:, 0] if first or samples.shape[1] == 1 else samples.mean(1)
        if not np.isfinite(one).all():
            raise SampleError("a sample is NaN or an infinity")
        return Sound(_kept(one, self.options), rate)

    @abstractmethod
    def _read(self, recording: Recording) -> tuple[Array, int]:
        """Return (N, channels) float32 or float64 of full scale -1 to 1, and the sample rate."""


def _kept(samples: Array, options: Options) -> Array:
    width, scale = options["width"], 32768 if options["scale"] == "int16" else 1
    if width != "file":
        top = 2 ** (int(width) - 1)
        samples = np.rint(samples.astype(np.float64) * top).clip(-top, top - 1) / top
    return np.ascontiguousarray(samples * scale, np.float32)


class Resampler(Implementation):
    """Changes the sample rate. Options are the fields of the profile's ``resample`` section."""

    def resample(self, samples: Array, rate: int, wanted: int) -> Array:
        """Return (M,) float32 at *wanted* samples a second; the samples themselves at equal rates.

        Args:
            samples: (N,) float32.
            rate: of *samples*.
            wanted: at least 1.

        Raises:
            SampleError: nothing is left of a sound that is too short.
        """
        _check(samples)
        if rate < 1 or wanted < 1:
            raise ValueError(f"rates of at least 1 expected, got {rate} and {wanted}")
        if rate == wanted:
            return samples
        made = self._resample(np.ascontiguousarray(samples), rate, wanted)
        if not made.size:
            raise SampleError(f"no sample is left of {samples.size} at {wanted} Hz")
        return np.ascontiguousarray(made, np.float32)

    @abstractmethod
    def _resample(self, samples: Array, rate: int, wanted: int) -> Array:
        """Return the samples at another rate; see :meth:`resample`."""


class Stft(Implementation):
    """The short-time Fourier transform.

    Args:
        options: the fields of the profile's ``stft`` section.
    """

    def spectrum(self, samples: Array, n_fft: int, win_length: int, hop: int) -> Array:
        """Return (n_fft // 2 + 1, frames) float32, the magnitude or power as ``power`` says.

        Args:
            samples: (N,) float32.
            n_fft: length of the transform.
            win_length: length of the window, at most *n_fft*; centred in it.
            hop: samples from one frame to the next.

        Raises:
            SampleError: the sound is too short for one frame, or for its reflection.
        """
        _check(samples)
        if not 1 <= win_length <= n_fft or hop < 1:
            raise ValueError(f"no transform of {n_fft}, window {win_length}, hop {hop}")
        found = self._spectrum(np.ascontiguousarray(samples), n_fft, win_length, hop)
        if not found.size:
            raise SampleError(f"{samples.size} samples are too few for one frame of {n_fft}")
        return np.ascontiguousarray(found, np.float32)

    @abstractmethod
    def _spectrum(self, samples: Array, n_fft: int, win_length: int, hop: int) -> Array:
        """Return what :meth:`spectrum` returns."""


class MelFilters(Implementation):
    """Makes a mel filter bank. Options are the fields of the profile's ``mel`` section."""

    def matrix(self, rate: int, n_fft: int, n_mels: int, fmin: float, fmax: float) -> Array:
        """Return (n_mels, n_fft // 2 + 1) float32.

        Args:
            rate: samples a second.
            n_fft: length of the transform.
            n_mels: number of filters.
            fmin: where the first filter begins, in Hz.
            fmax: where the last one ends, in Hz.

        Raises:
            ModelError: the band is empty, or goes beyond half the rate.
        """
        if not 0 <= fmin < fmax <= rate / 2:
            raise ModelError(
                f"mel: a band within 0 to {rate / 2:g} Hz expected, got {fmin:g} to {fmax:g}"
            )
        made = self._matrix(rate, n_fft, n_mels, fmin, fmax)
        return np.ascontiguousarray(made, np.float32)

    @abstractmethod
    def _matrix(self, rate: int, n_fft: int, n_mels: int, fmin: float, fmax: float) -> Array:
        """Return what :meth:`matrix` returns."""


class Vocoder(Implementation):
    """Makes a waveform of a spectrogram.

    Args:
        options: the fields of the profile's ``vocoder`` section. The ``method`` ``istft`` inverts
            complex spectra; ``griffin_lim`` takes magnitudes, and finds phases that fit them.
    """

    def wave(self, spectrum: Array, n_fft: int, win_length: int, hop: int) -> Array:
        """Return (N,) float32.

        Args:
            spectrum: (n_fft // 2 + 1, frames), complex64, or float32 magnitudes, as the method
                says.
            n_fft: length of the transform.
            win_length: length of the window, at most *n_fft*; centred in it.
            hop: samples from one frame to the next.

        Raises:
            SampleError: there are too few frames.
        """
        inverts = self.options["method"] == "istft"
        wanted = np.dtype(np.complex64 if inverts else np.float32)
        if not 1 <= win_length <= n_fft or hop < 1:
            raise ValueError(f"no transform of {n_fft}, window {win_length}, hop {hop}")
        if spectrum.ndim != 2 or spectrum.shape[0] != n_fft // 2 + 1 or spectrum.dtype != wanted:
            expected = f"({n_fft // 2 + 1}, frames) {wanted}"
            raise ValueError(f"{expected} expected, got {spectrum.shape} {spectrum.dtype}")
        if spectrum.shape[1] <= bool(self.options["center"]):
            raise SampleError(f"{spectrum.shape[1]} frames are too few for a waveform")
        found = self._wave(np.ascontiguousarray(spectrum), n_fft, win_length, hop)
        return np.ascontiguousarray(found, np.float32)

    @abstractmethod
    def _wave(self, spectrum: Array, n_fft: int, win_length: int, hop: int) -> Array:
        """Return what :meth:`wave` returns."""


def _check(samples: Array) -> None:
    if samples.ndim != 1 or samples.dtype != np.float32:
        raise ValueError(f"(N,) float32 expected, got {samples.shape} {samples.dtype}")
    if not samples.size:
        raise SampleError("the sound has no samples")
