"""The sound sections of a profile: read, resample, stft, mel, log, normalize."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from simulator.profile.profile import Profile
from simulator.profile.schema import ProfileSpec
from simulator.profile.section import Above0, Finite, OpenSection, Section, refuse_misplaced

Model = Literal["model"]
Hertz = Annotated[float, Field(ge=0, le=384_000)]
NotBelow0 = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class Read(OpenSection):
    """How a file becomes a waveform."""

    width: Literal["file", "8", "16"] | None = Field(
        None, description="bits that the stack keeps of each sample: those of the file, or fewer"
    )
    scale: Literal["unit", "int16"] | None = Field(
        None, description="full scale of the numbers: 1, or 32768"
    )
    channels: Literal["mean", "first", "refuse"] | None = Field(
        None, description="what becomes of several channels"
    )


class Resample(OpenSection):
    """How a waveform takes the network's sample rate."""

    quality: str | None = Field(None, description="the filter, by the library's own name")


class Stft(OpenSection):
    """The conventions of the short-time Fourier transform; ``model``: as the model card says."""

    center: bool | Model | None = Field(
        None, description="pad by half a transform on both sides, so that frames are centred"
    )
    pad_mode: Literal["model", "reflect", "constant", "edge", "symmetric"] | None = Field(
        None, description="what is there beyond both ends"
    )
    window: Literal["model", "hann", "hamming", "povey", "none"] | None = None
    window_symmetry: Literal["model", "periodic", "symmetric"] | None = None
    scaling: Literal["model", "none", "window_sum", "window_power", "sqrt_n"] | None = Field(
        None, description="what the magnitudes are divided by"
    )
    frames: Literal["model", "whole", "padded", "every_hop", "touching", "rounded"] | None = Field(
        None,
        description="which frames there are at the end: whole ones; zeros until each sample is in "
        "one; one for each hop that begins in the sound; each that touches it; the number "
        "of hops, rounded",
    )
    power: Literal["model", 1, 2] | None = Field(None, description="1: magnitude; 2: power")
    pre_emphasis: Annotated[float, Field(ge=0, lt=1)] | Model = Field(
        description="the share of the sample before that is subtracted; 0: none"
    )
    dither: NotBelow0 | Model = Field(
        description="noise added before, its deviation in steps of 16 bits; 0: none"
    )


class Mel(OpenSection):
    """The mel filter bank; ``model``: as the model card says."""

    scale: Literal["model", "slaney", "htk"] | None = None
    norm: Literal["model", "slaney", "none"] | None = Field(
        None, description="slaney: each filter has the same area"
    )
    triangles: Literal["model", "hertz", "mel"] | None = Field(
        None, description="the axis on which the sides of a filter are straight"
    )
    fmin: Hertz | Model = Field(description="Hz; where the first filter begins")
    fmax: Hertz | Literal["model", "half_rate"] = Field(
        description="Hz; where the last filter ends"
    )


class Log(Section):
    """How power becomes a logarithm; ``model``: as the model card says."""

    kind: Literal["model", "ln", "log10", "db"] = Field(description="db: ten times log10")
    floor: Literal["model", "add", "max"] = Field(description="how 0 is avoided")
    value: Above0 | Model = Field(description="that is added, or the least power")
    top_db: Above0 | Literal["model", "none"] = Field(
        description="decibels below the clip's maximum, where values are cut; none: nowhere"
    )


class Normalize(Section):
    """How values become the network's numbers: minus a mean, divided by a deviation."""

    kind: Literal["model", "none", "fixed", "clip", "bands"] = Field(
        description="clip: those of the sample itself; bands: those of each of its bands"
    )
    mean: Finite | None = Field(None, description="kind fixed only")
    std: Above0 | None = Field(None, description="kind fixed only")
    epsilon: NotBelow0 | None = Field(
        None, description="added to the variance; kinds clip and bands only"
    )
    divide: bool | None = Field(
        None, description="by the deviation, too; kinds clip and bands only"
    )

    @model_validator(mode="after")
    def _fields_of_kind(self) -> Normalize:
        fields = {"fixed": {"mean", "std"}, "clip": {"epsilon", "divide"}}
        fields["bands"] = fields["clip"]
        refuse_misplaced(self, self.kind, fields.get(self.kind, ()))
        return self


class AudioSpec(ProfileSpec):
    """A stack that takes sounds.

    ``resample: null`` refuses sounds of another rate. ``stft``, ``mel`` and ``log`` are null in a
    stack for networks that take the waveform.
    """

    read: Read
    resample: Resample | None = None
    stft: Stft | None = None
    mel: Mel | None = None
    log: Log | None = None
    normalize: Normalize

    @model_validator(mode="after")
    def _together(self) -> AudioSpec:
        there = [name for name in ("stft", "mel", "log") if getattr(self, name) is not None]
        if there and len(there) < 3:
            raise ValueError("stft, mel and log are all there, or none is")
        return self


def audio_spec(profile: Profile) -> AudioSpec:
    """Return the content of a profile, typed as that of a profile for sounds."""
    assert isinstance(profile.spec, AudioSpec), f"{profile.name} takes no sounds"
    return profile.spec
