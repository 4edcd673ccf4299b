"""Scales that are powers of two, for ONNX Runtime's static quantizer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from simulator.contract import Array, Options

if TYPE_CHECKING:
    import onnx


def power_of_two(made: onnx.ModelProto, options: Options) -> dict[str, list[Mapping[str, Any]]]:
    """Return ``TensorQuantOverrides`` that raise the scales of a file to powers of two.

    The smallest power of two that is not below a scale keeps its range; a zero point that is not
    fixed moves so that the smallest value still has the smallest code. Biases follow, as their
    scale is the product of two others.

    Args:
        made: what the quantizer wrote without overrides.
        options: the quantizer's.

    Source:
        TexasInstruments/edgeai-tidl-tools, docs/quantization.md, Simple Calibration ("only
        Power-of-2 scales for feature maps", either for parameters); AMD, Vitis AI User Guide
        (UG1414), Quantizing with Float Scale ("The quantization for DPU uses power-of-2 scales").
    """
    from onnx.numpy_helper import to_array

    held = {tensor.name: to_array(tensor) for tensor in made.graph.initializer}
    found: dict[str, list[Mapping[str, Any]]] = {}
    for node in made.graph.node:
        name = node.input[0] if node.op_type in _ENDINGS else ""
        stored = name in held
        if node.op_type == "DequantizeLinear" and not (stored and held[name].dtype != np.int32):
            continue  # of an activation, whose QuantizeLinear comes too, or of a bias
        if not name or (stored and options["scales"] != "power_of_two"):
            continue
        scale, zero = (held[one] for one in node.input[1:3])
        fixed = options["symmetric_weights" if stored else "symmetric"]
        axis = {one.name: one.i for one in node.attribute if one.name == "axis" and scale.ndim}
        found[name.removesuffix(_ENDINGS[node.op_type])] = [
            {"scale": np.array(s), "zero_point": np.array(z), **axis}
            for s, z in zip(*_raised(scale.reshape(-1), zero.reshape(-1), fixed), strict=True)
        ]
    return found


_ENDINGS = {"QuantizeLinear": "_QuantizeLinear_Input", "DequantizeLinear": "_quantized"}
"""What ONNX Runtime's quantizer adds to the name of an output of the graph, and of a weight."""


def _raised(scale: Array, zero: Array, fixed: bool) -> tuple[Array, Array]:
    raised = np.exp2(np.ceil(np.log2(scale.astype(np.float64))))
    if fixed:
        return raised.astype(np.float32), zero
    ends = np.iinfo(zero.dtype)
    moved = np.rint(ends.min + (zero.astype(np.float64) - ends.min) * scale / raised)
    return raised.astype(np.float32), moved.astype(zero.dtype)
