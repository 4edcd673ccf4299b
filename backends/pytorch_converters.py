"""What onnx2torch lacks: ``ReduceMean`` 18, newer operator sets and norms, models of integers.

``QuantizeLinear`` rounds, and its gradient passes straight through where it does not clip, so that
models with integer weights and activations have gradients; so does that of ``Round``.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from simulator.contract import Array, Library

if TYPE_CHECKING:
    import onnx

torch = Library("torch", distribution="torch", extra="attacks")


@contextmanager
def _without_torchvision() -> Iterator[None]:
    """Let onnx2torch load without torchvision, which it needs for boxes only."""
    known = {name: sys.modules.get(name) for name in ("torchvision", "torchvision.ops")}
    whole, part = ModuleType("torchvision"), ModuleType("torchvision.ops")
    vars(whole)["ops"] = part
    vars(part).update(dict.fromkeys(("nms", "roi_align", "box_convert")))
    sys.modules.update({"torchvision": whole, "torchvision.ops": part})
    try:
        yield
    finally:
        for name, module in known.items():
            sys.modules.pop(name)
            if module is not None:
                sys.modules[name] = module


class _OnnxToTorch(Library):
    """Imports onnx2torch without torchvision."""

    def load(self) -> ModuleType:
        with _without_torchvision():
            return super().load()


onnx2torch = _OnnxToTorch("onnx2torch", distribution="onnx2torch", extra="attacks")


def plain(model: onnx.ModelProto) -> onnx.ModelProto:
    """Give nodes plain names, which become source code, and write what is constant as constants."""
    from onnx import numpy_helper

    graph = model.graph
    known = {one.name: numpy_helper.to_array(one) for one in graph.initializer}
    kept = []
    for number, node in enumerate(graph.node):
        node.name = f"node_{number}"
        drop_allowzero(node, known)
        if node.op_type == "DequantizeLinear" and set(node.input) <= set(known):
            value = _weights(node, *(known[name] for name in node.input))
            graph.initializer.append(numpy_helper.from_array(value, node.output[0]))
        else:
            kept.append(node)
    del graph.node[:]
    graph.node.extend(kept)
    return model


def drop_allowzero(node: onnx.NodeProto, known: Mapping[str, Array]) -> None:
    """Take away what onnx2torch lacks, where it means nothing: a constant shape has no zero."""
    if node.op_type == "Reshape" and node.input[1] in known and known[node.input[1]].all():
        others = [one for one in node.attribute if one.name != "allowzero"]
        del node.attribute[:]
        node.attribute.extend(others)


def _weights(node: onnx.NodeProto, steps: Array, scale: Array, zero: Array | None = None) -> Array:
    """Return constant weights as the real numbers that they stand for."""
    given = {one.name: one.i for one in node.attribute}
    if given.get("block_size", 0):
        raise NotImplementedError("DequantizeLinear in blocks")
    shape = [1] * steps.ndim
    if scale.size > 1:
        shape[given.get("axis", 1)] = -1
    whole = steps.astype(np.float32)
    if zero is not None:
        whole -= zero.astype(np.float32).reshape(shape)
    return np.asarray(whole * scale.reshape(shape if steps.ndim else scale.shape), np.float32)


@cache
def registered() -> None:
    """Add the converters that onnx2torch lacks."""
    onnx2torch.load()
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
    for operator, version, norm in (
        ("GroupNormalization", 21, _group),
        ("RMSNormalization", 23, _rms),
    ):
        registry.add_converter(operation_type=operator, version=version)(_normal(common, norm))
    _take_newer(registry)
    where = registry.OperationDescription("", "LayerNormalization", 17)
    registry._CONVERTER_REGISTRY[where] = _layer(common, registry._CONVERTER_REGISTRY[where])


def _take_newer(registry: Any) -> None:
    """Let the last converter of an operator do for newer versions, where only types were added."""
    from onnx import defs

    last: dict[str, tuple[Any, Any]] = {}
    known = registry._CONVERTER_REGISTRY
    schemas = (one for one in defs.get_all_schemas_with_history() if one.domain == defs.ONNX_DOMAIN)
    for schema in sorted(schemas, key=lambda one: one.since_version):
        where = registry.OperationDescription(schema.domain, schema.name, schema.since_version)
        before, form = last.get(schema.name), _form(schema)
        if where not in known and before is not None and before[1] == form:
            known[where] = before[0]
        if where in known:
            last[schema.name] = known[where], form


def _form(schema: Any) -> Any:
    """Inputs, outputs and attributes; ``saturate`` is of eight-bit numbers alone."""
    ports = [(one.name, one.option) for one in (*schema.inputs, *schema.outputs)]
    own = {
        name: (one.type, one.required, one.default_value.SerializeToString())
        for name, one in schema.attributes.items()
        if name != "saturate"
    }
    return ports, own


def _layer(common: Any, free: Any) -> Any:
    """A LayerNorm takes the shape of its scale; onnx2torch's that of an input it may not know."""

    def convert(node: Any, graph: Any) -> Any:
        source, *names = node.input_values
        if not set(names) <= set(graph.initializers):
            return free(node, graph)
        scale, *shift = (graph.initializers[name].to_torch() for name in names)
        near = node.attributes.get("epsilon", 1e-5)
        made = torch.nn.LayerNorm(tuple(scale.shape), near, bias=bool(shift))
        for parameter, value in zip(made.parameters(), (scale, *shift), strict=True):
            parameter.data = value
        mapping = common.OnnxMapping(inputs=(source,), outputs=node.output_values)
        return common.OperationConverterResult(made, mapping)

    return convert


def _normal(common: Any, function: Any) -> Any:
    module: Any = torch.nn.Module

    class Normal(module):  # type: ignore[misc]
        def __init__(self, attributes: Mapping[str, Any]) -> None:
            super().__init__()
            self.attributes = attributes

        def forward(self, values: Any, scale: Any, shift: Any = None) -> Any:
            return function(values, scale, shift, self.attributes)

    def convert(node: Any, graph: Any) -> Any:
        made = Normal(node.attributes)
        return common.OperationConverterResult(made, common.onnx_mapping_from_node(node=node))

    return convert


def _group(values: Any, scale: Any, shift: Any, given: Mapping[str, Any]) -> Any:
    groups, near = given["num_groups"], given.get("epsilon", 1e-5)
    return torch.nn.functional.group_norm(values, groups, scale, shift, near)


def _rms(values: Any, scale: Any, shift: Any, given: Mapping[str, Any]) -> Any:
    shape, near = values.shape[given.get("axis", -1) :], given.get("epsilon", 1e-5)
    return torch.nn.functional.rms_norm(values, shape, scale.expand(shape), near)


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


def straight(model: Any) -> Any:
    """Let gradients pass the ``Round`` nodes of a converted model; PyTorch's own are 0 there.

    Returns:
        The model itself.
    """
    nodes = importlib.import_module("onnx2torch.node_converters.roundings").OnnxRound
    for module in model.modules():
        if isinstance(module, nodes) and module.round_function is torch.round:
            module.round_function = _rounded
    return model


def _rounded(values: Any) -> Any:
    return values + (torch.round(values) - values).detach()


def _quantized(values: Any, scale: Any, zero: Any) -> Any:
    limits = torch.iinfo(torch.uint8 if zero is None else zero.dtype)
    whole = _rounded(values / scale)
    shifted = whole if zero is None else whole + zero.to(values.dtype)
    return torch.clamp(shifted, limits.min, limits.max)


def _real(values: Any, scale: Any, zero: Any) -> Any:
    steps = values.to(scale.dtype)
    return (steps if zero is None else steps - zero.to(scale.dtype)) * scale
