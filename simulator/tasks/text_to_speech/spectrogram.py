"""Networks that speak in spectrograms: their cards, and how a stack makes waveforms of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NamedTuple, Self

import numpy as np
from pydantic import Field, model_validator
from scipy.optimize import nnls

from simulator.contract import Array
from simulator.errors import ModelError, UserError
from simulator.modalities.audio.card import Size, Trained
from simulator.modalities.audio.sections import Hertz
from simulator.modalities.audio.stages import MODEL
from simulator.modalities.text.sections import Vocoder, text_spec
from simulator.profile.implementations import Choice, Choices, settled
from simulator.profile.profile import Profile
from simulator.profile.section import Section
from simulator.reference.sound import mel_filters
from simulator.tasks.finite import check_finite, output_of

Outputs = Mapping[str, Array]
WAVEFORM = "vocoder's waveform"
"""The name of what a vocoder makes, among the outputs of a network."""
_BASES = {"ln": np.e, "log10": 10.0, "db": 10**0.1}


class Spectrogram(Section):
    """What the network says of a sound, and the transform that it stands for.

    Attributes:
        outputs: log_mel: one; complex: the real and the imaginary part; polar: the magnitude and
            the phase in radians.
        features: what they are.
        layout: M are mel bands or frequencies, T frames.
        n_fft: length of the transform.
        win_length: of its window.
        hop: samples from one frame to the next.
        n_mels: bands, of log_mel; with fmin and fmax, in Hz.
        fmin: where the first begins.
        fmax: where the last one ends.
    """

    outputs: Annotated[list[str], Field(min_length=1, max_length=2)]
    features: Literal["log_mel", "complex", "polar"]
    layout: Literal["NMT", "NTM"]
    n_fft: Annotated[int, Field(ge=2, le=65536)]
    win_length: Size
    hop: Size
    n_mels: Annotated[int, Field(ge=1, le=4096)] | None = None
    fmin: Hertz | None = None
    fmax: Hertz | None = None

    @model_validator(mode="after")
    def _fit(self) -> Self:
        of_mels = self.features == "log_mel"
        if len(self.outputs) != (1 if of_mels else 2):
            raise ValueError(f"features {self.features} has {1 if of_mels else 2} outputs")
        fields = (self.n_mels, self.fmin, self.fmax)
        if any((value is None) == of_mels for value in fields):
            needs = "needs" if of_mels else "has no"
            raise ValueError(f"features {self.features} {needs} n_mels, fmin, fmax")
        if self.win_length > self.n_fft:
            raise ValueError("win_length is at most n_fft")
        return self

    def check_trained(self, trained: Trained) -> None:
        """Refuse a card that does not say the conventions of its spectrogram; ValueError."""
        wanted = ("stft", "mel", "log") if self.features == "log_mel" else ("stft",)
        if missing := [name for name in wanted if getattr(trained, name) is None]:
            raise ValueError(f"features {self.features} needs trained.{', trained.'.join(missing)}")

    def values(self, outputs: Outputs) -> tuple[Array, ...]:
        """Return each output as (bands or bins, frames).

        Raises:
            ModelError: one has another shape, or a type that is no float.
            NotFinite: one has NaN or an infinity.
        """
        rows = self.n_mels or self.n_fft // 2 + 1
        found = []
        for name in self.outputs:
            _, array = output_of(outputs, name)
            axis = -2 if self.layout == "NMT" else -1
            fits = array.ndim > 1 and array.size == np.prod(array.shape[-2:])
            if not fits or array.shape[axis] != rows or array.dtype.kind != "f":
                raise ModelError(
                    f"output {name!r}: {self.layout} floats with M = {rows} expected, "
                    f"got {array.dtype} {array.shape}"
                )
            check_finite(array, f" in output {name!r}")
            one = array.reshape(array.shape[-2:])
            found.append(one.T if axis == -1 else one)
        return tuple(found)


class Bands(NamedTuple):
    """The mel bands that a stack assumes, and how it leaves them.

    Attributes:
        scale: of the frequencies.
        norm: of the triangles.
        triangles: what they are straight in: hertz or mel.
        inverse: how magnitudes of frequencies are found.
    """

    scale: str
    norm: str
    triangles: str
    inverse: str


@dataclass(frozen=True)
class Vocoding:
    """The step from a network's spectrogram to a waveform; plain data.

    Attributes:
        choice: the vocoder, its options without the word ``model``.
        spectrogram: of the card.
        trained: its conventions in training.
        mel: its bands; None where the network gives frequencies.
        rate: samples a second.
    """

    choice: Choice
    spectrogram: Spectrogram
    trained: Trained
    mel: Bands | None
    rate: int
    stage = "vocode"

    def identity(self) -> Any:
        """Return the vocoder, and what it is fed with."""
        made = [self.spectrogram.model_dump(), self.trained.model_dump(mode="json")]
        return [self.choice.identity(), *made, self.mel, self.rate]

    def open(self) -> Callable[[Outputs], Outputs]:
        """Build the vocoder; return what adds :data:`WAVEFORM` to a network's outputs."""
        made, asked = self.choice.make(), self.spectrogram
        spectrum = self._frequencies() if self.mel else self._complex

        def apply(outputs: Outputs) -> Outputs:
            found = spectrum(*asked.values(outputs))
            wave = made.wave(found, asked.n_fft, asked.win_length, asked.hop)
            return {**outputs, WAVEFORM: wave}

        return apply

    def _complex(self, first: Array, second: Array) -> Array:
        if self.spectrogram.features == "complex":
            found: Array = (first + 1j * second.astype(np.complex64)).astype(np.complex64)
        else:
            found = (first * np.exp(1j * second)).astype(np.complex64)
        return found

    def _frequencies(self) -> Callable[[Array], Array]:
        """Return what makes (bins, frames) magnitudes of (bands, frames) logarithms."""
        assert self.mel and self.trained.log and self.trained.stft
        asked, mel = self.spectrogram, self.mel
        assert asked.n_mels and asked.fmin is not None and asked.fmax is not None
        band = asked.fmin, asked.fmax
        bank = mel_filters(self.rate, asked.n_fft, asked.n_mels, band, *mel[:3])
        base, root = _BASES[self.trained.log.kind], self.trained.stft.power
        back = np.linalg.pinv(bank)

        def apply(mels: Array) -> Array:
            bands = np.power(base, mels.astype(np.float64))
            if mel.inverse == "pinv":
                found: Array = np.maximum(back @ bands, 0)
            else:
                found = np.stack([nnls(bank, frame)[0] for frame in bands.T], axis=1)
            made: Array = (found ** (1 / root)).astype(np.float32)
            return made

        return apply


def vocoding(
    profile: Profile, choices: Choices, spectrogram: Spectrogram | None, trained: Trained, rate: int
) -> Vocoding | None:
    """Return the step from a network's spectrogram to a waveform; None where it gives a waveform.

    Args:
        profile: the stack.
        choices: its implementations.
        spectrogram: of the card; None where the network gives a waveform.
        trained: the card's conventions.
        rate: samples a second.

    Raises:
        ModelError: the profile's vocoder does not fit the network.
    """
    asked, where = text_spec(profile).vocoder, profile.where(("vocoder",))
    if spectrogram is None and asked is None:
        return None
    if spectrogram is None:
        raise ModelError(f"{where}: vocoder: the network gives a waveform; write vocoder: null")
    wanted = "griffin_lim" if spectrogram.features == "log_mel" else "istft"
    if asked is None:
        raise ModelError(
            f"{profile.name} has no vocoder, and the network gives a spectrogram "
            f"({spectrogram.features}); write a section vocoder, as in {wanted}_fp32"
        )
    if asked.method != wanted:
        raise ModelError(
            f"{where}: vocoder.method: {asked.method}, but the network gives {spectrogram.features}"
            f"; write method: {wanted}"
        )
    return Vocoding(
        _settled(choices["vocode"], trained, where), spectrogram, trained,
        _mel(asked, trained, where) if wanted == "griffin_lim" else None, rate,
    )  # fmt: skip


def _settled(choice: Choice, trained: Trained, where: str) -> Choice:
    """The vocoder with the card's conventions where the profile says ``model``."""
    known = trained.stft.model_dump() if trained.stft else {}
    new = {name: known[name] for name, value in choice.options.items() if value == MODEL}
    try:
        return settled(choice, new) if new else choice
    except UserError as error:
        raise ModelError(f"{where}: vocoder: as the network was trained: {error}") from error


def _mel(asked: Vocoder, trained: Trained, where: str) -> Bands:
    """The bands of a stack."""
    assert trained.mel is not None
    own = {"mel_scale": trained.mel.scale, "mel_norm": trained.mel.norm}
    found = {name: getattr(asked, name) for name in (*own, "mel_inverse")}
    if missing := [name for name, value in found.items() if value is None]:
        raise ModelError(f"{where}: vocoder: the network gives mel bands; write {missing[0]}")
    scale, norm = (own[name] if found[name] == MODEL else found[name] for name in own)
    return Bands(scale, norm, trained.mel.triangles, found["mel_inverse"])
