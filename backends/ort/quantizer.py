"""ONNX Runtime's static quantizer, a part of the backend ``onnxruntime``."""

from __future__ import annotations

import contextlib
import io
import tempfile
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from backends.opsets import for_quantization
from backends.ort.calibration import calibrate
from backends.ort.library import quantization
from backends.ort.powers import power_of_two
from simulator.contract import (
    Admits,
    Array,
    AtLeast,
    Implied,
    KeepList,
    ModelError,
    Offer,
    Quantizer,
    Stage,
    kept,
)

_TENSORRT = {
    "WeightSymmetric": True,
    "AddQDQPairToWeight": True,
    "QuantizeBias": False,
    "DedicatedQDQPair": True,
}

_TYPES = {"uint8": "QUInt8", "int8": "QInt8", "uint16": "QUInt16", "int16": "QInt16"}
_PRODUCTS = ("Conv", "ConvTranspose", "Gemm", "MatMul")


class OrtQuantizer(Quantizer):
    """Static QDQ quantization by ``onnxruntime.quantization``; weights are symmetric INT8.

    ``entropy`` at ONNX Runtime's default of 128 histogram bins equals ``minmax`` exactly, so
    fewer than 129 bins are refused. ``mse`` is our own method on ONNX Runtime's histograms: see
    `backends.ort.calibration.least_error`. ``reduce_range`` makes 7-bit weights. A keep list uses
    the node names after ``quant_pre_process``, which folds constants and merges
    BatchNormalization; tensors between a kept node and a quantized one are still rounded.
    ``operators: products`` rounds convolutions and matrix products only, with their inputs and
    outputs. ``scales: power_of_two`` rounds each scale up to a power of two, and
    ``power_of_two_activations`` those of activations: see `backends.ort.powers`.
    ``symmetric_weights: false`` gives weights a zero point, of the whole tensor only: per channel
    the library makes them symmetric in any case. 16-bit activations are QuantizeLinear and
    DequantizeLinear of operator set 21, between which ONNX Runtime computes in FP32.
    ``target: tensorrt`` writes the form that TensorRT needs: zero points of 0, FP32
    weights followed by a QuantizeLinear / DequantizeLinear pair, FP32 biases, a pair for every
    consumer. ``bias_correction`` is our own, on its file: see
    `backends.ort.bias_correction.correct`.
    """

    def quantize(self, source: Path, target: Path, feeds: Iterator[Mapping[str, Array]]) -> None:
        """Calibrate on *feeds*, then write QuantizeLinear / DequantizeLinear pairs."""
        import onnx
        from onnxruntime.quantization.registry import QDQRegistry, QLinearOpsRegistry

        from backends.ort.bias_correction import correct, with_biases
        from backends.ort.bias_correction import kept as kept_feeds

        options = self.options
        operators = list({**QLinearOpsRegistry, **QDQRegistry})
        if options["operators"] == "products":
            operators = [name for name in operators if name in _PRODUCTS]
        with tempfile.TemporaryDirectory() as name, contextlib.redirect_stdout(io.StringIO()):
            folder = Path(name)
            prepared, ranges = folder / "prepared.onnx", folder / "ranges.json"
            spared = _prepare(source, prepared, options["keep"])
            samples: list[Mapping[str, Array]] = []
            if options["bias_correction"]:
                onnx.save(with_biases(onnx.load(str(prepared))), str(prepared))
                feeds = kept_feeds(feeds, samples)
            method = calibrate(prepared, operators, feeds, ranges, options)

            write = partial(
                self._write,
                prepared,
                target,
                calibration_cache_path=ranges,
                op_types_to_quantize=operators,
                nodes_to_exclude=spared,
                calibrate_method=method,
            )
            write()
            if options["scales"] != "any":
                write(power_of_two(onnx.load(str(target)), options))
            if options["bias_correction"]:
                model = onnx.load(str(target))
                correct(onnx.load(str(prepared)), model, samples)
                onnx.save(model, str(target))

    def _write(
        self, source: Path, target: Path, overrides: Mapping[str, Any] | None = None, **how: Any
    ) -> None:
        from backends.quiet import quiet

        options, types = self.options, quantization.QuantType
        extra = {
            "ActivationSymmetric": options["symmetric"],
            "WeightSymmetric": options["symmetric_weights"],
            "TensorQuantOverrides": overrides or {},
        }
        with quiet():
            quantization.quantize_static(
                str(source),
                str(target),
                quant_format=quantization.QuantFormat.QDQ,
                per_channel=options["weights"] == "per_channel",
                reduce_range=options["reduce_range"],
                activation_type=getattr(types, _TYPES[options["activations"]]),
                weight_type=types.QInt8,
                extra_options=extra | (_TENSORRT if options["target"] == "tensorrt" else {}),
                **how,
            )


def _prepare(source: Path, target: Path, keep: Mapping[str, Any]) -> list[str]:
    """Write the model to quantize; return the names of the nodes to exclude."""
    import onnx
    from onnxruntime.quantization.shape_inference import quant_pre_process

    model = for_quantization(source)
    by_type = kept(model, {**keep, "nodes": []})
    named = target.with_name("named.onnx")
    onnx.save(model, str(named))
    quant_pre_process(str(named), str(target), skip_symbolic_shape=True)
    prepared = onnx.load(str(target))
    spared = kept(prepared, keep)
    if lost := by_type - {node.name for node in prepared.graph.node}:
        raise ModelError(
            f"keep.op_types: ONNX Runtime's quantizer merges {', '.join(sorted(lost))} into other "
            "nodes before it quantizes; keep those by their op_type or name"
        )
    onnx.save(prepared, str(target))
    return sorted(spared)


_CPU: dict[str, Admits] = {
    "weights": ("per_channel", "per_tensor"),
    "symmetric_weights": (True,),
    "activations": tuple(_TYPES),
    "symmetric": (False, True),
    "scales": Implied(("any", "power_of_two", "power_of_two_activations"), "any"),
    "reduce_range": (False, True),
    "keep": KeepList(),
    "target": ("cpu",),
    "operators": ("all",),
}
_FORMS: tuple[dict[str, Admits], ...] = (
    _CPU,
    {**_CPU, "operators": ("products",)},
    {**_CPU, "weights": ("per_tensor",), "symmetric_weights": (False,)},
    {
        **_CPU,
        "activations": ("int8",),
        "symmetric": (True,),
        "target": ("tensorrt",),
        "reduce_range": (False,),
    },
)
_METHODS: tuple[dict[str, Admits], ...] = (
    {"method": ("percentile",), "num_bins": AtLeast(2), "percentile": (99.0, 99.9, 99.99, 99.999)},
    {"method": ("mse",), "num_bins": AtLeast(512)},
    {"method": ("entropy",), "num_bins": AtLeast(129)},
    {"method": ("minmax",)},
)
_SOURCE = "https://onnxruntime.ai/docs/performance/model-optimizations/quantization.html"

OFFERS = tuple(
    Offer(
        Stage.QUANTIZE,
        {**form, **method, "bias_correction": (corrected,)},
        OrtQuantizer,
        source=_SOURCE,
    )
    for corrected in (False, True)
    for form in _FORMS
    for method in _METHODS
)
"""One offer for each form of the file and each calibration method, without correction first."""
