"""NNCF: OpenVINO's post-training quantizer, on ONNX models."""

from __future__ import annotations

import contextlib
import io
import logging
from collections.abc import Iterator, Mapping
from pathlib import Path

from backends.intel import nncf_weights
from backends.intel.libraries import nncf, ov
from backends.opsets import for_quantization
from simulator.contract import Admits, Array, Backend, KeepList, Offer, Quantizer, Stage, kept


class NncfQuantizer(Quantizer):
    """``nncf.quantize`` for the CPU; weights are INT8 per channel.

    ``symmetric`` is NNCF's preset: ``performance`` (symmetric activations) or ``mixed``
    (asymmetric ones). ``mean_minmax`` is NNCF's default range estimator (mean of the minima
    and maxima over samples); ``minmax`` takes the extremes. ``reduce_range`` is NNCF's
    ``overflow_fix``, which uses half the range for weights: in all layers, in none, or in the
    first layer, which is NNCF's default. A keep list becomes its ``IgnoredScope``.
    """

    def quantize(self, source: Path, target: Path, feeds: Iterator[Mapping[str, Array]]) -> None:
        """Calibrate on *feeds*, then write QuantizeLinear / DequantizeLinear pairs."""
        import onnx

        samples, model = list(feeds), for_quantization(source)
        spared = kept(model, self.options["keep"])
        logging.getLogger("nncf").setLevel(logging.ERROR)
        parameters = nncf.AdvancedQuantizationParameters(
            disable_bias_correction=not self.options["bias_correction"],
            overflow_fix=getattr(nncf.OverflowFix, _OVERFLOW_FIX[self.options["reduce_range"]]),
            **self._ranges(),
        )
        presets = nncf.QuantizationPreset
        with contextlib.redirect_stdout(io.StringIO()):
            model = nncf.quantize(
                model,
                nncf.Dataset(samples, dict),
                subset_size=len(samples),
                preset=presets.PERFORMANCE if self.options["symmetric"] else presets.MIXED,
                target_device=nncf.TargetDevice.CPU,
                ignored_scope=nncf.IgnoredScope(names=sorted(spared)),
                advanced_parameters=parameters,
            )
        onnx.save(model, str(target))

    def _ranges(self) -> dict[str, object]:
        if self.options["method"] == "mean_minmax":
            return {}
        from nncf.quantization.range_estimator import RangeEstimatorParametersSet

        return {"activations_range_estimator_params": RangeEstimatorParametersSet.MINMAX}


_OVERFLOW_FIX = {True: "ENABLE", False: "DISABLE", "first_layer": "FIRST_LAYER"}
_QUANTIZE: dict[str, Admits] = {
    "reduce_range": ("first_layer", True, False),
    "weights": ("per_channel",),
    "symmetric": (False, True),
    "method": ("mean_minmax", "minmax"),
    "bias_correction": (True, False),
    "keep": KeepList(),
}
_SOURCE = "https://docs.openvino.ai/ Basic Quantization Flow"

BACKEND = Backend(
    name="nncf",
    summary="NNCF post-training quantization and compression of weights, as OpenVINO recommends it",
    library=nncf,
    companions=(ov,),
    offers=(Offer(Stage.QUANTIZE, _QUANTIZE, NncfQuantizer, source=_SOURCE), *nncf_weights.OFFERS),
    fields={"reduce_range": "NNCF's overflow_fix: half the range for weights, to avoid overflow"},
)
