"""The steps from a sound file to the network's input, as recipes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from simulator.contract import Array, MelFilters, Recording, Resampler, Sound, SoundReader
from simulator.contract import Stft as Transform
from simulator.contract.recipe import Apply, Boundary, Context, Recipe, Runtimes, generator
from simulator.errors import SampleError
from simulator.modalities.audio import sections
from simulator.modalities.audio.card import Chunk
from simulator.modalities.modality import Feed
from simulator.profile.implementations import Choice

PER_BEL = {"ln": math.log(10), "log10": 1.0, "db": 10.0}
"""What ten decibels are in each kind of logarithm."""


@dataclass(frozen=True, eq=False)
class Read(Recipe):
    """Reads a file to a waveform.

    Attributes:
        choice: the reader.
    """

    choice: Choice
    stage = "read"
    gives: ClassVar[Boundary] = Boundary.FRAME

    def open(self, runtimes: Runtimes) -> Apply:
        """Return the reader's method."""
        reader: SoundReader = self.choice.make()
        read = runtimes.guarded(self.choice, reader.read)
        return lambda recording, _: read(recording)

    def memory(self, source: Recording) -> int:
        """Return four bytes a sample."""
        return 4 * source.frames


@dataclass(frozen=True, eq=False)
class Resample(Recipe):
    """Brings a waveform to the network's rate, and to its length where it has one.

    Attributes:
        choice: the resampler; None where other rates are refused.
        rate: samples a second.
        samples: to which it is cut or padded with zeros at its end; None leaves it as it is.
    """

    choice: Choice | None
    rate: int
    samples: int | None
    stage = "resample"

    def open(self, runtimes: Runtimes) -> Apply:
        """Return a function that resamples and fits."""
        resampler: Resampler | None = self.choice.make() if self.choice else None

        def apply(sound: Sound, _: Context) -> Sound:
            samples = sound.samples
            if resampler is not None:
                samples = resampler.resample(samples, sound.rate, self.rate)
            elif sound.rate != self.rate:
                raise SampleError(
                    f"{self.rate} samples a second expected, got {sound.rate}; the profile does "
                    "not resample"
                )
            return Sound(fitted(samples, self.samples), self.rate)

        return apply


@dataclass(frozen=True, eq=False)
class Stft(Recipe):
    """Turns a waveform into a spectrogram.

    Attributes:
        choice: the transform.
        n_fft: its length.
        win_length: of the window.
        hop: samples from one frame to the next.
        pre_emphasis: the share of the sample before that is subtracted; 0: none.
        dither: the deviation of the noise that is added before; 0: none.
    """

    choice: Choice
    n_fft: int
    win_length: int
    hop: int
    pre_emphasis: float
    dither: float
    stage = "stft"

    def open(self, runtimes: Runtimes) -> Apply:
        """Return a function that adds noise, emphasizes and transforms."""
        transform: Transform = self.choice.make()

        def apply(sound: Sound, context: Context) -> Array:
            samples = self._prepared(sound.samples, context.sample)
            return transform.spectrum(samples, self.n_fft, self.win_length, self.hop)

        return apply

    def _prepared(self, samples: Array, sample: str) -> Array:
        if self.dither:
            noise = generator("dither", sample).standard_normal(samples.size, np.float32)
            samples = samples + noise * np.float32(self.dither)
        if self.pre_emphasis:
            rest = samples[1:] - np.float32(self.pre_emphasis) * samples[:-1]
            samples = np.concatenate([samples[:1], rest])
        return samples


@dataclass(frozen=True, eq=False)
class Mel(Recipe):
    """Sums frequencies in mel bands.

    Attributes:
        choice: the maker of the filters.
        rate: samples a second.
        n_fft: length of the transform.
        n_mels: number of bands.
        fmin: where the first begins, in Hz.
        fmax: where the last one ends, in Hz.
        frames: to which the result is cut or padded with 0 at its end; None leaves it.
    """

    choice: Choice
    rate: int
    n_fft: int
    n_mels: int
    fmin: float
    fmax: float
    frames: int | None
    stage = "mel"

    def open(self, runtimes: Runtimes) -> Apply:
        """Return the product with the filters, which are made here, once."""
        filters: MelFilters = self.choice.make()
        band = self.fmin, self.fmax
        matrix = filters.matrix(self.rate, self.n_fft, self.n_mels, *band)
        return lambda power, _: fitted(matrix @ power, self.frames)


@dataclass(frozen=True, eq=False)
class Log(Recipe):
    """Takes the logarithm of a spectrogram, in float32.

    Attributes:
        asked: the section ``log``, without the word ``model``.
    """

    asked: sections.Log
    stage = "log"

    def open(self, runtimes: Runtimes) -> Apply:
        """Return a function of our own; no library is involved."""
        return lambda power, _: self.of(power)

    def of(self, power: Array) -> Array:
        """Return the logarithm of (bands, frames) float32, at least 0."""
        asked = self.asked
        least = np.float32(asked.value)
        safe = power + least if asked.floor == "add" else np.maximum(power, least)
        found: Array = np.log(safe) if asked.kind == "ln" else np.log10(safe)
        if asked.kind == "db":
            found *= np.float32(10)
        if isinstance(asked.top_db, float):
            span = np.float32(asked.top_db / 10 * PER_BEL[asked.kind])
            found = np.maximum(found, found.max() - span)
        return found

    def words(self) -> str:
        """Return all fields of the section."""
        asked = self.asked
        top = f", {asked.top_db:g} dB" if isinstance(asked.top_db, float) else ""
        return f"{asked.kind}, {asked.floor} {asked.value:g}{top}"


@dataclass(frozen=True, eq=False)
class Normalize(Recipe):
    """Makes the network's input: values minus a mean, divided by a deviation, in float32.

    Attributes:
        asked: the section ``normalize``, without the word ``model``.
        layout: the order of the input's axes, as the model card says.
    """

    asked: sections.Normalize
    layout: str
    stage = "normalize"
    operation = "normalize_sound"
    gives: ClassVar[Boundary] = Boundary.INPUT

    def open(self, runtimes: Runtimes) -> Apply:
        """Return a function of our own; no library is involved."""

        def apply(value: Sound | Array, _: Context) -> Array:
            array = value.samples if isinstance(value, Sound) else value
            return laid_out(self.of(array), self.layout)

        return apply

    def of(self, array: Array) -> Array:
        """Return (..., N) float32 values, normalized."""
        asked = self.asked
        if asked.kind == "none":
            return array
        if asked.kind == "fixed":
            assert asked.mean is not None and asked.std is not None
            return (array - np.float32(asked.mean)) / np.float32(asked.std)
        axis = -1 if asked.kind == "bands" else None
        mean = array.mean(axis, keepdims=True, dtype=np.float64).astype(np.float32)
        centred: Array = array - mean
        if not asked.divide:
            return centred
        variance = np.square(centred, dtype=np.float64).mean(axis, keepdims=True)
        found: Array = (centred / np.sqrt(variance + asked.epsilon)).astype(np.float32)
        return found

    def words(self) -> str:
        """Return the kind and the layout."""
        return f"{self.asked.kind} {self.layout}"


def fitted(array: Array, length: int | None) -> Array:
    """Return an array whose last axis is cut, or padded with 0 at its end, to a length."""
    if length is None or array.shape[-1] == length:
        return array
    short = max(length - array.shape[-1], 0)
    return np.pad(array[..., :length], [(0, 0)] * (array.ndim - 1) + [(0, short)])


def laid_out(array: Array, layout: str) -> Array:
    """Return an array of (samples,) or (bands, frames) with the axes of a layout.

    Args:
        array: float32.
        layout: ``NS``, ``NCS``, ``NMT``, ``NTM``, ``NCMT`` or ``NCTM``; N and C are 1.
    """
    turned = array.T if layout.endswith("TM") else array
    shape = (1,) * (len(layout) - turned.ndim) + turned.shape
    return np.ascontiguousarray(turned, np.float32).reshape(shape)


_F32, _I64 = np.dtype(np.float32), np.dtype(np.int64)


def feeds(chunk: Chunk) -> tuple[Feed, ...]:
    """Return the chunk with its context, the carried inputs and the constants."""
    carried = (Feed(name, _F32, tuple(one.shape)) for name, one in chunk.carried.items())
    constants = (Feed(name, _I64, (), fill=value) for name, value in chunk.constants.items())
    return Feed(chunk.input, _F32, (1, chunk.context + chunk.size), "NS"), *carried, *constants


@dataclass(frozen=True, eq=False)
class Chunks(Recipe):
    """Cuts a waveform into the inputs of several inferences.

    Attributes:
        chunk: as the card says.
    """

    chunk: Chunk
    stage = "normalize"
    operation = "chunks"
    gives: ClassVar[Boundary] = Boundary.INPUT

    def open(self, runtimes: Runtimes) -> Apply:
        """Return a function from (1, N) to a tuple of mappings, at least one."""
        size, context = self.chunk.size, self.chunk.context
        states = {n: np.zeros(carried.shape, _F32) for n, carried in self.chunk.carried.items()}
        others = states | {
            n: np.array(constant, _I64) for n, constant in self.chunk.constants.items()
        }

        def apply(waveform: Array, _: Context) -> tuple[Mapping[str, Array], ...]:
            samples = waveform.reshape(-1)
            count = max(-(-samples.size // size), 1)
            whole = np.pad(samples, (context, count * size - samples.size))
            return tuple(
                {self.chunk.input: whole[None, at : at + context + size].copy(), **others}
                for at in range(0, count * size, size)
            )

        return apply

    def words(self) -> str:
        """Return the sizes."""
        return f"chunks of {self.chunk.size}, {self.chunk.context} before each"
