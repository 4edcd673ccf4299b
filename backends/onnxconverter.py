"""onnxconverter-common: FP16 weights in an ONNX file."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

from simulator.contract import Backend, Cast, KeepList, Library, Offer, Stage, kept

float16 = Library(
    "onnxconverter_common.float16", distribution="onnxconverter-common", extra="onnxruntime"
)


class HalfCast(Cast):
    """``convert_float_to_float16`` with FP32 inputs and outputs.

    Weights are rounded to the nearest half; magnitudes below 1e-7 are raised to 1e-7 and
    above 1e4 lowered to 1e4, as the library does by default. Kept nodes get their own FP32
    weights, and FP32 inputs and outputs between Casts; what lies between a kept node and
    one that is not is rounded to half. The library's own list of operators stays in FP32
    besides (Resize, TopK, NonMaxSuppression, Range, CumSum, Min, Max and others).
    """

    def cast(self, source: Path, target: Path) -> None:
        """Write *source* with FP16 weights to *target*."""
        import onnx

        model = onnx.load(str(source))
        spared = kept(model, self.options["keep"])
        blocked = spared | {
            node.name for node in model.graph.node if node.op_type in float16.DEFAULT_OP_BLOCK_LIST
        }
        _part_constants(model.graph, blocked)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # one warning per clamped tensor, see above
            half = float16.convert_float_to_float16(
                model, keep_io_types=True, node_block_list=sorted(blocked)
            )
        _float_outputs(half.graph)
        onnx.checker.check_model(half, full_check=True)
        onnx.save(half, str(target))


def _part_constants(graph: Any, blocked: set[str]) -> None:
    """Copy the weights that blocked nodes share with others, which the library mistypes."""
    inside = [node for node in graph.node if node.name in blocked]
    others = {name for node in graph.node if node.name not in blocked for name in node.input}
    for tensor in list(graph.initializer):
        if tensor.name in others and any(tensor.name in node.input for node in inside):
            copy = graph.initializer.add()
            copy.CopyFrom(tensor)
            copy.name = f"{tensor.name}_kept"
            for node in inside:
                node.input[:] = [copy.name if x == tensor.name else x for x in node.input]


def _float_outputs(graph: Any) -> None:
    """Give the outputs of kept nodes as FP32: the library makes them FP16 all the same."""
    from onnx import TensorProto

    for port in graph.output:
        if port.type.tensor_type.elem_type != TensorProto.FLOAT16:
            continue
        port.type.tensor_type.elem_type = TensorProto.FLOAT
        cast = next(node for node in graph.node if port.name in node.output)
        renamed = {cast.input[0]: port.name, port.name: f"{port.name}_half"}
        for node in graph.node:
            node.input[:] = [renamed.get(name, name) for name in node.input]
            node.output[:] = [renamed.get(name, name) for name in node.output]
        if not any(cast.output[0] in node.input for node in graph.node):
            graph.node.remove(cast)


BACKEND = Backend(
    name="onnxconverter",
    summary="onnxconverter-common: ONNX weights stored as FP16",
    library=float16,
    offers=(Offer(Stage.CAST, {"storage": ("fp16",), "keep": KeepList()}, HalfCast),),
)
