"""The output section of a card of speech synthesis."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, model_validator

from simulator.modalities.audio.card import Trained
from simulator.profile.section import Section
from simulator.tasks.text_to_speech.neural import NeuralVocoder
from simulator.tasks.text_to_speech.spectrogram import Spectrogram


class Output(Section):
    """What the network gives.

    Attributes:
        rate: samples a second.
        waveform: the output with the samples, full scale -1 to 1; None: the first one.
        durations: the output with the length of each phoneme in frames, where there is one.
        spectrogram: the outputs of which the stack makes the waveform, in place of one; None: the
            network gives a waveform.
        vocoder: how the card's second network makes a waveform of it; None: there is none.
        trained: the conventions of the spectrogram in training.
    """

    rate: Annotated[int, Field(ge=1)]
    waveform: str | None = None
    durations: str | None = None
    spectrogram: Spectrogram | None = None
    vocoder: NeuralVocoder | None = None
    trained: Trained = Trained()

    @model_validator(mode="after")
    def _one_of_both(self) -> Self:
        if self.spectrogram and self.waveform:
            raise ValueError("waveform and spectrogram: one of both")
        if self.spectrogram:
            self.spectrogram.check_trained(self.trained)
        if self.vocoder and (self.spectrogram is None or self.spectrogram.features != "log_mel"):
            raise ValueError("vocoder: it needs a spectrogram of features log_mel")
        if self.vocoder and self.vocoder.spectrogram:
            self.vocoder.spectrogram.check_trained(self.trained)
        return self

    @property
    def own(self) -> tuple[str, ...]:
        """The outputs that are read of the network that takes the text."""
        spectrogram = self.spectrogram.outputs if self.spectrogram else ()
        return tuple(name for name in (self.waveform, self.durations, *spectrogram) if name)
