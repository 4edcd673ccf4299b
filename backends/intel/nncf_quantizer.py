"""NNCF: OpenVINO's post-training quantizer, on ONNX models."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

from backends.intel import nncf_weights
from backends.intel.libraries import nncf, ov
from backends.intel.nncf_weights import ignored, renamed
from backends.opsets import for_quantization
from backends.quiet import quiet
from simulator.contract import (
    Admits,
    Array,
    Backend,
    Implied,
    KeepList,
    Offer,
    Quantizer,
    Stage,
    kept,
)


class NncfQuantizer(Quantizer):
    """``nncf.quantize`` for the CPU; weights are INT8.

    ``symmetric`` is NNCF's preset: ``performance`` (symmetric activations) or ``mixed``
    (asymmetric ones). ``mean_minmax`` is NNCF's default range estimator (mean of the minima
    and maxima over samples); ``minmax`` takes the extremes. ``reduce_range`` is NNCF's
    ``overflow_fix``, which uses half the range for weights: in all layers, in none, or in the
    first layer, which is NNCF's default. ``symmetric_weights: false`` gives weights zero points,
    with which OpenVINO may compute in FP32. A keep list becomes its ``IgnoredScope``.
    """

    def quantize(self, source: Path, target: Path, feeds: Iterator[Mapping[str, Array]]) -> None:
        """Calibrate on *feeds*, then write QuantizeLinear / DequantizeLinear pairs."""
        import onnx

        model, presets = for_quantization(source), nncf.QuantizationPreset
        fix = getattr(nncf.OverflowFix, _OVERFLOW_FIX[self.options["reduce_range"]])
        preset = presets.PERFORMANCE if self.options["symmetric"] else presets.MIXED
        scope = nncf.IgnoredScope(names=sorted(kept(model, self.options["keep"])))
        advanced = {"overflow_fix": fix, "weights_quantization_params": self._weights()}
        onnx.save(self._made(model, feeds, scope, advanced, preset=preset), str(target))

    def _made(
        self,
        model: Any,
        feeds: Iterator[Mapping[str, Array]],
        scope: Any,
        advanced: Mapping[str, Any],
        **asked: Any,
    ) -> Any:
        samples = list(feeds)
        logging.getLogger("nncf").setLevel(logging.ERROR)
        parameters = nncf.AdvancedQuantizationParameters(
            disable_bias_correction=not self.options["bias_correction"],
            **self._ranges(),
            **advanced,
        )
        with quiet():
            return nncf.quantize(
                model,
                nncf.Dataset(samples, dict),
                subset_size=len(samples),
                target_device=nncf.TargetDevice.CPU,
                ignored_scope=scope,
                advanced_parameters=parameters,
                **asked,
            )

    def _weights(self) -> object:
        from nncf.quantization.advanced_parameters import QuantizationMode, QuantizationParameters

        symmetric = self.options["symmetric_weights"]
        return QuantizationParameters(
            per_channel=None if self.options["weights"] == "per_channel" else False,
            mode=None if symmetric else QuantizationMode.ASYMMETRIC,
        )

    def _ranges(self) -> dict[str, object]:
        if self.options["method"] == "mean_minmax":
            return {}
        from nncf.quantization.range_estimator import RangeEstimatorParametersSet

        return {"activations_range_estimator_params": RangeEstimatorParametersSet.MINMAX}


class NncfFloatQuantizer(NncfQuantizer):
    """``nncf.quantize`` to FP8, on the model as OpenVINO reads it; FakeConvert rounds.

    Weights have a scale for each output channel, activations one for the tensor. OpenVINO's CPU
    plugin converts to FP8 and back, and multiplies in FP32.
    """

    gives: ClassVar[str | None] = "openvino_ir"

    def quantize(self, source: Path, target: Path, feeds: Iterator[Mapping[str, Array]]) -> None:
        """Calibrate on *feeds*, then write *target* (XML) and a .bin beside it."""
        import onnx

        spared = kept(onnx.load(str(source)), self.options["keep"])
        mode = getattr(nncf.QuantizationMode, self.options["format"].upper())
        read = ov.Core().read_model(str(source))
        model = self._made(read, feeds, ignored(read, spared), {}, mode=mode)
        renamed(model)
        ov.save_model(model, str(target), compress_to_fp16=False)


_OVERFLOW_FIX = {True: "ENABLE", False: "DISABLE", "first_layer": "FIRST_LAYER"}
_QUANTIZE: dict[str, Admits] = {
    "reduce_range": ("first_layer", True, False),
    "weights": Implied(("per_channel", "per_tensor"), "per_channel"),
    "symmetric_weights": (True,),
    "symmetric": (False, True),
    "method": ("mean_minmax", "minmax"),
    "bias_correction": (True, False),
    "keep": KeepList(),
}
_ASYMMETRIC: dict[str, Admits] = {
    **_QUANTIZE,
    "symmetric_weights": (False,),
    "reduce_range": (False,),
}
_FLOAT: dict[str, Admits] = {
    "format": ("fp8_e4m3", "fp8_e5m2"),
    "weights": ("per_channel",),
    **{name: _QUANTIZE[name] for name in ("method", "bias_correction", "keep")},
}
_SOURCE = "https://docs.openvino.ai/ Basic Quantization Flow"

BACKEND = Backend(
    name="nncf",
    summary="NNCF post-training quantization and compression of weights, as OpenVINO recommends it",
    library=nncf,
    companions=(ov,),
    offers=(
        Offer(Stage.QUANTIZE, _QUANTIZE, NncfQuantizer, source=_SOURCE),
        Offer(Stage.QUANTIZE, _ASYMMETRIC, NncfQuantizer, source=_SOURCE),
        Offer(Stage.QUANTIZE, _FLOAT, NncfFloatQuantizer, source=_SOURCE),
        *nncf_weights.OFFERS,
    ),
    may_be_left_out=("symmetric_weights",),
    fields={
        "symmetric_weights": "whether weights have no zero points",
        "reduce_range": "NNCF's overflow_fix: half the range for weights, to avoid overflow",
    },
)
