"""ai-edge-quantizer: .tflite files with weights, or weights and activations, in fewer bits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

from backends.litert.interpreter import litert
from backends.litert.tensor import Tensor
from backends.quiet import quiet
from simulator.contract import (
    Admits,
    Array,
    Backend,
    Cast,
    Library,
    Offer,
    Quantizer,
    Stage,
    Unsupported,
)

_PACKAGE = "ai-edge-quantizer"
edge = Library("ai_edge_quantizer.quantizer", distribution=_PACKAGE, extra="litert")
recipes = Library("ai_edge_quantizer.recipe", distribution=_PACKAGE, extra="litert")

_KINDS = {"fp16": (16, "FLOAT_CASTING"), "int8": (8, "MIN_MAX_UNIFORM_QUANT")}
"""For each storage the number of bits and the library's name of the method."""


class EdgeQuantizer(Quantizer):
    """Static post-training quantization by one of the library's own recipes.

    A range is the moving average of each sample's minimum and maximum, with weights 0.95 (old) and
    0.05 (new). So it depends on the order of the samples and may clip. The library reads the
    samples twice, so all are kept in memory.
    """

    format: ClassVar[str] = "tflite"

    def quantize(self, source: Path, target: Path, feeds: Iterator[Mapping[str, Array]]) -> None:
        """Calibrate on *feeds* with one thread, then write integer tensors and kernels."""
        key, arguments = _signature(source)
        samples = [arguments(feed) for feed in feeds]
        with quiet():
            maker = edge.Quantizer(str(source), getattr(recipes, self.options["recipe"])())
            ranges = maker.calibrate({key: samples}, num_threads=1)
            maker.quantize(ranges).export_model(str(target))


class EdgeCast(Cast):
    """Weights in FP16, or in INT8 with a scale per channel; biases and activations stay FP32.

    Each weight is followed by a DEQUANTIZE operator, so the arithmetic is FP32.
    """

    format: ClassVar[str] = "tflite"

    def cast(self, source: Path, target: Path) -> None:
        """Write *source* to *target*, with its weights in the requested type."""
        bits, way = _KINDS[self.options["storage"]]
        with quiet():
            maker = edge.Quantizer(str(source))
            maker.add_weight_only_config(
                regex=".*",
                operation_name=edge.qtyping.TFLOperationName.ALL_SUPPORTED,
                num_bits=bits,
                algorithm_key=getattr(edge.algorithm_manager.AlgorithmName, way),
            )
            maker.quantize().export_model(str(target))


def _signature(file: Path) -> tuple[str, Any]:
    """Return the name of the file's signature, and a function from a feed to its arguments."""
    with quiet():
        opened = litert.Interpreter(model_path=str(file))
    signatures = opened.get_signature_list()
    if len(signatures) != 1:
        raise Unsupported(f"{file} has {len(signatures)} signatures; calibration needs one")
    ((key, names),) = signatures.items()
    (name,), (detail,) = names["inputs"], opened.get_input_details()
    tensor = Tensor.of(detail)
    return key, lambda feed: {name: tensor.store(*feed.values())}


_WEIGHTS: dict[str, Admits] = {"granularity": ("per_channel",), "symmetric": (True,)}
_SOURCE = "https://github.com/google-ai-edge/ai-edge-quantizer"

BACKEND = Backend(
    name="ai_edge_quantizer",
    summary="ai-edge-quantizer: .tflite files in INT8, and weights in FP16 and INT8",
    library=edge,
    companions=(litert,),
    offers=(
        Offer(
            Stage.QUANTIZE,
            {"recipe": ("static_wi8_ai8", "static_wi8_ai16"), "weights": ("per_channel",)},
            EdgeQuantizer,
            source=_SOURCE,
        ),
        Offer(Stage.CAST, {"storage": ("fp16",)}, EdgeCast, source=_SOURCE),
        Offer(Stage.CAST, {"storage": ("int8",), **_WEIGHTS}, EdgeCast, source=_SOURCE),
    ),
    fields={"recipe": "ai-edge-quantizer's: the types of weights and activations"},
)
