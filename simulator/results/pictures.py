"""What a pair's summary has of the samples that its page shows, each kind by its own model."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag

from simulator.typed import Pixels, ResultModel


class Picture(ResultModel, extra="allow"):
    """One sample under both stacks; what else is told of it is its kind's own."""

    kind: str = Field(description="as the modality or the task names what it shows")
    sample: str
    why: str = Field(description="why this sample was chosen")
    notes: list[str] = Field(description="what could not be shown, and why")


class Difference(ResultModel):
    """Two inputs of a network compared, in levels of 0-255."""

    values_changed: float = Field(description="share of values that differ")
    mean: float | None = Field(description="mean absolute difference")
    max: float | None = Field(description="largest absolute difference")


class AxisPicture(ResultModel):
    """The network's input with one axis swapped alone into the training stack."""

    picture: str = Field(description="path below the run folder")
    values_changed: float | None = Field(default=None, description="share of values that differ")
    mean: float | None = Field(default=None, description="mean difference, levels of 0-255")
    max: float | None = Field(default=None, description="largest difference, levels of 0-255")


class FeatureMap(ResultModel):
    """What a layer makes of one image, with an axis of the network swapped alone."""

    axis: str
    node: str = Field(description="name of the node")
    first: bool = Field(description="whether it is the first map that the axis can change")
    by: str = Field(description="the runtimes that ran both networks")
    train: str = Field(description="path of a picture: the mean over the channels")
    deploy: str = Field(description="likewise")
    picture: str = Field(description="path of a picture of the difference")
    train_size: Pixels
    deploy_size: Pixels
    window: Pixels | None = Field(description="what the pictures show; None: everything")
    low: float | None = Field(description="what is black in the means")
    high: float | None = Field(description="what is white in the means")
    peak: float | None = Field(description="what is white in the difference")
    values_changed: float = Field(description="share of values that differ")
    mean: float | None = Field(description="mean absolute difference")
    max: float | None = Field(description="largest absolute difference")


class Look(Picture, extra="forbid"):
    """One image as the networks saw it; paths are below the run folder, None: no such picture."""

    kind: Literal["image"] = "image"
    picture: str | None = Field(description="the image as a stack decoded it, made smaller")
    scale: int | None = Field(description="of how many pixels, each way, a shown one is the mean")
    size: Pixels = Field(description="of the network's input")
    window: Pixels | None = Field(description="the middle that is kept; None: everything")
    train: str | None = Field(description="the network's input on the training stack, 8 bits")
    deploy: str | None = Field(description="likewise")
    difference: Difference | None = Field(description="of the two, in floating point")
    axes: dict[str, AxisPicture] = Field(description="each axis swapped alone")
    maps: list[FeatureMap]
    missing: list[str] = Field(description="what no image of the run has, and why")


class SoundSide(ResultModel):
    """One stack's sound; paths are below the run folder."""

    sound: str = Field(description="path of a WAV file: a part of it, of 16 kHz at most")
    picture: str = Field(description="path of its spectrogram, low bands at the bottom")
    seconds: float = Field(description="length of the whole sound")
    rate: int = Field(description="samples a second of the whole sound")
    bands: int = Field(description="rows of the spectrogram")
    frames: int = Field(description="columns of the spectrogram")
    hertz: list[float] = Field(
        default_factory=list,
        description="center of each band, the lowest first; empty where it is not known",
    )
    hop: float | None = Field(
        default=None, description="seconds from one frame to the next; None where it is not known"
    )


class SoundLook(Picture, extra="forbid"):
    """One sound under both stacks, as the networks heard or said it."""

    kind: Literal["sound"] = "sound"
    train: SoundSide | None = Field(default=None, description="None where it could not be kept")
    deploy: SoundSide | None = Field(default=None, description="likewise")
    own: bool = Field(
        default=False,
        description="whether the spectrograms are the network's inputs; else both are log-mel "
        "spectrograms made for the picture",
    )
    difference: str | None = Field(
        default=None, description="path of a picture: deploy less train, red is more"
    )
    mean: float | None = Field(default=None, description="mean absolute difference, of a cell")
    peak: float | None = Field(default=None, description="largest one: full red or full blue")
    start: float = Field(default=0.0, description="seconds before the part that is played")


def _kind(value: Any) -> str:
    """The model of a picture: ours by its kind, and an open one for those of other packages."""
    kind = value.get("kind") if isinstance(value, dict) else value.kind
    return str(kind) if kind in ("image", "sound") else "other"


def _open(schema: dict[str, Any]) -> None:
    """Say that a picture may fit the open model as well."""
    schema["anyOf"] = schema.pop("oneOf")


AnyPicture = Annotated[
    Annotated[Look, Tag("image")]
    | Annotated[SoundLook, Tag("sound")]
    | Annotated[Picture, Tag("other")],
    Discriminator(_kind),
    Field(json_schema_extra=_open),
]
