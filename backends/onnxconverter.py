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

    Weights are rounded to the nearest FP16 value; magnitudes below 1e-7 become 1e-7 and those
    above 1e4 become 1e4, the library's defaults. Kept nodes have their own FP32 weights, and FP32
    inputs and outputs between Casts; tensors between a kept node and another one are rounded to
    FP16. The library also keeps its own list of operators in FP32 (Resize, TopK,
    NonMaxSuppression, Range, CumSum, Min, Max and others), and so are Casts to FP32.
    """

    def cast(self, source: Path, target: Path) -> None:
        """Write *source* with FP16 weights to *target*."""
        import onnx

        model = onnx.load(str(source))
        spared = kept(model, self.options["keep"])
        blocked = spared | {
            node.name
            for node in model.graph.node
            if node.op_type in float16.DEFAULT_OP_BLOCK_LIST or _gives_fp32(node)
        }
        _part_constants(model.graph, blocked)
        _part_outputs(model.graph, blocked)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # one warning per clamped tensor, see above
            half = float16.convert_float_to_float16(
                model, keep_io_types=True, node_block_list=sorted(blocked)
            )
        _float_outputs(half.graph)
        onnx.checker.check_model(half, full_check=True)
        onnx.save(half, str(target))


def _gives_fp32(node: Any) -> bool:
    """Whether a node casts to FP32, which the library would take for FP16."""
    return node.op_type == "Cast" and any(one.name == "to" and one.i == 1 for one in node.attribute)


def _part_constants(graph: Any, blocked: set[str]) -> None:
    """Copy weights that blocked nodes share with others; the library gives them a wrong type."""
    inside = [node for node in graph.node if node.name in blocked]
    others = {name for node in graph.node if node.name not in blocked for name in node.input}
    for tensor in list(graph.initializer):
        if tensor.name in others and any(tensor.name in node.input for node in inside):
            copy = graph.initializer.add()
            copy.CopyFrom(tensor)
            copy.name = f"{tensor.name}_kept"
            for node in inside:
                node.input[:] = [copy.name if x == tensor.name else x for x in node.input]


def _part_outputs(graph: Any, blocked: set[str]) -> None:
    """Copy outputs that nodes read too; the library gives those nodes the FP32 of the output."""
    import onnx

    read = {name for node in graph.node for name in node.input}
    kept = {name for node in graph.node if node.name in blocked for name in node.output}
    for port in graph.output:
        if port.name in read - kept:
            inside = f"{port.name}_inside"
            for node in graph.node:
                node.input[:] = [inside if name == port.name else name for name in node.input]
                node.output[:] = [inside if name == port.name else name for name in node.output]
            name = f"{port.name}_given"
            graph.node.append(onnx.helper.make_node("Identity", [inside], [port.name], name))


def _float_outputs(graph: Any) -> None:
    """Make the outputs of kept nodes FP32, because the library makes them FP16."""
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
