"""Sounds: WAV, FLAC, MP3 and OGG files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from simulator.contract import Array, Recording, Stage
from simulator.contract.recipe import Recipe
from simulator.modalities import constants
from simulator.modalities.audio import sections
from simulator.modalities.audio.card import AudioCard, input_shape, settle
from simulator.modalities.audio.headers import SUFFIXES, read_sound
from simulator.modalities.audio.steps import (
    PER_BEL,
    Chunks,
    Log,
    Mel,
    Normalize,
    Read,
    Resample,
    Stft,
    feeds,
)
from simulator.modalities.modality import Axes, Feed, Modality
from simulator.places import Where
from simulator.profile.implementations import Choices
from simulator.profile.profile import Profile
from simulator.reference.sound import mel_corners


@dataclass(frozen=True)
class Whole:
    """A sound has no place in the network's input: it is the input."""

    def identity(self) -> Any:
        """Return nothing."""
        return None

    def __call__(self, source: Any) -> None:
        """Return nothing."""


class AudioModality(Modality):
    """One sound a sample; its source is a :class:`Recording`."""

    name = "audio"
    unit = "sound"
    suffixes = SUFFIXES
    pictures = ("simulator.experiments.pictures.sounds:heard",)
    length = "milliseconds"
    levels = "dB"
    Spec = sections.AudioSpec
    Card = AudioCard
    tried_with = "simulator.testing.audio_specimen:write"

    def read(self, name: str, path: Where) -> Recording:
        """Read one sound file and check its header."""
        return read_sound(name, path)

    def feeds(self, card: Any) -> tuple[Feed, ...]:
        """Return the float32 array of the card's layout, and constants."""
        spec = card.input
        if spec.chunk:
            return feeds(spec.chunk)
        sound = Feed(spec.name, np.dtype(np.float32), input_shape(spec), spec.layout)
        return (sound, *constants.feeds(spec.constants))

    def front_end(self, profile: Profile, choices: Choices, card: Any) -> list[Recipe]:
        """Return the steps from the file to the array."""
        spec = card.input
        steps: list[Recipe] = [
            Read(choices[Stage.READ]),
            Resample(choices.get(Stage.RESAMPLE), spec.rate, spec.samples),
        ]
        if spec.features == "log_mel":
            steps += _spectrogram(profile, choices, card)
        how = settle("normalize", profile, choices, card).values
        steps.append(Normalize(sections.Normalize(**how), spec.layout))
        steps += constants.beside(spec.name, spec.constants)
        return [*steps, Chunks(spec.chunk)] if spec.chunk else steps

    def placing(self, profile: Profile, card: Any) -> Whole:
        """Return that there is nothing to say."""
        return Whole()

    def scale(self, profile: Profile, card: Any) -> Array:
        """Return how many decibels a difference of 1 in the input is; of waveforms, percent."""
        how = settle("normalize", profile, {}, card).values
        std = how["std"] if how["kind"] == "fixed" else 1.0
        if card.input.features == "waveform":
            return np.array([100.0 * std])
        kind = settle("log", profile, {}, card).values["kind"]
        return np.array([10 / PER_BEL[kind] * std])

    def levels_of(self, card: Any) -> str:
        """Return decibels, or percent where the network takes the waveform."""
        return "% of full scale" if card.input.features == "waveform" else self.levels

    def memory(self, source: Recording) -> int:
        """Return the bytes of one more waveform, which libraries need while they work."""
        return 8 * source.frames

    def sizes(self, source: Recording) -> dict[str, int]:
        """Return bytes, samples, milliseconds and rate of the file."""
        return {
            "bytes": len(source.data),
            "samples": source.frames,
            "milliseconds": round(1000 * source.frames / source.rate),
            "rate": source.rate,
        }

    def bands(self, value: Any, card: Any) -> Array | None:
        """Return the log-mel spectrogram; None where the network takes the waveform."""
        if card.input.features == "waveform":
            return None
        rows: Array = value.reshape(value.shape[-2:])
        return rows.T if card.input.layout.endswith("TM") else rows

    def axes(self, recipes: Sequence[Recipe]) -> Axes | None:
        """Return the peaks of the mel filters and the hop; None without a spectrogram."""
        hop = next((recipe.hop for recipe in recipes if isinstance(recipe, Stft)), None)
        mel = next((recipe for recipe in recipes if isinstance(recipe, Mel)), None)
        if hop is None or mel is None:
            return None
        corners = mel_corners(mel.fmin, mel.fmax, mel.n_mels, mel.choice.options["scale"])
        return Axes(tuple(corners[1:-1].tolist()), hop / mel.rate)


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
    return [
        Stft(transform.choice, *sizes, *before),
        Mel(
            mel.choice, spec.rate, spec.n_fft, spec.n_mels, float(mel.values["fmin"]), float(last),
            spec.frames,
        ),
        Log(sections.Log(**log.values)),
    ]  # fmt: skip


AUDIO = AudioModality()
