"""A segmenter's part of the model card, and its settings: the card's unless a profile differs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Literal

from pydantic import field_validator, model_validator

from simulator.errors import ModelError, unknown
from simulator.modalities.image.geometry import Placement
from simulator.profile.postprocess import LogitsUpsample, MaskResize, Postprocess, Unletterbox
from simulator.profile.section import Positive, Section
from simulator.tasks.image_task import merged

MAX_CLASSES = 255
"""A mask is uint8, and 255 in it means no class."""
Sides = tuple[int, int]
_NO_BILINEAR = "labels can only be resized by nearest, got bilinear"


class SegmentationOutput(Section):
    """The ``output`` section of a segmenter's card: what ``model`` in a profile refers to.

    ``scores`` names the output. ``labels``: the argmax is inside the model, and the output is
    (1, H, W), (1, 1, H, W) or (1, H, W, 1). Its classes are those of the label file, in its order,
    including the background. ``output_stride`` says at which resolution classes are chosen: the
    sides of the network's input divided by it, rounded up. ``logits_upsample`` is left out where
    the output has that resolution already.
    """

    scores: str
    kind: Literal["logits", "probabilities", "labels"]
    layout: Literal["NCHW", "NHWC"] = "NCHW"
    logits_upsample: LogitsUpsample | None = None
    argmax: Literal["before", "after"] | None = None
    output_stride: Positive
    mask_resize: MaskResize
    unletterbox: Unletterbox = Unletterbox(scale="resized", offset="integer")

    @field_validator("logits_upsample", "mask_resize", "unletterbox", mode="after")
    @classmethod
    def _no_model(cls, value: Section | None) -> Section | None:
        left = [
            key for key, said in (value.model_dump() if value else {}).items() if said == "model"
        ]
        if left:
            raise ValueError(f"the card must say {', '.join(left)}; 'model' is for profiles")
        return value

    @model_validator(mode="after")
    def _possible(self) -> SegmentationOutput:
        inside, upsample, resize = self.kind == "labels", self.logits_upsample, self.mask_resize
        if inside == (self.argmax is not None):
            raise ValueError(
                "argmax: a model that gives labels has it inside; leave it out"
                if inside
                else "argmax is missing: before, or after, the logits are upsampled"
            )
        if inside or self.argmax == "before":
            if upsample and upsample.mode == "bilinear":
                raise ValueError(f"logits_upsample.mode: {_NO_BILINEAR}")
            if resize.of == "logits":
                raise ValueError(
                    "mask_resize.of: classes have been chosen before; it can only be of labels"
                )
        if resize.of == "labels" and resize.mode == "bilinear":
            raise ValueError(f"mask_resize.mode: {_NO_BILINEAR}")
        return self


@dataclass(frozen=True, slots=True)
class Sampling:
    """How values between pixels are computed.

    Attributes:
        mode: ``nearest`` or ``bilinear``.
        coordinates: ``half_pixel``, ``align_corners`` or ``asymmetric``.
    """

    mode: str
    coordinates: str


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything between a segmenter's output and its mask, with every choice made.

    Attributes:
        scores: name of the output.
        kind: ``logits``, ``probabilities`` or ``labels``.
        layout: ``NCHW`` or ``NHWC``; of labels always ``NCHW``, as it does not matter.
        network: rows and columns of the network's input; None where images differ.
        stride: what they are divided by, rounded up, where classes are chosen.
        upsample: from the output to ``size``; None where the output must have it already. Of
            labels, and of scores that an argmax comes before, by nearest.
        resize: from ``size`` to the image.
        resized: ``labels``, or ``logits`` where classes are only chosen in the image.
        scale: of unletterbox, ``resized`` or ``ratio``.
        padding: of unletterbox, ``integer`` or ``exact``.
    """

    scores: str
    kind: str
    layout: str
    network: Sides | None
    stride: int
    upsample: Sampling | None
    resize: Sampling
    resized: str
    scale: str
    padding: str

    @property
    def size(self) -> Sides:
        """Rows and columns at which classes are chosen, once those of the input are known."""
        assert self.network is not None
        return _size(self.network, self.stride)

    def at(self, placement: Placement) -> Settings:
        """Return the settings for the size that the network's input has for an image."""
        network = placement.network_height, placement.network_width
        return self if network == self.network else replace(self, network=network)

    def identity(self) -> dict[str, object]:
        """Return every choice; JSON."""
        if self.network is None:
            return asdict(self)
        found = {**asdict(self), "network": list(self.network), "size": list(self.size)}
        del found["stride"]
        return found


def resolve(output: SegmentationOutput, asked: Postprocess, network: Sides | None) -> Settings:
    """Return the card's choices with those of the profile in their place.

    Where classes are chosen early, the later steps have labels and no logits: these are resized by
    nearest, in the chosen coordinates, whatever is said of logits. So each of these axes can be
    swapped alone.

    Args:
        output: the card.
        asked: the profile; ``model`` leaves the card's value.
        network: rows and columns of the network's input; None where images differ.

    Raises:
        ModelError: the profile asks for what this model cannot do.
    """
    inside = output.kind == "labels"
    argmax = asked.argmax if asked.argmax != "model" else output.argmax
    upsample = merged(output.logits_upsample, asked.logits_upsample)
    resize = merged(output.mask_resize, asked.mask_resize)
    unletterbox = merged(output.unletterbox, asked.unletterbox)
    stride = output.output_stride if asked.output_stride == "model" else asked.output_stride
    if inside and asked.argmax == "after":
        raise ModelError(
            f"postprocess.argmax: after: output {output.scores!r} holds labels, its argmax is"
            " inside the model; leave it at `model`"
        )
    if inside and asked.mask_resize.of == "logits":
        raise ModelError(
            f"postprocess.mask_resize.of: logits: output {output.scores!r} holds labels; leave it"
            " at `model`"
        )
    if resize["of"] == "labels" and resize["mode"] == "bilinear":
        raise ModelError(
            f"postprocess.mask_resize: {_NO_BILINEAR}; write `mode: nearest`, or `of: logits`"
        )
    early = inside or argmax == "before"
    return Settings(
        scores=output.scores,
        kind=output.kind,
        layout="NCHW" if inside else output.layout,
        network=network,
        stride=stride,
        upsample=_sampling(upsample, early) if "model" not in upsample.values() else None,
        resize=_sampling(resize, early),
        resized="labels" if early else resize["of"],
        scale=unletterbox["scale"],
        padding=unletterbox["offset"],
    )


def check(
    output: SegmentationOutput,
    ports: Mapping[str, Sequence[int | None]],
    network: Sides | None,
    classes: int | None,
) -> None:
    """Compare a model's outputs with its card.

    Args:
        output: the card.
        ports: the shape of each output; None is a side of any length.
        network: rows and columns of the network's input; None where images differ.
        classes: how many labels there are; None where there is no label file.

    Raises:
        ModelError: naming the output, what was expected and what it is.
    """
    name = output.scores
    if name not in ports:
        raise ModelError(unknown("output", name, ports))
    shape, labels = tuple(ports[name]), output.kind == "labels"
    channel, *sides = places(name, shape, output.kind, output.layout)
    if not labels:
        got, other = shape[channel], shape[3 if channel == 1 else 1]
        hint = f"; is its layout {_OTHER[output.layout]}?" if other == classes else ""
        if classes is not None and got not in (classes, None):
            raise ModelError(
                f"output {name!r}: {classes} labels, and {got} channels of {show(shape)} as"
                f" {output.layout}{hint}"
            )
        if got is not None:
            check_count(name, got)
    if network is None:
        return
    wanted = _size(network, output.output_stride)
    found = tuple(shape[side] for side in sides)
    fits = all(a in (b, None) for a, b in zip(found, wanted, strict=True))
    if output.logits_upsample is None and not fits:
        raise ModelError(
            f"output {name!r}: expected {wanted[0]}x{wanted[1]}, where classes are chosen (the"
            f" network's input by output_stride {output.output_stride}), got {show(found)}; to"
            " upsample it, write logits_upsample in the card"
        )


def places(name: str, shape: Sequence[int | None], kind: str, layout: str) -> tuple[int, int, int]:
    """Return which dimensions of an output are its channels, rows and columns.

    Labels have no channels; their first number is 0.

    Raises:
        ModelError: it has other dimensions.
    """
    batch, *rest = shape or (0,)
    if batch in (1, None):
        if kind == "labels" and len(rest) == 2:
            return 0, 1, 2
        if kind == "labels" and len(rest) == 3 and rest[0] == 1:
            return 0, 2, 3
        if kind == "labels" and len(rest) == 3 and rest[2] == 1:
            return 0, 1, 2
        if kind != "labels" and len(rest) == 3:
            return (1, 2, 3) if layout == "NCHW" else (3, 1, 2)
    expected = {"NCHW": "(1, C, H, W)", "NHWC": "(1, H, W, C)"}[layout]
    if kind == "labels":
        expected = "(1, H, W), (1, 1, H, W) or (1, H, W, 1)"
    raise ModelError(f"output {name!r}: {kind} are {expected}, got {show(shape)}")


def check_count(name: str, classes: int) -> None:
    """Refuse an output with fewer than two classes, or too many for a mask.

    Raises:
        ModelError: naming the output.
    """
    if not 2 <= classes <= MAX_CLASSES:
        raise ModelError(
            f"output {name!r}: {classes} classes, but a mask can have 2 to {MAX_CLASSES}"
        )


def show(shape: Sequence[int | None]) -> str:
    """Return a shape as text, with ``?`` for a side of any length."""
    return f"({', '.join('?' if side is None else str(side) for side in shape)})"


_OTHER = {"NCHW": "NHWC", "NHWC": "NCHW"}


def _sampling(section: Mapping[str, str], early: bool) -> Sampling:
    mode = "nearest" if early else section["mode"]
    return Sampling(mode, section["coordinate_transformation_mode"])


def _size(network: Sides, stride: int) -> Sides:
    """The sides by the stride, rounded up."""
    return -(-network[0] // stride), -(-network[1] // stride)
