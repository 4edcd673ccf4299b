"""The vocabulary of a profile: every section, every field, every word of the field's jargon.

A field that is ``None`` here was not written. Whether it had to be is for the chosen
backend's offer to say (see :mod:`simulator.profile.implementations`): nothing that changes a pixel
or a logit has a default.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import ConfigDict, Field, model_validator

from simulator.profile.graph import Graph
from simulator.profile.postprocess import Postprocess
from simulator.profile.precision import Precision
from simulator.profile.section import Deviations, Means, Positive, Section, Threads


class Decode(Section):
    """How a file becomes pixels."""

    backend: str
    exif: Literal["apply", "ignore"] | None = None
    idct: Literal["islow", "ifast", "ffmpeg"] | None = Field(
        None, description="the inverse DCT: libjpeg's accurate or fast integer one, FFmpeg's own"
    )
    chroma_upsampling: Literal["fancy", "plain"] | None = Field(
        None, description="libjpeg's triangle filter, or replication"
    )
    swscale_flags: list[str] | None = Field(
        None, description="FFmpeg's flags, used where the library itself makes RGB"
    )
    device: Literal["cpu", "mixed"] | None = Field(
        None, description="mixed: the CPU parses, the GPU decodes (nvJPEG)"
    )
    api: Literal["pipeline", "dynamic"] | None = Field(None, description="of DALI")
    recording: str | None = Field(None, description="the network's inputs, dumped on a device")


class Encode(Section):
    """How RGB becomes YUV where the decoder does not deliver planes."""

    backend: str
    matrix: Literal["bt601", "bt709"] | None = None
    range: Literal["full", "limited"] | None = None
    chroma_downsampling: Literal["average", "nearest"] | None = None


class Convert(Section):
    """How YUV becomes RGB: what the converter takes the pixels to be."""

    backend: str
    matrix: Literal["bt601", "bt709"] | None = None
    range: Literal["full", "limited"] | None = None
    preset: Literal["JPEG", "BT601_NARROW", "BT601_WIDE", "BT709_NARROW", "BT709_WIDE"] | None = (
        Field(None, description="AIPP's csc matrices")
    )
    chroma_upsampling: Literal["nearest", "linear"] | None = None


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


class Resize(Section):
    """How pixels are resampled."""

    backend: str
    interpolation: Literal[
        "nearest", "nearest_exact", "bilinear", "linear_exact", "triangular", "area", "box",
        "hamming", "bicubic", "lanczos", "lanczos3", "lanczos4", "gaussian",
    ]  # fmt: skip
    antialias: bool | None = Field(None, description="widen the kernel when shrinking")
    device: Literal["cpu", "gpu"] | None = None
    api: Literal["pipeline", "dynamic"] | None = Field(None, description="of DALI")
    coordinates: Literal["half_pixel", "legacy", "legacy_align_corners"] | None = Field(
        None, description="where samples lie; legacy: TensorFlow 1's default"
    )
    domain: Literal["rgb", "yuv"] = Field(description="resize before or after color conversion")


class Geometry(Section):
    """How an image of any size becomes the network's size."""

    kind: Literal["model", "short_side_crop", "squash", "letterbox"]
    rounding: Literal["model", "torchvision", "dali", "floor"] | None = Field(
        None, description="how fractions of a pixel are rounded"
    )
    short_side: Positive | None = Field(None, description="pixels; kind short_side_crop only")
    position: Literal["center", "top_left"] | None = Field(None, description="kind letterbox only")
    value: Annotated[int, Field(ge=0, le=255)] | None = Field(
        None, description="the padding's gray level; kind letterbox only"
    )

    @model_validator(mode="after")
    def _fields_of_kind(self) -> Geometry:
        wanted = {
            "model": {"rounding"},
            "short_side_crop": {"rounding", "short_side"},
            "squash": set(),
            "letterbox": {"rounding", "position", "value"},
        }[self.kind]
        written = self.model_fields_set - {"kind"}
        if missing := wanted - written:
            raise ValueError(f"kind {self.kind} needs {', '.join(sorted(missing))}")
        if unused := written - wanted:
            raise ValueError(f"kind {self.kind} has no {', '.join(sorted(unused))}")
        return self


class Normalize(Section):
    """How 0-255 becomes the network's numbers."""

    mean: Literal["model"] | Means
    std: Literal["model"] | Deviations


class Exporter(Section):
    """Who converts the model to the format that the runtime takes."""

    backend: str


class Runtime(Section):
    """Who runs the network, and with which options; further fields are the runtime's own."""

    model_config = ConfigDict(extra="allow", strict=True, frozen=True)

    backend: str
    device: str
    threads: Threads
    exporter: Exporter | None = None
    graph_optimization_level: (
        Literal["disable_all", "basic", "extended", "layout", "all"] | None
    ) = None


class Claim(Section):
    """How the profile's author knows that a section describes the stack."""

    kind: Literal["native", "vendor_simulator", "emulated", "recorded", "assumed"]
    source: str


class ProfileSpec(Section):
    """One stack: from the bytes of a file to the outputs of the network."""

    schema_: Literal[1] = Field(alias="schema")
    name: str
    summary: str
    extends: str | None = None
    decode: Decode
    color: Color
    resize: Resize
    geometry: Geometry
    normalize: Normalize
    graph: Graph
    precision: Precision
    runtime: Runtime
    postprocess: Postprocess = Postprocess()
    evidence: dict[
        Literal["decode", "color", "resize", "geometry", "normalize", "graph", "precision",
                "runtime", "postprocess"],
        Claim,
    ]  # fmt: skip

    @model_validator(mode="after")
    def _resize_where_there_is_yuv(self) -> ProfileSpec:
        if self.resize.domain == "yuv" and self.color.format == "rgb":
            raise ValueError("resize.domain yuv needs a color.format other than rgb")
        return self


AXES: dict[str, tuple[str, ...]] = {
    "decoder": ("decode",),
    "color": ("color",),
    "resize": ("resize",),
    "geometry": ("geometry",),
    "normalize": ("normalize",),
    "pooling": ("graph", "pooling"),
    "upsample": ("graph", "upsample"),
    "activation": ("graph", "activation"),
    "batchnorm": ("graph", "batchnorm"),
    "accumulation": ("graph", "accumulation"),
    "layout": ("graph", "layout"),
    "precision": ("precision",),
    "runtime": ("runtime",),
    **{name: ("postprocess", name) for name in Postprocess.model_fields},
}
"""Where each axis stands in a profile; pipeline order."""
