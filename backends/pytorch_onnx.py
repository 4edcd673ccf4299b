"""ONNX files as PyTorch modules, by onnx2torch and a few converters that it lacks.

``QuantizeLinear`` rounds, and its gradient passes straight through where it does not clip, so that
models with integer weights and activations have gradients.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import onnx
from onnx import numpy_helper

from simulator.contract import Library, ModelError

torch = Library("torch", distribution="torch", extra="attacks")
onnx2torch = Library("onnx2torch", distribution="onnx2torch", extra="attacks")


def module_of(path: Path) -> Any:
    """Return an ONNX file as a ``torch.fx.GraphModule``.

    Raises:
        ModelError: it has an operator that no converter knows.
    """
    with _without_torchvision():
        onnx2torch.load()
    _register()
    try:
        return onnx2torch.convert(_plain(onnx.load(str(path))))
    except Exception as error:  # a converter may raise anything
        why = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise ModelError(
            f"{path}: onnx2torch cannot differentiate it: {why[:300]}; name a torch.export program "
            "of it in the card, torch_export: FILE.pt2"
        ) from error


def _plain(model: onnx.ModelProto) -> onnx.ModelProto:
    """Give every node a plain name, which becomes source code, and drop needless attributes."""
    constants = {one.name: one for one in model.graph.initializer}
    for number, node in enumerate(model.graph.node):
        node.name = f"node_{number}"
        if node.op_type == "Reshape" and node.input[1] in constants:
            shape = numpy_helper.to_array(constants[node.input[1]])
            kept = [one for one in node.attribute if one.name != "allowzero" or not shape.all()]
            del node.attribute[:]
            node.attribute.extend(kept)
    return model


@contextmanager
def _without_torchvision() -> Iterator[None]:
    """Let onnx2torch load without torchvision, which it needs for boxes only."""
    known = {name: sys.modules.get(name) for name in ("torchvision", "torchvision.ops")}
    whole, part = ModuleType("torchvision"), ModuleType("torchvision.ops")
    whole.ops = part  # type: ignore[attr-defined]
    for name in ("nms", "roi_align", "box_convert"):
        setattr(part, name, None)
    sys.modules.update({"torchvision": whole, "torchvision.ops": part})
    try:
        yield
    finally:
        for name, module in known.items():
            sys.modules.pop(name)
            if module is not None:
                sys.modules[name] = module


@cache
def _register() -> None:
    """Add the converters that onnx2torch lacks."""
    registry = importlib.import_module("onnx2torch.node_converters.registry")
    common = importlib.import_module("onnx2torch.utils.common")
    reduce = importlib.import_module("onnx2torch.node_converters.reduce")

    def mean(node: Any, graph: Any) -> Any:
        axes = None
        if len(node.input_values) > 1 and node.input_values[1]:
            axes = common.get_const_value(node.input_values[1], graph).tolist()
        if axes is None and node.attributes.get("noop_with_empty_axes", 0):
            raise NotImplementedError("ReduceMean without axes that does nothing")
        module = reduce.OnnxReduceStaticAxes("ReduceMean", axes, node.attributes.get("keepdims", 1))
        mapping = common.OnnxMapping(inputs=(node.input_values[0],), outputs=node.output_values)
        return common.OperationConverterResult(module, mapping)

    registry.add_converter(operation_type="ReduceMean", version=18)(mean)
    for operator, function in (("QuantizeLinear", _quantized), ("DequantizeLinear", _real)):
        for version in (10, 13, 19, 21, 23):
            registry.add_converter(operation_type=operator, version=version)(
                _linear(common, function)
            )


def _linear(common: Any, function: Any) -> Any:
    module: Any = torch.nn.Module

    class Linear(module):  # type: ignore[misc]
        def __init__(self, axis: int) -> None:
            super().__init__()
            self.axis = axis

        def forward(self, values: Any, scale: Any, zero: Any = None) -> Any:
            if scale.ndim:
                shape = [1] * values.ndim
                shape[self.axis] = -1
                scale = scale.reshape(shape)
                zero = None if zero is None else zero.reshape(shape)
            return function(values, scale, zero)

    def convert(node: Any, graph: Any) -> Any:
        if node.attributes.get("block_size", 0):
            raise NotImplementedError(f"{node.operation_type} in blocks")
        made = Linear(node.attributes.get("axis", 1))
        return common.OperationConverterResult(made, common.onnx_mapping_from_node(node=node))

    return convert


def _quantized(values: Any, scale: Any, zero: Any) -> Any:
    limits = torch.iinfo(torch.uint8 if zero is None else zero.dtype)
    steps = values / scale
    whole = steps + (torch.round(steps) - steps).detach()
    shifted = whole if zero is None else whole + zero.to(values.dtype)
    return torch.clamp(shifted, limits.min, limits.max)


def _real(values: Any, scale: Any, zero: Any) -> Any:
    steps = values.to(scale.dtype)
    return (steps if zero is None else steps - zero.to(scale.dtype)) * scale
