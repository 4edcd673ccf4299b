"""Sounds: WAV, FLAC, MP3 and OGG files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from simulator.contract import Array, Recording
from simulator.contract.recipe import Recipe
from simulator.modalities.audio import chunks, front_end
from simulator.modalities.audio.card import AudioCard, input_shape
from simulator.modalities.audio.headers import SUFFIXES, read_sound
from simulator.modalities.audio.sections import AudioSpec
from simulator.modalities.modality import Axes, Feed, Modality
from simulator.places import Where
from simulator.profile.implementations import Choices
from simulator.profile.profile import Profile


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
    sounds = "resample"
    length = "milliseconds"
    levels = "dB"
    Spec = AudioSpec
    Card = AudioCard
    tried_with = "simulator.testing.audio_specimen:write"

    def read(self, name: str, path: Where) -> Recording:
        """Read one sound file and check its header."""
        return read_sound(name, path)

    def feeds(self, card: Any) -> tuple[Feed, ...]:
        """Return the one float32 array of the card's layout."""
        spec = card.input
        if spec.chunk:
            return chunks.feeds(spec.chunk)
        return (Feed(None, np.dtype(np.float32), input_shape(spec), spec.layout),)

    def front_end(self, profile: Profile, choices: Choices, card: Any) -> list[Recipe]:
        """Return the steps from the file to the array."""
        return front_end.front_end(profile, choices, card)

    def placing(self, profile: Profile, card: Any) -> Whole:
        """Return that there is nothing to say."""
        return Whole()

    def scale(self, profile: Profile, card: Any) -> Array:
        """Return how many decibels a difference of 1 in the input is."""
        return np.array([front_end.decibels(profile, card)])

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
        return front_end.axes(recipes)


AUDIO = AudioModality()
