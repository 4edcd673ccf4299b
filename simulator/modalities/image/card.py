"""The model card of a network that takes images."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from simulator.modalities.card import CardInput, CardSpec
from simulator.modalities.image.geometry import CentralCrop, Geometry
from simulator.modalities.image.sections import CropBeforeResize, image_spec
from simulator.profile.profile import Profile
from simulator.profile.section import Deviations, Means, Section

Pixels = Annotated[int, Field(ge=1, le=16384)]


class ImageInput(CardInput):
    """The tensor that the network takes.

    ``mean`` and ``std`` have a value for each channel of the tensor, in its order; they apply to
    pixels scaled to 0…``top``.
    """

    kind: Literal["image"] = "image"
    height: Pixels
    width: Pixels
    layout: Literal["NCHW", "NHWC"]
    order: Literal["rgb", "bgr"]
    top: Literal[1, 255]
    mean: Means
    std: Deviations
    dtype: Literal["float32", "uint8"] = Field(
        "float32", description="uint8: pixels as they are, without mean and std"
    )

    @model_validator(mode="after")
    def _pixels_as_they_are(self) -> ImageInput:
        if self.dtype == "uint8" and (self.top, *self.mean, *self.std) != (255, 0, 0, 0, 1, 1, 1):
            raise ValueError("dtype uint8 has pixels as they are: top 255, mean 0 and std 1")
        return self


class CardGeometry(Section):
    """How images were brought to the network's size in training; see :class:`Geometry`."""

    kind: Literal["short_side_crop", "squash_crop", "squash", "letterbox"]
    rounding: Literal["torchvision", "dali", "floor", "albumentations"] = "torchvision"
    short_side: Pixels | None = None
    position: Literal["center", "top_left"] = "center"
    value: Annotated[int, Field(ge=0, le=255)] = 0
    crop_before_resize: CropBeforeResize | None = None

    @model_validator(mode="after")
    def _short_side(self) -> CardGeometry:
        if (self.kind in ("short_side_crop", "squash_crop")) != (self.short_side is not None):
            raise ValueError("short_side is for kind short_side_crop or squash_crop, and needed")
        return self


class ImageCard(CardSpec):
    """The card of a network that takes images."""

    input: ImageInput
    geometry: CardGeometry


def tensor_shape(spec: ImageInput) -> tuple[int, int, int, int]:
    """Return the shape of one sample's input tensor."""
    size = (3, spec.height, spec.width) if spec.layout == "NCHW" else (spec.height, spec.width, 3)
    return (1, *size)


def geometry_of(profile: Profile, card: ImageCard) -> Geometry:
    """Return a profile's geometry with the sizes of a model card."""
    asked = image_spec(profile).geometry
    chosen: Any = card.geometry if asked.kind == "model" else asked
    rounding = asked.rounding
    if rounding in (None, "model"):
        rounding = card.geometry.rounding
    before: CropBeforeResize | None = chosen.crop_before_resize
    return Geometry(
        kind=chosen.kind,
        height=card.input.height,
        width=card.input.width,
        rounding=rounding,
        short_side=chosen.short_side or 0,
        position=chosen.position or "center",
        value=chosen.value or 0,
        crop_before_resize=CentralCrop(before.fraction, before.rounding) if before else None,
    )
