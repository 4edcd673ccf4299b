"""Weights and activations in FP8, MX and NVFP4, computed in FP32."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import ClassVar

from backends.fake_quant.layers import Layer, chosen, insert
from backends.fake_quant.observed import observe
from backends.number_formats.formats import FORMATS, FP8, MX, SCALE_MODES
from backends.number_formats.nodes import Rounding
from backends.opsets import for_quantization
from backends.ort.library import ort
from backends.stored_weights.floats import FIELDS, FloatWeights
from simulator.contract import (
    Admits,
    Array,
    Backend,
    Evidence,
    KeepList,
    ModelError,
    Offer,
    Quantizer,
    Stage,
)


class FloatQuantizer(Quantizer):
    """Rounds what goes into every convolution and product with weights; sums are FP32.

    Weights are those of the cast ``weight_only``. The scale of FP8 activations is of a whole
    tensor, from calibration (``ranges: calibrated``), or of each row of a product (a token) and of
    each sample of a convolution (``dynamic``). Blocks of MX and NVFP4 consist of neighbouring
    channels at one place, and find their scales in each inference; that of NVFP4's tensor is
    calibrated. The last block of a tensor is filled with zeros.
    """

    def quantize(self, source: Path, target: Path, feeds: Iterator[Mapping[str, Array]]) -> None:
        """Calibrate on *feeds* where it must, then write the file.

        Raises:
            ModelError: the model has no layers outside the keep list, or a value is not finite.
        """
        import onnx

        model = for_quantization(source)
        held, every = chosen(model, self.options["keep"])
        fed = {layer.node.input[layer.data]: None for layer in every}
        seen = observe(model, fed, feeds) if self.calibrates else {}
        made: dict[tuple[str, str], tuple[Rounding, str]] = {}
        opset = next(o.version for o in model.opset_import if o.domain in ("", "ai.onnx"))
        for layer in every:
            key = data, side = layer.node.input[layer.data], _side(layer)
            if key not in made:
                part = f"{data}.{self.options['activations']}.{side}"
                rounding = Rounding(data, part, self.options, opset)
                most = seen[data].most if data in seen else 0.0
                made[key] = rounding, self._rounded(rounding, layer, held, most)
            layer.node.input[layer.data] = made[key][1]
        for rounding, _ in made.values():
            insert(model.graph, rounding.nodes, rounding.constants)
        with tempfile.TemporaryDirectory() as name:
            between = Path(name) / "activations.onnx"
            onnx.save(model, str(between))
            storage = {"storage": self.options["format"]}
            FloatWeights({**self.options, **storage}).cast(between, target)

    def _rounded(
        self, rounding: Rounding, layer: Layer, held: Mapping[str, Array], most: float
    ) -> str:
        """Add the nodes for the activations of a layer; return the name of the result."""
        format, side = FORMATS[self.options["activations"]], _side(layer)
        weights = held[layer.node.input[layer.weight]]
        if format.block is not None:
            if side == "columns":
                raise ModelError(
                    f"{layer.node.name}: the channels of its activations are no last axis, so "
                    "that they have no blocks; name it under precision.quantizer.keep"
                )
            return rounding.blocks(format, _channels(layer, weights), side == "rows", most)
        assert format.element is not None
        if self.calibrates:
            return rounding.whole(format.element, most)
        whole = {"rows": (-1,), "columns": (-2,), "images": tuple(range(1, weights.ndim))}
        return rounding.rows(format.element, whole[side])


class DynamicFloatQuantizer(FloatQuantizer):
    """The same where each inference finds all scales."""

    calibrates: ClassVar[bool] = False


def _side(layer: Layer) -> str:
    """Say what a token of the activations is: a row or a column of a product, or an image."""
    if layer.node.op_type not in ("Gemm", "MatMul"):
        return "images"
    turned = any(a.name == "transA" and a.i for a in layer.node.attribute)
    return "columns" if turned or layer.weight == 0 else "rows"


def _channels(layer: Layer, weights: Array) -> int:
    """Return how many numbers of an activation go into one sum, at one place."""
    groups = next((a.i for a in layer.node.attribute if a.name == "group"), 1)
    if layer.node.op_type == "Conv":
        return int(weights.shape[1] * groups)
    if layer.node.op_type == "ConvTranspose":
        return int(weights.shape[0])
    return int(weights.size // weights.shape[layer.axis])


_KEEP: dict[str, Admits] = {"keep": KeepList()}
_FP8: dict[str, Admits] = {
    **_KEEP,
    "format": FP8,
    "granularity": ("per_channel", "per_tensor"),
    "activations": FP8,
    "overflow": ("saturate", "inf"),
}
_MX: dict[str, Admits] = {
    **_KEEP,
    "format": MX,
    "granularity": ("block",),
    "block_size": (32,),
    "scale_mode": SCALE_MODES,
    "activations": MX,
    "overflow": ("saturate",),
    "ranges": ("dynamic",),
}
_NVFP4: dict[str, Admits] = {
    **_KEEP,
    "format": ("nvfp4",),
    "granularity": ("block",),
    "block_size": (16,),
    "activations": ("nvfp4",),
    "overflow": ("saturate",),
    "ranges": ("calibrated",),
}
_FORMS: tuple[tuple[type[FloatQuantizer], dict[str, Admits]], ...] = (
    (FloatQuantizer, {**_FP8, "ranges": ("calibrated",)}),
    (DynamicFloatQuantizer, {**_FP8, "ranges": ("dynamic",)}),
    (DynamicFloatQuantizer, _MX),
    (FloatQuantizer, _NVFP4),
)

BACKEND = Backend(
    name="float_quant",
    summary="weights and activations in FP8, MX and NVFP4 formats, computed in FP32",
    library=ort,
    offers=tuple(
        Offer(
            Stage.QUANTIZE,
            form,
            make,
            Evidence.EMULATED,
            "OCP OFP8 1.0; OCP MX 1.0; NVIDIA NVFP4; sums in FP32",
        )
        for make, form in _FORMS
    ),
    fields={
        **FIELDS,
        "granularity": "which weights share a scale",
        "block_size": "how many weights, and channels of an activation, share a scale",
        "ranges": "scales of activations: from calibration, or of each row or sample (dynamic)",
    },
)
