"""What the weights are stored in, what the arithmetic runs in, and who makes it so."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from simulator.profile.section import OpenSection, Positive, Section


class Calibration(Section):
    """The images that an INT8 quantizer sees."""

    samples: Positive
    through: Literal["train", "deploy"] = Field(
        description="the side whose preprocessing makes the calibration tensors"
    )
    source: str = Field(description="data: drawn from the evaluated images; else a folder")


class Keep(Section):
    """What stays in FP32, by operator type or by node of the ONNX model, and why."""

    op_types: list[str] = Field(default_factory=list)
    nodes: list[str] = Field(default_factory=list)
    reason: Annotated[str, Field(min_length=1)]

    @model_validator(mode="after")
    def _something_is_kept(self) -> Keep:
        if not self.op_types and not self.nodes:
            raise ValueError("keep needs op_types or nodes")
        return self


class Cast(OpenSection):
    """Who stores the weights in another type; the arithmetic stays what ``compute`` says."""

    granularity: str | None = Field(
        None, description="how many weights share a scale; integer storage only"
    )
    block_size: Positive | None = Field(
        None, description="weights that share a scale; granularity block only"
    )
    symmetric: bool | None = Field(None, description="weight ranges symmetric around zero")
    keep: Keep | None = Field(None, description="what stays in FP32")


class Quantizer(OpenSection):
    """Post-training static quantization of weights and activations to INT8."""

    weights: str | None = Field(None, description="how many weights share a scale")
    activations: str | None = Field(None, description="the type of activations")
    symmetric: bool | None = Field(None, description="activation ranges symmetric around zero")
    method: str | None = Field(None, description="how ranges follow from what calibration sees")
    bias_correction: bool | None = Field(
        None, description="correct the mean error that quantized weights bring"
    )
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
