"""A range restriction: activations are held within the range that they have without faults.

Source:
    Chen, Li and Pattabiraman, A Low-cost Fault Corrector for Deep Neural Networks through Range
    Restriction (Ranger), DSN 2021.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np
import onnx

from simulator.contract import Array
from simulator.errors import DataError, ModelError, unknown
from simulator.model.onnxfile import load
from simulator.model.passes.graph import edit

LAYERS = ("Conv", "ConvTranspose", "Gemm", "MatMul")
ACTIVATIONS = (
    "Relu", "Clip", "LeakyRelu", "PRelu", "ThresholdedRelu", "Elu", "Selu", "Celu", "Sigmoid",
    "HardSigmoid", "HardSwish", "Tanh", "Gelu", "Swish", "Mish", "Softplus", "Softsign",
)  # fmt: skip
_INTEGER = (
    "QuantizeLinear", "DynamicQuantizeLinear", "QLinearConv", "QLinearMatMul", "ConvInteger",
    "MatMulInteger",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Range:
    """What values an activation may have.

    Attributes:
        low: the smallest one.
        high: the largest one.
    """

    low: float
    high: float


@dataclass
class Ranges:
    """The smallest and the largest value of each activation, over samples without faults.

    Attributes:
        found: by layer.
    """

    found: dict[str, Range] = field(default_factory=dict)

    def add(self, activations: Mapping[str, Array]) -> None:
        """Take in the activations of one sample.

        Args:
            activations: by layer; of any shape, floats.

        Raises:
            DataError: one has no value, or one that is not finite.
        """
        for layer, values in activations.items():
            if not values.size or not np.isfinite(values).all():
                raise DataError(f"{layer}: no range can be taken of no value, NaN or infinity")
            low, high = float(values.min()), float(values.max())
            if layer in self.found:
                low, high = min(low, self.found[layer].low), max(high, self.found[layer].high)
            self.found[layer] = Range(low, high)


def activations(model: onnx.ModelProto) -> dict[str, str]:
    """Return the tensor whose range is restricted for each layer, in the graph's order.

    It is what the activation function after a convolution or a product of matrices gives, also
    behind a batch normalization; the layer's own output where another node reads it as well, or
    where no activation follows.

    Args:
        model: in float.

    Returns:
        From the layer's name (of a layer without one, its output) to a tensor.
    """
    readers: dict[str, list[onnx.NodeProto]] = {}
    for node in model.graph.node:
        for name in node.input:
            readers.setdefault(name, []).append(node)
    outputs = {value.name for value in model.graph.output}
    found = {}
    for node in edit.nodes_of(model, *LAYERS):
        tensor = last = node.output[0]
        while len(readers.get(last, ())) == 1 and last not in outputs:
            (after,) = readers[last]
            if after.op_type not in (*ACTIVATIONS, "BatchNormalization"):
                break
            last = after.output[0]
            if after.op_type in ACTIVATIONS:
                tensor = last
                break
        found[node.name or node.output[0]] = tensor
    return found


def restrict(
    source: Path, target: Path, ranges: Mapping[str, Range], by: Literal["clip", "min_max"]
) -> dict[str, str]:
    """Write a copy of a model that holds activations within ranges.

    Infinities become the nearest bound; NaN stays NaN, by ONNX' rules.

    Args:
        source: an ONNX file whose activations are floats.
        target: where to write; external data becomes part of the file.
        ranges: by layer, see :func:`activations`; other layers do not change.
        by: ``clip``: one Clip. Runtimes fuse it into the layer (ONNX Runtime's FusedConv), where it
            costs next to nothing; it then acts before the layer's output is stored, so that a
            fault in that output comes after it. ``min_max``: a Max and a Min, which stay apart: the
            stored output is restricted where it is read.

    Returns:
        The tensors that are restricted, by layer.

    Raises:
        ModelError: the model's activations are integers, a layer is not in it, or a range has no
            value.
    """
    model = load(source)
    if any(node.op_type in _INTEGER for node in model.graph.node):
        raise ModelError(
            f"{source}: a range restriction is for float activations; integer ones are bounded by "
            "their quantization already"
        )
    edit.need_opset(model, 11, "a range restriction")
    layers, types = activations(model), edit.dtypes_of(model)
    for layer in ranges:
        if layer not in layers:
            raise ModelError(f"{source}: {unknown('layer', layer, layers)}")
    chosen = {layers[layer]: one for layer, one in ranges.items()}
    for tensor, one in chosen.items():
        if not one.low <= one.high:
            raise ModelError(f"{source}: the range of {tensor!r} has no value: {one}")
    _write(model, chosen, types, by)
    try:
        edit.infer(model)
    except edit.Misfit as error:
        raise ModelError(f"{source}: a range restriction makes it invalid: {error}") from None
    onnx.save(model, str(target))
    return {layer: layers[layer] for layer in ranges}


def _write(
    model: onnx.ModelProto,
    chosen: Mapping[str, Range],
    types: Mapping[str, np.dtype[np.generic]],
    by: str,
) -> None:
    """Rename each tensor where it is made, and give its name to what restricts it."""
    nodes: list[onnx.NodeProto] = []
    for node in model.graph.node:
        nodes.append(node)
        for place, tensor in enumerate(node.output):
            if tensor not in chosen:
                continue
            build = edit.Builder(model, "range", tensor, types.get(tensor, np.dtype(np.float32)))
            low, high = (build.constant(v) for v in (chosen[tensor].low, chosen[tensor].high))
            free = node.output[place] = f"{low}/free"
            if by == "clip":
                build("Clip", free, low, high, last=True)
            else:
                build("Min", build("Max", free, low), high, last=True)
            nodes.extend(build.nodes)
    del model.graph.node[:]
    model.graph.node.extend(nodes)
