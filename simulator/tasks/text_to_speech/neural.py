"""Vocoders that are networks: the second one of a card speaks what the first one gives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
from pydantic import model_validator

from simulator.contract import Array
from simulator.contract.model import Port, of_shape, shape_words
from simulator.errors import ModelError, unknown
from simulator.profile.section import Section
from simulator.tasks.text_to_speech.spectrogram import Outputs, Spectrogram


class NeuralVocoder(Section):
    """What a card's second network makes of the mel bands of the first.

    Attributes:
        input: its input, (1, M, T) or (1, T, M) float32: the first network's output.
        layout: of it; the first network's is transposed where it differs.
        waveform: the output with the samples.
        spectrogram: its outputs in place of a waveform, as Vocos gives them; never mel bands.
    """

    input: str
    layout: Literal["NMT", "NTM"]
    waveform: str | None = None
    spectrogram: Spectrogram | None = None

    @model_validator(mode="after")
    def _one_of_both(self) -> Self:
        if (self.waveform is None) == (self.spectrogram is None):
            raise ValueError("waveform or spectrogram: one of both")
        if self.spectrogram and self.spectrogram.features == "log_mel":
            raise ValueError("spectrogram.features: complex or polar; the second network speaks")
        return self

    def outputs(self) -> tuple[str, ...]:
        """Return the names of the outputs that are read."""
        spoken = self.spectrogram.outputs if self.spectrogram else [self.waveform]
        return tuple(name for name in spoken if name)

    def check(self, bands: int | None, inputs: Mapping[str, Port]) -> None:
        """Refuse a second network that takes anything but the bands of the first; ModelError."""
        if self.input not in inputs:
            raise ModelError(f"vocoder.input: {unknown('input', self.input, inputs)}")
        if more := sorted(set(inputs) - {self.input}):
            raise ModelError(f"the second network's input {more[0]!r} is fed by nothing")
        port, maps = inputs[self.input], self.layout == "NMT"
        wanted = (1, bands if maps else None, None if maps else bands)
        if not of_shape(wanted, port.shape) or port.dtype != np.float32:
            raise ModelError(
                f"the second network's input {self.input!r}: expected float32 "
                f"{shape_words(wanted)}, got {port.dtype} {shape_words(port.shape)}"
            )


@dataclass(frozen=True, slots=True)
class Speaking:
    """Passes mel bands on to the second network.

    Attributes:
        vocoder: the card's section.
        mel: what the first network gives.
        kept: its outputs that are compared.
    """

    vocoder: NeuralVocoder
    mel: Spectrogram
    kept: tuple[str, ...]

    def identity(self) -> Any:
        """Return both sections."""
        return [self.vocoder.model_dump(), self.mel.model_dump(), list(self.kept)]

    def feeds(self, outputs: Outputs | tuple[Outputs, ...], placement: Any) -> Any:
        """Return the second network's input of each sentence, beside what is kept.

        Raises:
            NotFinite: the network gave NaN or an infinity.
        """
        if isinstance(outputs, tuple):
            return tuple(self.feeds(one, placement) for one in outputs)
        (bands,) = self.mel.values(outputs)
        given: Array = bands if self.vocoder.layout == "NMT" else bands.T
        return {**outputs, self.vocoder.input: np.ascontiguousarray(given[None], np.float32)}
