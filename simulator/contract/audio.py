"""Sound samples, and the stages that turn a sound file into a network's input."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

from simulator.contract.backend import Options
from simulator.contract.frame import Array


@dataclass(frozen=True, slots=True)
class Recording:
    """The source of a sound sample: a file whose header was checked.

    Attributes:
        data: the bytes of the file.
        format: ``wav``, ``flac``, ``mp3`` or ``ogg``.
        rate: samples a second; 0 where only the library that reads it knows.
        channels: 0 where only the library that reads it knows.
        frames: samples of each channel; 0 where only the library that reads it knows.
    """

    data: bytes
    format: str
    rate: int
    channels: int
    frames: int


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


class SoundReader(ABC):
    """Reads a sound file. Options are the fields of the profile's ``read`` section."""

    def __init__(self, options: Options) -> None:
        self.options = options

    @abstractmethod
    def read(self, recording: Recording) -> Sound:
        """Return the waveform; several channels are reduced to one as ``channels`` says.

        Raises:
            SampleError: the file is damaged, or has no samples.
        """


class Resampler(ABC):
    """Changes the sample rate. Options are the fields of the profile's ``resample`` section."""

    def __init__(self, options: Options) -> None:
        self.options = options

    @abstractmethod
    def resample(self, samples: Array, rate: int, wanted: int) -> Array:
        """Return (M,) float32 at *wanted* samples a second; the samples themselves at equal rates.

        Args:
            samples: (N,) float32.
            rate: of *samples*.
            wanted: at least 1.
        """


class Stft(ABC):
    """The short-time Fourier transform; options are the fields of the section ``stft``."""

    def __init__(self, options: Options) -> None:
        self.options = options

    @abstractmethod
    def spectrum(self, samples: Array, n_fft: int, win_length: int, hop: int) -> Array:
        """Return (n_fft // 2 + 1, frames) float32, the magnitude or power as ``power`` says.

        Args:
            samples: (N,) float32.
            n_fft: length of the transform.
            win_length: length of the window, at most *n_fft*; centred in it.
            hop: samples from one frame to the next.
        """


class MelFilters(ABC):
    """Makes a mel filter bank. Options are the fields of the profile's ``mel`` section."""

    def __init__(self, options: Options) -> None:
        self.options = options

    @abstractmethod
    def matrix(self, rate: int, n_fft: int, n_mels: int) -> Array:
        """Return (n_mels, n_fft // 2 + 1) float32."""
