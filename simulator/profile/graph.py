"""How the network's graph is changed before the runtime loads it; one class per axis."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from simulator.profile.precision import Calibration
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
        description="where a padded pool pads: half on each side, rounded up, as PyTorch does; or "
        "TensorFlow's SAME, with the odd pixel at the end or at the beginning",
    )
    on_shape_change: Literal["error", "crop"] = Field(
        "error",
        description="what to do if a feature map is now too large for a layer of "
        "fixed size: refuse, or crop the map to its old size before that layer",
    )


class Upsample(Section):
    """Resize and Upsample; ConvTranspose does not change."""

    mode: Literal["keep", "nearest", "linear", "cubic"] = "keep"
    coordinate_transformation_mode: Literal[
        "keep", "half_pixel", "pytorch_half_pixel", "asymmetric", "align_corners"
    ] = "keep"
    nearest_mode: Literal[
        "keep", "round_prefer_floor", "round_prefer_ceil", "floor", "ceil"
    ] = "keep"  # fmt: skip


class RoiAlign(Section):
    """How boxes are read from feature maps."""

    coordinate_transformation_mode: Literal["keep", "half_pixel", "output_half_pixel"] = Field(
        "keep",
        description="half_pixel: aligned, boxes are moved by half a pixel of the map; "
        "output_half_pixel: they are not, and are at least one pixel wide and high",
    )
    sampling_ratio: Literal["keep", "adaptive"] | Positive = Field(
        "keep", description="samples of a bin in each direction; adaptive: its size, rounded up"
    )


class Table(Section):
    """A lookup table that replaces a function."""

    entries: Annotated[int, Field(ge=2, le=65536)]
    limit: Above0 = Field(
        description="it spans -limit to limit; outside, the value at its end is used"
    )
    interpolation: Literal["nearest", "linear"]


class Activation(Section):
    """Approximations of activation functions found on NPUs."""

    gelu: Literal["keep", "erf", "tanh"] = "keep"
    sigmoid: Literal["keep", "table", "hard"] = Field(
        "keep", description="for every Sigmoid; hard: clip(x / 6 + 1 / 2, 0, 1)"
    )
    swish: Literal["keep", "hard"] = Field(
        "keep", description="only for x * sigmoid(x); hard: x * clip(x / 6 + 1 / 2, 0, 1)"
    )
    exp: Literal["keep", "table"] = Field("keep", description="for Exp, also inside Softmax")
    softmax: Literal["keep", "fp16", "bf16"] = Field(
        "keep", description="the type to which each step of Softmax is rounded"
    )
    table: Table | None = Field(
        None, description="the table of sigmoid and exp, if they are set to table"
    )

    @model_validator(mode="after")
    def _table_where_one_is_used(self) -> Activation:
        used = "table" in (self.sigmoid, self.exp)
        if used and self.table is None:
            raise ValueError(
                "sigmoid: table and exp: table need table: {entries, limit, interpolation}"
            )
        if self.table and not used:
            raise ValueError("table is used only where sigmoid or exp is table")
        return self


class Batchnorm(Section):
    """BatchNormalization."""

    folding: Literal["keep", "fold"] = Field(
        "keep", description="fold: into the convolution or matrix product before it"
    )
    epsilon: Literal["keep"] | Above0 = "keep"
    statistics: Calibration | None = Field(
        None, description="the samples that means and variances are taken from anew"
    )


class Accumulation(Section):
    """The accumulator of Conv, Gemm and MatMul."""

    dtype: Literal["keep", "fp16"] = "keep"
    block: Positive | None = Field(
        None,
        description="the number of products summed in the model's own type between two roundings",
    )

    @model_validator(mode="after")
    def _block_where_one_is_used(self) -> Accumulation:
        if (self.dtype == "keep") != (self.block is None):
            raise ValueError("dtype: fp16 needs a block, and dtype: keep takes none")
        return self


class BothSides(Section):
    """The samples that go through the preprocessing of both stacks."""

    samples: Positive
    source: str = Field(description="data: drawn from the evaluated images; else as for --data")


class Compensation(Section):
    """A 1x1 convolution before the network: the training stack's pixels from the deployment's."""

    form: Literal["keep", "affine", "matrix"] = Field(
        "keep",
        description="affine: a factor and an offset for each channel; matrix: 3x3 and an offset",
    )
    calibration: BothSides | None = Field(None, description="what it is fitted to")

    @model_validator(mode="after")
    def _samples_where_they_are_used(self) -> Compensation:
        if (self.form == "keep") != (self.calibration is None):
            raise ValueError("form: affine and form: matrix need calibration: {samples, source}")
        return self


class Graph(Section):
    """How the network's graph is changed before the runtime loads it; ``keep`` changes nothing."""

    compensation: Compensation = Compensation()
    pooling: Pooling = Pooling()
    upsample: Upsample = Upsample()
    activation: Activation = Activation()
    batchnorm: Batchnorm = Batchnorm()
    accumulation: Accumulation = Accumulation()
    layout: Literal["keep", "nhwc"] = Field(
        "keep", description="nhwc: 1x1 convolutions as channel-last matrix products"
    )
    roi_align: RoiAlign = RoiAlign()
