"""How the network's graph is changed on its way to the runtime, one class an axis."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from simulator.profile.section import Above0, Positive, Section


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
