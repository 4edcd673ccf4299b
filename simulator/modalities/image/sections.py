"""The image sections of a profile: decode, color, resize, geometry, normalize."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
from pydantic import AfterValidator, Field, model_validator

from simulator import registry
from simulator.contract import Offer, Stage
from simulator.modalities.text.sections import Feeds, Prompts, Tokenize
from simulator.profile.implementations import Choices
from simulator.profile.profile import Profile
from simulator.profile.schema import ProfileSpec
from simulator.profile.section import (
    Deviations,
    Means,
    OpenSection,
    Positive,
    Section,
    refuse_misplaced,
)

ANY_SIZE = {
    "rect_letterbox": ("long_side", "multiple_of"),
    "keep_ratio": ("shortest", "longest", "multiple_of"),
    "native": ("multiple_of",),
}
"""The kinds of geometry after which images differ in size, with the fields that they need."""
Padding = Annotated[int, Field(ge=0, le=255)] | Literal["zero"]
Sides = Annotated[tuple[Positive, Positive], Field(strict=False)]
Arithmetic = Literal["unit_divide", "divide", "multiply", "multiply_add", "fused_multiply_add"]


class Video(OpenSection):
    """How a clip becomes frames, where samples are frames of clips."""

    matrix: str | None = Field(None, description="of YUV to RGB, by its standard")
    range: str | None = Field(None, description="that the samples are taken to have")


class Decode(OpenSection):
    """How a file becomes pixels."""

    exif: Literal["apply", "ignore"] | None = None
    idct: str | None = Field(None, description="the inverse DCT")
    chroma_upsampling: str | None = Field(
        None, description="from the file's chroma samples to one a pixel"
    )
    device: str | None = None


class Encode(OpenSection):
    """How RGB becomes YUV where the decoder does not deliver planes."""

    matrix: str | None = Field(None, description="of RGB to YUV, by its standard")
    range: str | None = Field(None, description="of the samples: 0-255, or 16-235")
    chroma_downsampling: str | None = Field(None, description="from a sample a pixel to fewer")


class Convert(OpenSection):
    """How YUV becomes RGB: what the converter takes the pixels to be."""

    matrix: str | None = Field(None, description="of YUV to RGB, by its standard")
    range: str | None = Field(None, description="that the samples are taken to have")
    chroma_upsampling: str | None = Field(None, description="to one sample a pixel")


def _unless_ignored(value: object) -> object:
    return None if value == "ignore" else value


class Color(Section):
    """What format the stack carries pixels in, and in which order the network gets them."""

    format: Literal["rgb", "nv12", "nv21", "i420", "yuv444"]
    order: Literal["model", "rgb", "bgr"] = Field(
        description="channel order of the tensor; model: as the model card says"
    )
    source: Literal["planes", "encode"] | None = Field(
        None, description="planes: the decoder's own YUV; encode: made from the decoder's RGB"
    )
    odd_size: Literal["keep", "drop"] | None = Field(
        None, description="drop the last odd row and column, as Ascend DVPP does, or keep them"
    )
    profile: Annotated[Literal["ignore", "to_srgb"] | None, AfterValidator(_unless_ignored)] = (
        Field(
            None,
            description="to_srgb: the decoder applies a file's ICC profile; ignored by default",
        )
    )
    encode: Encode | None = None
    convert: Convert | None = None

    @model_validator(mode="after")
    def _yuv_says_how(self) -> Color:
        fields = ("source", "odd_size", "encode", "convert")
        written = [name for name in fields if getattr(self, name) is not None]
        if self.format == "rgb" and written:
            raise ValueError(f"format rgb has no {', '.join(written)}")
        missing = [name for name in fields if name not in written]
        if self.format != "rgb" and missing:
            raise ValueError(f"format {self.format} needs {', '.join(missing)}")
        return self


class Resize(OpenSection):
    """How pixels are resampled."""

    interpolation: str
    antialias: bool | None = Field(None, description="widen the kernel when shrinking")
    device: str | None = None
    coordinates: str | None = Field(None, description="where samples lie")
    domain: Literal["rgb", "yuv"] = Field(description="resize before or after color conversion")


class CropBeforeResize(Section):
    """Which part of the image's center is resized; the rest of it is not seen."""

    fraction: Annotated[float, Field(gt=0, lt=1)] | None = Field(
        None, description="of both sides that stays"
    )
    aspect: Literal["network"] | None = Field(
        None, description="the largest part with the network's ratio of sides stays"
    )
    rounding: Literal["tensorflow", "floor", "torchvision"] = Field(
        description="how fractions of a pixel are rounded: as tf.image.central_crop; sizes and "
        "starts down; or sizes down and starts to even"
    )

    @model_validator(mode="after")
    def _one_part(self) -> CropBeforeResize:
        if (self.fraction is None) == (self.aspect is None):
            raise ValueError("needs fraction or aspect, and not both")
        if self.aspect is not None and self.rounding == "tensorflow":
            raise ValueError("rounding tensorflow is for a fraction; use floor or torchvision")
        return self


class InputSize(Section):
    """In which sizes the network is deployed."""

    kind: Literal["fixed", "rect"] = Field(
        description="fixed: one of sizes; rect: what an image needs, and no more"
    )
    sizes: Annotated[tuple[Sides, ...], Field(strict=False, min_length=1)] | None = Field(
        None,
        description="rows and columns; the smallest that holds the resized image, and where none "
        "does, the image is scaled into the one that leaves it largest",
    )
    multiple_of: Positive | None = Field(None, description="of which both sides are multiples")

    @model_validator(mode="after")
    def _fields_of_kind(self) -> InputSize:
        refuse_misplaced(self, self.kind, ("sizes" if self.kind == "fixed" else "multiple_of",))
        return self


class Geometry(Section):
    """How an image of any size becomes the network's size."""

    kind: Literal[
        "model", "short_side_crop", "squash_crop", "squash", "letterbox",
        "rect_letterbox", "keep_ratio", "native",
    ]  # fmt: skip
    rounding: (
        Literal["model", "torchvision", "dali", "floor", "albumentations", "transformers",
                "yolos", "maskformer"]
        | None
    ) = Field(None, description="how fractions of a pixel are rounded")  # fmt: skip
    short_side: Positive | None = Field(
        None, description="pixels; kinds short_side_crop and squash_crop only"
    )
    long_side: Positive | None = Field(None, description="pixels; kind rect_letterbox only")
    shortest: Positive | None = Field(None, description="pixels; kind keep_ratio only")
    longest: Positive | None = Field(None, description="pixels; kind keep_ratio only")
    multiple_of: Positive | None = Field(
        None,
        description="of which both sides of the network's input are multiples; kinds "
        "rect_letterbox, keep_ratio and native only",
    )
    position: Literal["center", "top_left"] | None = Field(
        None, description="kinds letterbox and rect_letterbox only"
    )
    value: Padding | None = Field(
        None,
        description="the padding's gray level, or zero: numbers of 0, after the normalization; "
        "kinds that crop nothing only",
    )
    crop_before_resize: CropBeforeResize | None = Field(
        None, description="a crop of the image itself; not for kind model, where the card says"
    )
    input_size: InputSize | None = Field(None, description="null: as the card or the kind says")

    @model_validator(mode="after")
    def _fields_of_kind(self) -> Geometry:
        wanted = {
            "model": ("rounding",),
            "short_side_crop": ("rounding", "short_side"),
            "squash_crop": ("rounding", "short_side"),
            "squash": (),
            "letterbox": ("rounding", "position", "value"),
            "rect_letterbox": ("rounding", "position", "value", *ANY_SIZE["rect_letterbox"]),
            "keep_ratio": ("rounding", "value", *ANY_SIZE["keep_ratio"]),
            "native": ("value", *ANY_SIZE["native"]),
        }[self.kind]
        crops = self.kind != "model" and self.kind not in ANY_SIZE
        optional = ("input_size", *(["crop_before_resize"] if crops else []))
        refuse_misplaced(self, self.kind, wanted, optional)
        return self


class Normalize(Section):
    """How 0-255 becomes the network's numbers."""

    mean: Literal["model"] | Means
    std: Literal["model"] | Deviations
    arithmetic: Arithmetic = Field(
        description="of x in 0-255, in float32: unit_divide: (x / 255 - mean / 255) / (std / 255); "
        "divide: (x - mean) / std; multiply: (x - mean) * (1 / std); multiply_add: "
        "x * (1 / std) + (-mean / std); fused_multiply_add: the same, rounded once"
    )


class ImageSpec(ProfileSpec):
    """A stack that takes images.

    ``tokenize``, ``feeds`` and ``prompts`` are of the text tower that a model card may have.
    """

    video: Video | None = Field(None, description="else frames reach decode as lossless files")
    decode: Decode
    color: Color
    resize: Resize
    geometry: Geometry
    normalize: Normalize
    tokenize: Tokenize | None = None
    feeds: Feeds | None = None
    prompts: Prompts | None = None

    @model_validator(mode="after")
    def _resize_where_there_is_yuv(self) -> ImageSpec:
        if self.resize.domain == "yuv" and self.color.format == "rgb":
            raise ValueError("resize.domain yuv needs a color.format other than rgb")
        if self.resize.domain == "yuv" and self.geometry.crop_before_resize:
            raise ValueError("geometry.crop_before_resize needs resize.domain rgb")
        return self

    @classmethod
    def problems(cls, profile: Profile, choices: Choices) -> list[str]:
        """Say where the decoder gives no planes, and where the resizer cannot resize YUV."""
        spec, found = image_spec(profile), []
        decoder, resizer = choices.get(Stage.DECODE), choices.get(Stage.RESIZE)
        if spec.color.source == "planes" and decoder and not gives_planes(decoder.offer):
            found.append(
                f"{profile.where(('color', 'source'))}: color.source: "
                f"{spec.decode.backend} does not give YUV planes; use source: encode"
            )
        video = choices.get(Stage.VIDEO)
        if spec.color.source == "planes" and video and not gives_planes(video.offer):
            found.append(
                f"{profile.where(('color', 'source'))}: color.source: video.backend "
                f"{video.backend.name} does not give YUV planes; use source: encode"
            )
        raw, develop = decoder and decoder.offer.make.gives_raw, "develop" in choices
        if (raw or "sensor" in choices) != develop or (raw and "sensor" in choices):
            key = ("develop",) if develop else ("decode", "backend")
            found.append(
                f"{profile.where(key)}: {'.'.join(key)}: a raw plane comes from a decoder that "
                "gives one, or from develop.sensor, and a section develop makes RGB of it"
            )
        if spec.resize.domain == "yuv" and resizer and resizer.offer.make.gives is np.float32:
            found.append(
                f"{profile.where(('resize', 'domain'))}: resize.domain: "
                f"{spec.resize.backend} gives float32, but YUV planes are uint8; use domain: rgb"
            )
        return found

    def settled(self) -> ImageSpec:
        """Return a profile whose sections fit each other, after an axis was swapped.

        Where the color section needs YUV planes and the decoder gives none, the decoder's RGB is
        encoded as the section's ``encode`` says. Where no YUV is left, or images are cropped before
        the resize, a resize in the YUV domain becomes one in RGB. Color profiles are ignored where
        the decoder applies none.
        """
        update: dict[str, Section] = {}
        backend = registry.backend(self.decode.backend)
        decoders = [backend.of(Stage.DECODE)[0]]
        if self.video is not None:
            decoders += registry.backend(self.video.backend).of(Stage.VIDEO)[:1]
        changed: dict[str, str | None] = {}
        if self.color.source == "planes" and not all(map(gives_planes, decoders)):
            changed["source"] = "encode"
        if self.color.profile and "profile" not in backend.admitted(Stage.DECODE):
            changed["profile"] = None
        if changed:
            update["color"] = self.color.model_copy(update=changed)
        in_rgb = self.color.format == "rgb" or self.geometry.crop_before_resize
        if in_rgb and self.resize.domain == "yuv":
            update["resize"] = self.resize.model_copy(update={"domain": "rgb"})
        return self.model_copy(update=update)


def image_spec(profile: Profile) -> ImageSpec:
    """Return the content of a profile, typed as that of a profile for images."""
    assert isinstance(profile.spec, ImageSpec), f"{profile.name} takes no images"
    return profile.spec


def gives_planes(decoder: Offer) -> bool:
    """Return whether a decoder gives a file's own YUV planes; no library is imported."""
    return bool(getattr(decoder.make, "gives_planes", False))
