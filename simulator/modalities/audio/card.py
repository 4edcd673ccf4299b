"""The model card of a network that takes sounds, and the conventions of a stack for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field, model_validator

from simulator.contract import Options, Stage
from simulator.errors import ModelError, UserError
from simulator.modalities.audio.headers import MAX_SAMPLES, RATES
from simulator.modalities.audio.sections import Hertz, Normalize, NotBelow0, audio_spec
from simulator.modalities.audio.stages import MODEL
from simulator.modalities.card import CardInput, CardSpec
from simulator.modalities.constants import Constant
from simulator.profile.implementations import Choice, Choices, settled
from simulator.profile.profile import Profile
from simulator.profile.section import Above0, Section

Size = Annotated[int, Field(ge=1, le=65536)]


class AudioInput(CardInput):
    """The array that the network takes.

    ``layout`` has a letter for each axis: N is the batch of 1, C a channel of 1, S the samples, M
    the mel bands, T the frames. ``samples`` is the length to which every sound is cut or padded
    with silence at its end; ``frames`` that of the spectrogram; null: as long as the sound is.
    ``constants`` are further inputs, the same for every sound; ``name`` is then that of the array.
    """

    kind: Literal["audio"] = "audio"
    features: Literal["waveform", "log_mel"]
    rate: Annotated[int, Field(ge=RATES[0], le=RATES[1])]
    layout: Literal["NS", "NCS", "NMT", "NTM", "NCMT", "NCTM"]
    samples: Annotated[int, Field(ge=1, le=MAX_SAMPLES)] | None = None
    frames: Size | None = None
    n_fft: Annotated[int, Field(ge=2, le=65536)] | None = None
    win_length: Size | None = None
    hop: Size | None = None
    n_mels: Annotated[int, Field(ge=1, le=4096)] | None = None
    fmin: Hertz | None = None
    fmax: Hertz | None = None
    chunk: Chunk | None = None
    name: str | None = None
    constants: Mapping[str, Constant] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _sizes_of_features(self) -> AudioInput:
        sizes = ("n_fft", "win_length", "hop", "n_mels", "fmin", "fmax")
        missing = [name for name in sizes if getattr(self, name) is None]
        waveform = self.features == "waveform"
        if not waveform and missing:
            raise ValueError(f"features log_mel needs {', '.join(missing)}")
        if waveform and (len(missing) < len(sizes) or self.frames):
            raise ValueError(f"features waveform has no {', '.join(sizes)}, frames")
        if self.chunk and (not waveform or self.layout != "NS" or self.samples):
            raise ValueError("a chunk needs features waveform, layout NS, and no samples")
        if (self.name is None) != (not self.constants) or (self.chunk and self.name):
            raise ValueError("name and constants: both, or neither; a chunk has its own")
        if waveform != ("S" in self.layout):
            raise ValueError(f"features {self.features} does not fit layout {self.layout}")
        if not waveform:
            self._check_sizes()
        return self

    def _check_sizes(self) -> None:
        assert self.win_length and self.n_fft
        assert self.fmin is not None and self.fmax is not None
        if self.win_length > self.n_fft:
            raise ValueError("win_length is at most n_fft")
        if not self.fmin < self.fmax <= self.rate / 2:
            raise ValueError(f"fmin is below fmax, which is at most {self.rate / 2:g}")


class Carried(Section):
    """An input that the network gives back, for the chunk after.

    Attributes:
        output: its new value.
        shape: of the zeros that it begins with, float32.
    """

    output: str
    shape: Annotated[list[Size], Field(min_length=1)]


class Chunk(Section):
    """A waveform that the network takes in chunks, one inference each.

    The last chunk is filled with silence, and so is the context of the first one.

    Attributes:
        size: samples of each chunk.
        context: samples before it that the network takes as well.
        input: the name of the input with both.
        carried: inputs that the network gives back, by name.
        constants: further inputs, each a whole number without axes (int64).
    """

    size: Size
    context: Annotated[int, Field(ge=0, le=65536)]
    input: str
    carried: Mapping[str, Carried] = Field(default_factory=dict)
    constants: Mapping[str, int] = Field(default_factory=dict)


class TrainedStft(Section):
    """The transform's conventions in training; see :class:`.sections.Stft`."""

    center: bool
    pad_mode: Literal["reflect", "constant", "edge", "symmetric"] | None = None
    window: Literal["hann", "hamming", "povey", "none"]
    window_symmetry: Literal["periodic", "symmetric"] | None = None
    scaling: Literal["none", "window_sum", "window_power", "sqrt_n"]
    frames: Literal["whole", "padded", "every_hop", "touching", "rounded"]
    power: Literal[1, 2]
    pre_emphasis: Annotated[float, Field(ge=0, lt=1)] = 0.0
    dither: NotBelow0 = 0.0


class TrainedMel(Section):
    """The filter bank's conventions in training."""

    scale: Literal["slaney", "htk"]
    norm: Literal["slaney", "none"]
    triangles: Literal["hertz", "mel"] = "hertz"


class TrainedLog(Section):
    """The logarithm in training; see :class:`.sections.Log`."""

    kind: Literal["ln", "log10", "db"]
    floor: Literal["add", "max"]
    value: Above0
    top_db: Above0 | Literal["none"] = "none"


class TrainedNormalize(Normalize):
    """The normalization in training; see :class:`.sections.Normalize`."""

    kind: Literal["none", "fixed", "clip", "bands"]


class Trained(Section):
    """The conventions that the network was trained with; a profile's ``model`` means these."""

    stft: TrainedStft | None = None
    mel: TrainedMel | None = None
    log: TrainedLog | None = None
    normalize: TrainedNormalize | None = None


class AudioCard(CardSpec):
    """The card of a network that takes sounds."""

    input: AudioInput
    trained: Trained = Trained()


def input_shape(spec: AudioInput) -> tuple[int | None, ...]:
    """Return the shape of one sample's input; None for an axis as long as the sound."""
    sides = {"N": 1, "C": 1, "S": spec.samples, "M": spec.n_mels, "T": spec.frames}
    return tuple(sides[axis] for axis in spec.layout)


@dataclass(frozen=True, slots=True)
class Settled:
    """One section without the word ``model``.

    Attributes:
        values: of its fields.
        choice: its implementation; None for a section that names no backend.
    """

    values: Options
    choice: Choice | None = None


def settle(section: str, profile: Profile, choices: Choices, card: AudioCard) -> Settled:
    """Return a section of a profile with the card's values where the profile says ``model``.

    Args:
        section: ``stft``, ``mel``, ``log`` or ``normalize``.
        profile: the stack.
        choices: its implementations.
        card: the model card.

    Raises:
        ModelError: the profile lacks the section; the card says nothing of it, and the profile
            ``model``; or the backend does not offer what the card says.
    """
    asked = getattr(audio_spec(profile), section)
    if asked is None:
        raise ModelError(
            f"{profile.name}: {section} is null, but {card.name} takes {card.input.features}"
        )
    written = asked.model_dump(exclude={"backend"})
    values = dict(written)
    for name in (name for name, value in written.items() if value == MODEL):
        values |= _of_card(section, name, profile, card)
    if section not in choices:
        return Settled(values)
    choice = choices[section]
    new = {name: values[name] for name, value in choice.options.items() if value == MODEL}
    try:
        return Settled(values, settled(choice, new) if new else choice)
    except UserError as error:
        where = profile.where((section, "backend"))
        raise ModelError(f"{where}: {section}: as {card.name} was trained: {error}") from error


def _of_card(section: str, name: str, profile: Profile, card: AudioCard) -> Options:
    """Return the card's value of a field; of a whole section where its ``kind`` says it all."""
    if section == Stage.MEL and name in ("fmin", "fmax"):
        return {name: getattr(card.input, name)}
    trained = getattr(card.trained, section)
    if trained is None:
        where = profile.where((section, name))
        raise ModelError(
            f"{where}: {section}.{name}: model, but the card of {card.name} does not say it; "
            f"write trained.{section} in the card, or a value in the profile"
        )
    found = trained.model_dump()
    return found if section == "normalize" else {name: found[name]}
