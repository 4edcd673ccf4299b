"""The types of stored weights and of arithmetic, and the tools that produce them."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from simulator.profile.section import OpenSection, Positive, Section


class Calibration(Section):
    """The images that a quantizer sees."""

    samples: Positive
    through: Literal["train", "deploy"] = Field(
        description="the stack whose preprocessing makes the calibration tensors"
    )
    source: str = Field(description="data: drawn from the evaluated images; else as for --data")


class Keep(Section):
    """Operator types and nodes of the ONNX model that stay in FP32, with the reason."""

    op_types: list[str] = Field(default_factory=list)
    nodes: list[str] = Field(default_factory=list)
    reason: Annotated[str, Field(min_length=1)]

    @model_validator(mode="after")
    def _something_is_kept(self) -> Keep:
        if not self.op_types and not self.nodes:
            raise ValueError("keep needs op_types or nodes")
        return self


class Cast(OpenSection):
    """The tool that stores the weights in another type; ``compute`` sets the arithmetic."""

    granularity: str | None = Field(
        None, description="which weights share a scale; only for integer storage"
    )
    block_size: Positive | None = Field(
        None, description="the number of weights that share a scale; only for granularity: block"
    )
    symmetric: bool | None = Field(
        None, description="whether weight ranges are symmetric around zero"
    )
    keep: Keep | None = Field(None, description="what stays in FP32")


class Quantizer(OpenSection):
    """Post-training quantization of weights and activations, with the ranges of a calibration.

    One of ``activations: dynamic`` has no calibration: each inference has its own ranges.

    To INT8, or with ``bits`` to a bit-width that is simulated in FP32.
    """

    bits: Positive | None = Field(
        None, description="of weights and activations, simulated in FP32; not written: real INT8"
    )
    format: str | None = Field(
        None,
        description="of weights with an exponent, which is precision.storage; computes in FP32",
    )
    weights: str | None = Field(None, description="which weights share a scale")
    activations: str | None = Field(
        None, description="the type of activations; dynamic: INT8 with ranges of each inference"
    )
    symmetric: bool | None = Field(
        None, description="whether activation ranges are symmetric around zero"
    )
    method: str | None = Field(None, description="how calibration computes the ranges")
    bias_correction: bool | None = Field(
        None, description="whether to correct the mean error caused by quantized weights"
    )
    keep: Keep | None = Field(None, description="what stays in floating point")
    calibration: Calibration | None = Field(
        None, description="the samples that it sees; not with activations: dynamic"
    )

    @property
    def gives(self) -> str:
        """What it makes, in messages."""
        return self.format or (f"the {self.bits}-bit file" if self.bits else "INT8")

    def check(self, storage: str, compute: str) -> None:
        """Refuse types that its file does not have; ValueError.

        What is simulated is FP32; only 8 bits may be real. Between 16-bit activations, runtimes
        compute in FP32 or in integers.
        """
        types = (storage, compute)
        if self.activations and self.activations.endswith("int16"):
            if types not in (("int8", "fp32"), ("int8", "int16")):
                raise ValueError(
                    f"activations {self.activations} make storage int8, and compute fp32 "
                    "(ONNX Runtime) or int16"
                )
            return
        if self.format is not None:
            if types != (self.format, "fp32"):
                raise ValueError(
                    f"a quantizer to {self.format} makes storage {self.format} and compute fp32"
                )
            return
        if self.bits not in (None, 8) and types != ("fp32", "fp32"):
            raise ValueError(
                f"a quantizer to {self.bits} bits rounds in FP32: write storage fp32, compute fp32"
            )
        if types != ("int8", "int8") and (self.bits is None or types != ("fp32", "fp32")):
            raise ValueError("a quantizer makes storage int8 and compute int8")


class Precision(Section):
    """The type of the stored weights, and the requested type of the arithmetic.

    Those of an artifact may be left out: they are read from its file.
    """

    artifact: str | None = Field(
        None,
        description="a model file that the runtime opens as it is: nothing rewrites, exports, "
        "casts or quantizes",
    )
    storage: Literal[
        "fp32", "fp16", "bf16", "int16", "int8", "int6", "int5", "int4", "int3", "int2",
        "fp8_e4m3", "fp8_e5m2", "mxfp8_e4m3", "mxfp8_e5m2", "mxfp6_e2m3", "mxfp6_e3m2",
        "mxfp4", "nvfp4", "nf4",
    ]  # fmt: skip
    compute: Literal["fp32", "fp16", "bf16", "int16", "int8"]
    cast: Cast | None = None
    quantizer: Quantizer | None = None
    second: Literal["fp32"] | None = Field(
        None,
        description="of the model card's second network: FP32 as it is, nothing casts or quantizes "
        "it; null: as the first one",
    )

    @model_validator(mode="after")
    def _storage_says_how(self) -> Precision:
        makers = [name for name in ("cast", "quantizer") if getattr(self, name)]
        if self.artifact and makers:
            raise ValueError(
                f"the artifact is opened as it is, and a {makers[0]} would make another file: "
                f"write {makers[0]}: null, or artifact: null"
            )
        if self.cast and self.quantizer:
            raise ValueError("write a cast or a quantizer, not both")
        if self.storage == "fp32" and self.cast:
            raise ValueError("storage fp32 needs no cast")
        if self.quantizer:
            self.quantizer.check(self.storage, self.compute)
        own = self.artifact or self.cast
        if self.compute == "int8" and not own and not self.storage.startswith("int"):
            raise ValueError(f"storage {self.storage} cannot be computed in int8")
        return self
