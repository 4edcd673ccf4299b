"""The model card of a network that takes images."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from simulator.errors import ModelError
from simulator.modalities.card import CardInput, CardSpec
from simulator.modalities.constants import Constant
from simulator.modalities.image.cropping import CentralCrop
from simulator.modalities.image.geometry import PADDED, ZERO, Geometry
from simulator.modalities.image.sections import (
    ANY_SIZE,
    CropBeforeResize,
    InputSize,
    Padding,
    image_spec,
)
from simulator.profile.profile import Profile
from simulator.profile.section import Deviations, Means, Section

Pixels = Annotated[int, Field(ge=1, le=16384)]


class ImageInput(CardInput):
    """The tensor that the network takes.

    ``mean`` and ``std`` have a value for each channel of the tensor, in its order; they apply to
    pixels scaled to 0…``top``. Where ``height`` and ``width`` are ``free``, the network takes
    images of any size of which each side is a multiple of ``multiple_of``, and from ``min`` to
    ``max``.
    """

    kind: Literal["image"] = "image"
    height: Pixels | Literal["free"]
    width: Pixels | Literal["free"]
    multiple_of: Pixels = 1
    min: Pixels = 1
    max: Pixels | None = None
    layout: Literal["NCHW", "NHWC"]
    order: Literal["rgb", "bgr"]
    top: Literal[1, 255]
    mean: Means
    std: Deviations
    dtype: Literal["float32", "uint8"] = Field(
        "float32", description="uint8: pixels as they are, without mean and std"
    )
    name: str | None = Field(
        None, description="of the network's input; needed beside a mask or constants"
    )
    mask: str | None = Field(
        None,
        description="the name of a second input, int64 of (1, height, width): 1 where the image "
        "is, and 0 where it is padded, with geometry.value: zero",
    )

    @model_validator(mode="after")
    def _pixels_as_they_are(self) -> ImageInput:
        if self.dtype == "uint8" and (self.top, *self.mean, *self.std) != (255, 0, 0, 0, 1, 1, 1):
            raise ValueError("dtype uint8 has pixels as they are: top 255, mean 0 and std 1")
        return self

    @model_validator(mode="after")
    def _both_free(self) -> ImageInput:
        if (self.height == "free") != (self.width == "free"):
            raise ValueError("height and width: both free, or neither")
        if not self.is_free and (self.multiple_of, self.min, self.max) != (1, 1, None):
            raise ValueError("multiple_of, min and max are for a free height and width")
        if self.max and self.max < max(self.min, self.multiple_of):
            raise ValueError("max is at least min, and at least multiple_of")
        return self

    constants: Mapping[str, Constant] = Field(
        default_factory=dict, description="further inputs, the same for every image"
    )

    @model_validator(mode="after")
    def _all_named(self) -> ImageInput:
        if (self.name is None) != (self.mask is None and not self.constants):
            raise ValueError("name and mask or constants: both, or neither")
        if self.mask and self.dtype == "uint8":
            raise ValueError("a mask is for dtype float32")
        return self

    @property
    def named(self) -> tuple[str, str] | None:
        """The names of the image and of its mask; None where there is no mask."""
        return (self.name, self.mask) if self.name and self.mask else None

    @property
    def is_free(self) -> bool:
        """Whether images of several sizes go in."""
        return self.height == "free"

    def one_size(self, what: str) -> tuple[int, int]:
        """Return rows and columns, for what works on one size only.

        Raises:
            ModelError: any size goes in.
        """
        if self.height == "free" or self.width == "free":
            raise ModelError(f"{what} needs a network of one size; the card says height: free")
        return self.height, self.width


class CardGeometry(Section):
    """How images were brought to the network's size in training; see :class:`Geometry`.

    The kinds ``rect_letterbox``, ``keep_ratio`` and ``native`` are for a free height and width.
    """

    kind: Literal[
        "short_side_crop", "squash_crop", "squash", "letterbox",
        "rect_letterbox", "keep_ratio", "native",
    ]  # fmt: skip
    rounding: Literal[
        "torchvision", "dali", "floor", "albumentations", "transformers", "yolos", "maskformer"
    ] = "torchvision"
    short_side: Pixels | None = None
    long_side: Pixels | None = None
    shortest: Pixels | None = None
    longest: Pixels | None = None
    multiple_of: Pixels | None = None
    position: Literal["center", "top_left"] = "center"
    value: Padding = 0
    crop_before_resize: CropBeforeResize | None = None

    @model_validator(mode="after")
    def _short_side(self) -> CardGeometry:
        if (self.kind in ("short_side_crop", "squash_crop")) != (self.short_side is not None):
            raise ValueError("short_side is for kind short_side_crop or squash_crop, and needed")
        needed = ANY_SIZE.get(self.kind, ())
        for name in ("long_side", "shortest", "longest", "multiple_of"):
            if (name in needed) != (getattr(self, name) is not None):
                raise ValueError(
                    f"kind {self.kind} {'needs' if name in needed else 'has no'} {name}"
                )
        if self.kind in ANY_SIZE and self.crop_before_resize:
            raise ValueError(f"kind {self.kind} has no crop_before_resize")
        return self


class ImageCard(CardSpec):
    """The card of a network that takes images."""

    input: ImageInput
    geometry: CardGeometry

    @model_validator(mode="after")
    def _sizes(self) -> ImageCard:
        if self.input.mask and self.geometry.value != ZERO:
            raise ValueError("input.mask says where an image is padded with geometry.value: zero")
        if self.input.is_free != (self.geometry.kind in ANY_SIZE):
            kinds = ", ".join(ANY_SIZE)
            raise ValueError(f"input.height and width are free just where geometry.kind is {kinds}")
        return self


def tensor_shape(spec: ImageInput) -> tuple[int | None, ...]:
    """Return the shape of one sample's input tensor; None for a side that samples differ in."""
    height, width = (None if side == "free" else side for side in (spec.height, spec.width))
    size = (3, height, width) if spec.layout == "NCHW" else (height, width, 3)
    return (1, *size)


def tried_side(spec: ImageInput) -> int:
    """Return the side of an image that a network of any size is tried with."""
    step = spec.multiple_of
    return min(-(-max(spec.min, _TRIED) // step) * step, spec.max or 2**31)


def geometry_of(profile: Profile, card: ImageCard) -> Geometry:
    """Return a profile's geometry with the sizes of a model card.

    Raises:
        ModelError: the profile needs a network of one size, and the card's takes any; or the
            network does not take the profile's sizes.
    """
    asked = image_spec(profile).geometry
    chosen: Any = card.geometry if asked.kind == "model" else asked
    rounding = asked.rounding
    if rounding in (None, "model"):
        rounding = card.geometry.rounding
    made = resolve(chosen, card.input, str(rounding), asked.input_size)
    unmasked = card.input.mask and made.value != ZERO
    told = "the network takes a mask, so that images are padded with value: zero"
    if problem := told if unmasked else _problem(made, card.input):
        key = "input_size" if asked.input_size else "kind"
        raise ModelError(
            f"{profile.where(('geometry', key))}: geometry.{key}: {card.name}: {problem}"
        )
    return made


def resolve(
    chosen: Any, network: ImageInput, rounding: str, asked: InputSize | None = None
) -> Geometry:
    """Return a geometry with all sizes.

    Args:
        chosen: the section of a card or a profile, not of kind ``model``.
        network: the input of the card.
        rounding: of fractions of a pixel.
        asked: the sizes that the network is deployed in; None: as the card says.
    """
    sizes = (asked.sizes or ()) if asked else ()
    step = (asked.multiple_of if asked else chosen.multiple_of) or 0
    kind = "letterbox" if chosen.kind == "rect_letterbox" else chosen.kind
    box = (0, 0)
    if kind not in ("keep_ratio", "native"):
        if len(sizes) == 1:
            (box,), sizes = sizes, ()
        elif chosen.long_side:
            box = chosen.long_side, chosen.long_side
        elif network.height != "free" and network.width != "free":
            box = network.height, network.width
    value = chosen.value or 0
    before: CropBeforeResize | None = chosen.crop_before_resize
    return Geometry(
        kind=kind,
        height=box[0],
        width=box[1],
        rounding=rounding,
        short_side=chosen.short_side or 0,
        position=chosen.position or "center",
        value=0 if value == ZERO and network.dtype == "uint8" else value,
        crop_before_resize=CentralCrop(before.fraction, before.rounding) if before else None,
        sizes=sizes,
        multiple_of=step,
        least=network.min if step else 0,
        most=(network.max or 0) if step else 0,
        shortest=chosen.shortest or 0,
        longest=chosen.longest or 0,
    )


def sized(profile: Profile, card: ImageCard, one_size: bool) -> tuple[ImageCard, ...]:
    """Return the card with the size of a profile's network; of several, with any or with each.

    Args:
        profile: the stack.
        card: the content of the card.
        one_size: whether there must be one for each; images of any size stay free all the same.
    """
    made, own = geometry_of(profile, card), card.input
    sizes = [made.network] if made.network else list(made.sizes if one_size else [])
    fixed = {"multiple_of": 1, "min": 1, "max": None}
    changes: list[dict[str, object]] = [{**fixed, "height": h, "width": w} for h, w in sizes]
    if not sizes:
        step = {} if own.is_free else {"multiple_of": made.multiple_of or 1}
        changes = [{"height": "free", "width": "free", **step}]
    inputs = [own.model_copy(update=change) for change in changes]
    return tuple(card if one == own else card.model_copy(update={"input": one}) for one in inputs)


def _problem(made: Geometry, network: ImageInput) -> str:
    """What a network cannot do with a geometry; empty where nothing is wrong."""
    one = made.network
    if made.kind not in PADDED and one is None:
        return f"kind {made.kind} needs a network of one size: a single one in input_size.sizes"
    if one is not None and not all(one):
        return (
            f"kind {made.kind} needs one size, and the network takes images of any; write "
            "input_size: {kind: fixed, sizes: [[ROWS, COLUMNS]]}, or kind: model"
        )
    if not network.is_free:
        return ""
    sides = [side for size in (*made.sizes, *([one] if one else [])) for side in size]
    for side in [*sides, *([made.multiple_of] if made.multiple_of else [])]:
        if side % network.multiple_of:
            return f"{side} is no multiple of {network.multiple_of}, which the network needs"
    if any(side < network.min or side > (network.max or side) for side in sides):
        return f"the network takes sides from {network.min} to {network.max or 'any'}"
    return ""


_TRIED = 64
"""The least side of an image that a network of any size is tried with."""
