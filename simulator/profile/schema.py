"""The vocabulary of a profile: every section, every field, every word of the field's jargon.

A field that is ``None`` here was not written. Whether it had to be is for the chosen
backend's offer to say (see :mod:`simulator.profile.choose`): nothing that changes a pixel or
a logit has a default.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

Positive = Annotated[int, Field(ge=1)]
Threads = Annotated[int, Field(ge=1, le=1024)]
Finite = Annotated[float, Field(allow_inf_nan=False)]
Above0 = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Means = Annotated[list[Finite], Field(min_length=3, max_length=3)]
Deviations = Annotated[list[Above0], Field(min_length=3, max_length=3)]


class Section(BaseModel):
    """A part of a profile: no unknown keys, no coercion of types."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


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


class Pooling(Section):
    """MaxPool and AveragePool."""

    ceil_mode: Literal["keep", "floor", "ceil"] = Field(
        "keep", description="rounding of the output size"
    )
    count_include_pad: Literal["keep", "include", "exclude"] = Field(
        "keep", description="whether an AveragePool divides by the padding too"
    )
    auto_pad: Literal["keep", "symmetric", "same_upper", "same_lower"] = Field(
        "keep",
        description="where a padded pool pads: half on each side, rounded up, as PyTorch; or "
        "TensorFlow's SAME with the odd pixel at the end or at the beginning",
    )
    on_shape_change: Literal["error", "crop"] = Field(
        "error",
        description="where a layer of fixed size meets a map that has grown: refuse, or cut "
        "the map back to its old size just before",
    )


class Upsample(Section):
    """Resize and Upsample; ConvTranspose stays as it is."""

    mode: Literal["keep", "nearest", "linear", "cubic"] = "keep"
    coordinate_transformation_mode: Literal[
        "keep", "half_pixel", "pytorch_half_pixel", "asymmetric", "align_corners"
    ] = "keep"
    nearest_mode: Literal[
        "keep", "round_prefer_floor", "round_prefer_ceil", "floor", "ceil"
    ] = "keep"  # fmt: skip


class Table(Section):
    """A lookup table that stands in for a function."""

    entries: Annotated[int, Field(ge=2, le=65536)]
    limit: Above0 = Field(description="it spans -limit to limit; beyond, its ends hold")
    interpolation: Literal["nearest", "linear"]


class Activation(Section):
    """Approximations of activations met on NPUs."""

    gelu: Literal["keep", "erf", "tanh"] = "keep"
    sigmoid: Literal["keep", "table", "hard"] = Field(
        "keep", description="of every Sigmoid; hard: clip(x / 6 + 1 / 2, 0, 1)"
    )
    swish: Literal["keep", "hard"] = Field(
        "keep", description="of x * sigmoid(x) only; hard: x * clip(x / 6 + 1 / 2, 0, 1)"
    )
    exp: Literal["keep", "table"] = Field("keep", description="of Exp, and within Softmax")
    softmax: Literal["keep", "fp16", "bf16"] = Field(
        "keep", description="the type to which each of its steps is rounded"
    )
    table: Table | None = Field(None, description="of sigmoid and exp, where they are table")

    @model_validator(mode="after")
    def _table_where_one_is_used(self) -> Activation:
        used = "table" in (self.sigmoid, self.exp)
        if used and self.table is None:
            raise ValueError("sigmoid or exp by table needs table: {entries, limit, interpolation}")
        if self.table and not used:
            raise ValueError("table is used only where sigmoid or exp is table")
        return self


class Batchnorm(Section):
    """BatchNormalization."""

    folding: Literal["keep", "fold"] = Field(
        "keep", description="fold: into the convolution or matrix product before it"
    )
    epsilon: Literal["keep"] | Above0 = "keep"


class Accumulation(Section):
    """The accumulator of Conv, Gemm and MatMul."""

    dtype: Literal["keep", "fp16"] = "keep"
    block: Positive | None = Field(
        None, description="products summed in the model's own type between two roundings"
    )

    @model_validator(mode="after")
    def _block_where_one_is_used(self) -> Accumulation:
        if (self.dtype == "keep") != (self.block is None):
            raise ValueError("dtype fp16 needs a block, and keep has none")
        return self


class Graph(Section):
    """How the network's graph is changed on its way to the runtime; ``keep`` is the model's own."""

    pooling: Pooling = Pooling()
    upsample: Upsample = Upsample()
    activation: Activation = Activation()
    batchnorm: Batchnorm = Batchnorm()
    accumulation: Accumulation = Accumulation()
    layout: Literal["keep", "nhwc"] = Field(
        "keep", description="nhwc: 1x1 convolutions as channel-last matrix products"
    )


class Calibration(Section):
    """The images that an INT8 quantizer sees."""

    samples: Positive
    through: Literal["train", "deploy"] = Field(
        description="the side whose preprocessing makes the calibration tensors"
    )
    source: str = Field(description="data: drawn from the evaluated images; else a folder")


class Keep(Section):
    """What stays in FP32, by operator type or by node of the ONNX model, and why."""

    op_types: list[str] = []
    nodes: list[str] = []
    reason: Annotated[str, Field(min_length=1)]

    @model_validator(mode="after")
    def _something_is_kept(self) -> Keep:
        if not self.op_types and not self.nodes:
            raise ValueError("keep needs op_types or nodes")
        return self


class Cast(Section):
    """Who stores the weights in another type; the arithmetic stays what ``compute`` says."""

    backend: str
    granularity: Literal["per_tensor", "per_channel", "block"] | None = Field(
        None, description="how many weights share a scale; integer storage only"
    )
    block_size: Positive | None = Field(
        None, description="weights that share a scale; granularity block only"
    )
    symmetric: bool | None = Field(None, description="weight ranges symmetric around zero")
    keep: Keep | None = Field(None, description="what stays in FP32")


class Quantizer(Section):
    """Post-training static quantization of weights and activations to INT8."""

    backend: str
    weights: Literal["per_channel", "per_tensor"] | None = None
    activations: Literal["uint8", "int8"] | None = None
    symmetric: bool | None = Field(None, description="activation ranges symmetric around zero")
    method: Literal["minmax", "entropy", "percentile", "mse", "mean_minmax"] | None = None
    percentile: float | None = None
    num_bins: int | None = Field(None, description="histogram bins of entropy, percentile and mse")
    bias_correction: bool | None = None
    reduce_range: bool | Literal["first_layer"] | None = Field(
        None, description="7-bit weights, against overflow of AVX2; first_layer: of nncf"
    )
    target: Literal["cpu", "tensorrt"] | None = Field(
        None, description="tensorrt: zero points of 0, FP32 weights and biases; of onnxruntime"
    )
    recipe: str | None = Field(None, description="of ai-edge-quantizer")
    target_platform: str | None = Field(None, description="of RKNN: the chip")
    keep: Keep | None = Field(None, description="what stays in floating point")
    calibration: Calibration


class Precision(Section):
    """What the weights are stored in, and what the arithmetic is asked to run in."""

    storage: Literal["fp32", "fp16", "bf16", "int8", "int6", "int4", "int2"]
    compute: Literal["fp32", "fp16", "bf16", "int8"]
    cast: Cast | None = None
    quantizer: Quantizer | None = None

    @model_validator(mode="after")
    def _storage_says_how(self) -> Precision:
        if self.cast and self.quantizer:
            raise ValueError("a cast or a quantizer, not both")
        if self.storage == "fp32" and self.cast:
            raise ValueError("storage fp32 needs no cast")
        if self.quantizer and (self.storage, self.compute) != ("int8", "int8"):
            raise ValueError("a quantizer makes storage int8 and compute int8")
        if self.compute == "int8" and self.storage != "int8":
            raise ValueError(f"storage {self.storage} cannot be computed in int8")
        if self.cast and self.compute == "int8":
            raise ValueError("a cast stores weights only; compute int8 needs a quantizer")
        return self


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
    evidence: dict[
        Literal["decode", "color", "resize", "geometry", "normalize", "graph", "precision",
                "runtime"],
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
}
"""Where each axis stands in a profile; pipeline order."""
