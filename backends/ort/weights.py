"""ONNX Runtime's tools that need no calibration: dynamic INT8, and products of blocks of weights.

Both look for products with a constant. The head of a language model that is its embedding gets a
weight of its own first; the embedding itself stays in FP32.
"""

from __future__ import annotations

import contextlib
import io
import logging
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

from backends.opsets import for_quantization
from backends.ort.library import quantization
from backends.ort.untied import untied
from simulator.contract import (
    Admits,
    Array,
    Cast,
    KeepList,
    ModelError,
    Offer,
    Quantizer,
    Stage,
    kept,
)

_PRODUCTS = ["Attention", "Conv", "LSTM", "MatMul"]  # Gemm becomes MatMul


class OrtDynamicQuantizer(Quantizer):
    """``quantize_dynamic``: symmetric INT8 weights, and activations rounded as they come.

    The scale of activations (UINT8) is taken from all values of a tensor: a text in a batch has
    another one than alone, so answers depend on the batch. Convolutions, matrix products,
    Attention and LSTM are quantized, where they have a constant.
    """

    calibrates: ClassVar[bool] = False

    def quantize(self, source: Path, target: Path, feeds: Iterator[Mapping[str, Array]]) -> None:
        """Write integer kernels; *feeds* is not read."""
        model = untied(for_quantization(source))
        spared = kept(model, self.options["keep"])
        with _quietly():
            quantization.quantize_dynamic(
                model,
                str(target),
                op_types_to_quantize=_PRODUCTS,
                per_channel=self.options["weights"] == "per_channel",
                reduce_range=self.options["reduce_range"],
                weight_type=quantization.QuantType.QInt8,
                nodes_to_exclude=sorted(spared),
            )
        _refuse_equal(target, {"ConvInteger", "DynamicQuantizeLSTM", "MatMulInteger", "QAttention"})


class OrtBlockWeights(Cast):
    """``MatMulNBitsQuantizer``, round to nearest: blocks of a weight's rows share a scale.

    The operator MatMulNBits multiplies FP32 activations (accuracy level 1) with these weights.
    Biases and embeddings stay in FP32.
    """

    portable: ClassVar[bool] = False
    proved_on: ClassVar[str] = "matmul"

    def cast(self, source: Path, target: Path) -> None:
        """Write *source* with MatMulNBits in place of MatMul to *target*."""
        import onnx

        model = untied(onnx.load(str(source)))
        spared = kept(model, self.options["keep"])
        with _quietly():
            from onnxruntime.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer

            tool = MatMulNBitsQuantizer(
                model,
                bits={"int4": 4, "int8": 8}[self.options["storage"]],
                block_size=self.options["block_size"],
                is_symmetric=self.options["symmetric"],
                accuracy_level=1,
                nodes_to_exclude=sorted(spared),
                op_types_to_quantize=("MatMul",),
            )
            tool.process()
            tool.model.save_model_to_file(str(target))
        _refuse_equal(target, {"MatMulNBits"})


def _refuse_equal(target: Path, kinds: set[str]) -> None:
    """Refuse a file in which nothing was quantized.

    Raises:
        ModelError: it has none of these operators.
    """
    import onnx

    nodes = onnx.load(str(target), load_external_data=False).graph.node
    if not any(node.op_type in kinds for node in nodes):
        raise ModelError("there is no matrix product with a constant outside the keep list")


@contextlib.contextmanager
def _quietly() -> Iterator[None]:
    """Keep what the tools print and log; they set up the root logger when they are imported."""
    before = logging.root.manager.disable
    handlers, level = list(logging.root.handlers), logging.root.level
    logging.disable(logging.WARNING)
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            yield
    finally:
        logging.disable(before)
        logging.root.handlers[:] = handlers
        logging.root.setLevel(level)


_DYNAMIC: dict[str, Admits] = {
    "weights": ("per_channel", "per_tensor"),
    "activations": ("dynamic",),
    "reduce_range": (False, True),
    "keep": KeepList(),
}
_BLOCKS: dict[str, Admits] = {
    "storage": ("int4", "int8"),
    "granularity": ("block",),
    "block_size": (16, 32, 64, 128, 256),
    "symmetric": (False, True),
    "keep": KeepList(),
}
_DOCS = "https://onnxruntime.ai/docs/performance/model-optimizations/quantization.html"
_NBITS: Any = f"{_DOCS}#quantize-to-int4uint4"

OFFERS = (
    Offer(Stage.QUANTIZE, _DYNAMIC, OrtDynamicQuantizer, source=_DOCS),
    Offer(Stage.CAST, _BLOCKS, OrtBlockWeights, source=_NBITS),
)
