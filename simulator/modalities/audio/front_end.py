"""The first recipes of a stack: from a sound file to the network's input."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from simulator.contract import Array, MelFilters, Recording, Resampler, Sound, SoundReader, Stage
from simulator.contract import Stft as Transform
from simulator.contract.recipe import Apply, Boundary, Context, Recipe, Runtimes, generator
from simulator.errors import SampleError
from simulator.modalities.audio.card import AudioCard
from simulator.modalities.audio.chunks import Chunks
from simulator.modalities.audio.conventions import settle
from simulator.modalities.audio.numbers import PER_BEL, fitted, laid_out, logarithm, normalized
from simulator.modalities.modality import Axes
from simulator.profile.implementations import Choice, Choices
from simulator.profile.profile import Profile
from simulator.reference.log_mel import mel_corners


def front_end(profile: Profile, choices: Choices, card: AudioCard) -> list[Recipe]:
    """Return the steps from a file to the network's input.

    Args:
        profile: the stack.
        choices: the implementation of each of its stages.
        card: the content of the model card.

    Raises:
        ModelError: the profile does not fit the card.
    """
    spec = card.input
    steps: list[Recipe] = [
        Read(choices[Stage.READ]),
        Resample(choices.get(Stage.RESAMPLE), spec.rate, spec.samples),
    ]
    if spec.features == "log_mel":
        steps += _spectrogram(profile, choices, card)
    how = settle("normalize", profile, choices, card).values
    steps.append(Normalize(layout=spec.layout, **how))
    return [*steps, Chunks(spec.chunk)] if spec.chunk else steps


def _spectrogram(profile: Profile, choices: Choices, card: AudioCard) -> list[Recipe]:
    spec, transform, mel, log = (
        card.input,
        *(settle(name, profile, choices, card) for name in ("stft", "mel", "log")),
    )
    assert transform.choice and mel.choice and spec.n_fft and spec.win_length and spec.hop
    assert spec.n_mels
    fmax = mel.values["fmax"]
    last = spec.rate / 2 if fmax == "half_rate" else fmax
    sizes = spec.n_fft, spec.win_length, spec.hop
    step = 1 if choices[Stage.READ].options["scale"] == "int16" else 1 / 32768
    values = transform.values
    before = float(values["pre_emphasis"]), float(values["dither"]) * step
    numbers, top = log.values, log.values["top_db"]
    return [
        Stft(transform.choice, *sizes, *before),
        Mel(
            mel.choice, spec.rate, spec.n_fft, spec.n_mels, float(mel.values["fmin"]), float(last),
            spec.frames,
        ),
        Log(numbers["kind"], numbers["floor"], numbers["value"], None if top == "none" else top),
    ]  # fmt: skip


@dataclass(frozen=True, eq=False)
class Read(Recipe):
    """Reads a file to a waveform.

    Attributes:
        choice: the reader.
    """

    choice: Choice
    stage = "read"
    gives: ClassVar[Boundary] = Boundary.FRAME

    def identity(self) -> Any:
        """Return the reader."""
        return ["read", self.choice.identity()]

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

    def identity(self) -> Any:
        """Return the resampler, the rate and the length."""
        choice = self.choice.identity() if self.choice else None
        return ["resample", choice, self.rate, self.samples]

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

    def identity(self) -> Any:
        """Return the transform, its sizes, and what is done before it."""
        sizes = [self.n_fft, self.win_length, self.hop]
        return ["stft", self.choice.identity(), sizes, self.pre_emphasis, self.dither]

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

    def identity(self) -> Any:
        """Return the maker of the filters, and all sizes."""
        sizes = [self.rate, self.n_fft, self.n_mels, self.fmin, self.fmax, self.frames]
        return ["mel", self.choice.identity(), sizes]

    def open(self, runtimes: Runtimes) -> Apply:
        """Return the product with the filters, which are made here, once."""
        filters: MelFilters = self.choice.make()
        band = self.fmin, self.fmax
        matrix = filters.matrix(self.rate, self.n_fft, self.n_mels, *band)
        return lambda power, _: fitted(matrix @ power, self.frames)


@dataclass(frozen=True, eq=False)
class Log(Recipe):
    """Takes the logarithm; see :func:`logarithm`."""

    kind: str
    floor: str
    value: float
    top_db: float | None
    stage = "log"

    def identity(self) -> Any:
        """Return all attributes."""
        return ["log", self.kind, self.floor, self.value, self.top_db]

    def open(self, runtimes: Runtimes) -> Apply:
        """Return a function of our own; no library is involved."""
        return lambda power, _: logarithm(power, self.kind, self.floor, self.value, self.top_db)

    def words(self) -> str:
        """Return all attributes."""
        top = "" if self.top_db is None else f", {self.top_db:g} dB"
        return f"{self.kind}, {self.floor} {self.value:g}{top}"


@dataclass(frozen=True, eq=False)
class Normalize(Recipe):
    """Makes the network's input; see :func:`normalized`.

    Attributes:
        layout: the order of the input's axes, as the model card says.
    """

    kind: str
    mean: float | None
    std: float | None
    epsilon: float | None
    divide: bool | None
    layout: str
    stage = "normalize"
    gives: ClassVar[Boundary] = Boundary.INPUT

    def identity(self) -> Any:
        """Return all attributes."""
        fields = [self.kind, self.mean, self.std, self.epsilon, self.divide]
        return ["normalize_sound", fields, self.layout]

    def open(self, runtimes: Runtimes) -> Apply:
        """Return a function of our own; no library is involved."""

        def apply(value: Sound | Array, _: Context) -> Array:
            array = value.samples if isinstance(value, Sound) else value
            fields = self.kind, self.mean, self.std, self.epsilon, self.divide
            return laid_out(normalized(array, *fields), self.layout)

        return apply

    def words(self) -> str:
        """Return the kind and the layout."""
        return f"{self.kind} {self.layout}"


def axes(recipes: Sequence[Recipe]) -> Axes | None:
    """Return what the axes of a spectrogram are; None where these steps make none."""
    hop = next((one.hop for one in recipes if isinstance(one, Stft)), None)
    mel = next((one for one in recipes if isinstance(one, Mel)), None)
    if hop is None or mel is None:
        return None
    corners = mel_corners(mel.fmin, mel.fmax, mel.n_mels, mel.choice.options["scale"])
    return Axes(tuple(corners[1:-1].tolist()), hop / mel.rate)


def decibels(profile: Profile, card: AudioCard) -> float:
    """Return how many decibels a difference of 1 in the network's input is.

    A difference of waveforms is told in percent of full scale.
    """
    how = settle("normalize", profile, {}, card).values
    std = how["std"] if how["kind"] == "fixed" else 1.0
    if card.input.features == "waveform":
        return 100.0 * std
    kind = settle("log", profile, {}, card).values["kind"]
    return float(10 / PER_BEL[kind] * std)
