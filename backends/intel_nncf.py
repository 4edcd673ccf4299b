"""NNCF: OpenVINO's post-training quantizer, on ONNX models."""

from __future__ import annotations

import contextlib
import io
import logging
from collections.abc import Iterator, Mapping
from pathlib import Path

from simulator.contract import Array, Backend, Library, Offer, Quantizer, Stage

nncf = Library("nncf", distribution="nncf", extra="openvino")


class NncfQuantizer(Quantizer):
    """``nncf.quantize`` for the CPU; weights are INT8 per channel.

    ``symmetric`` is NNCF's preset: ``performance`` (symmetric activations) or ``mixed``
    (asymmetric ones). ``mean_minmax`` is NNCF's default range estimator (mean of the minima
    and maxima over samples); ``minmax`` takes the extremes.
    """

    def quantize(self, source: Path, target: Path, feeds: Iterator[Mapping[str, Array]]) -> None:
        """Calibrate on *feeds*, then write QuantizeLinear / DequantizeLinear pairs."""
        import onnx

        samples = list(feeds)
        logging.getLogger("nncf").setLevel(logging.ERROR)
        parameters = nncf.AdvancedQuantizationParameters(
            disable_bias_correction=not self.options["bias_correction"],
            **self._ranges(),
        )
        presets = nncf.QuantizationPreset
        with contextlib.redirect_stdout(io.StringIO()):
            model = nncf.quantize(
                onnx.load(str(source)),
                nncf.Dataset(samples, dict),
                subset_size=len(samples),
                preset=presets.PERFORMANCE if self.options["symmetric"] else presets.MIXED,
                target_device=nncf.TargetDevice.CPU,
                advanced_parameters=parameters,
            )
        onnx.save(model, str(target))

    def _ranges(self) -> dict[str, object]:
        if self.options["method"] == "mean_minmax":
            return {}
        from nncf.quantization.range_estimator import RangeEstimatorParametersSet

        return {"activations_range_estimator_params": RangeEstimatorParametersSet.MINMAX}


BACKEND = Backend(
    name="nncf",
    summary="NNCF post-training quantization, as OpenVINO recommends it",
    library=nncf,
    offers=(
        Offer(
            Stage.QUANTIZE,
            {
                "weights": ("per_channel",),
                "symmetric": (False, True),
                "method": ("mean_minmax", "minmax"),
                "bias_correction": (True, False),
            },
            NncfQuantizer,
            source="https://docs.openvino.ai/ Basic Quantization Flow",
        ),
    ),
)
