"""The pooling axis: size, padding and divisor of every MaxPool and AveragePool."""

from __future__ import annotations

from dataclasses import dataclass

import onnx

from simulator.contract.passes import GraphPass
from simulator.errors import ModelError
from simulator.model.passes.graph import edit
from simulator.model.passes.graph.change import Change, Seen
from simulator.model.passes.graph.crop import fit
from simulator.profile.graph import Pooling

AXIS, NODES = "pooling", "MaxPool or AveragePool"
POOLS = ("MaxPool", "AveragePool")
SILENT = "the sizes divide evenly or padding has no effect"


def apply(model: onnx.ModelProto, asked: Pooling) -> Change:
    """Apply the requested settings to every pooling node, in place.

    This changes MaxPool and AveragePool; global pooling has no size to round. A pool without
    padding is TensorFlow's VALID and gets no padding under any ``auto_pad``.

    Args:
        model: an ONNX model of opset 10 or later, which introduced ``ceil_mode`` and Slice.
        asked: the profile's section.

    Raises:
        ModelError: a later node no longer fits the new size, and ``on_shape_change`` is
            ``error`` or cropping does not help; the message names the node.

    Source:
        ONNX operators MaxPool and AveragePool. Symmetric: ``padding`` of torch.nn.MaxPool2d is
        one number for both sides. SAME: tensorflow.org/api_docs/python/tf/nn, "Padding".
    """
    pools = edit.nodes_of(model, *POOLS)
    shapes = edit.shapes_of(model)
    before = {node.output[0]: _seen(node, shapes) for node in pools}
    modes = {edit.attributes(node).get("ceil_mode", 0) for node in pools}
    if asked.ceil_mode != "keep" and modes - {_ceil(asked)}:
        edit.need_opset(model, 10, "ceil_mode")
    sizes = shapes
    for node in pools:
        _set(node, sizes, asked)
        edit.forget(model, shapes)
        sizes = edit.shapes_of(model)
    what = ", ".join(
        f"{name} {value}"
        for name, value in asked.model_dump(exclude={"on_shape_change"}).items()
        if value != "keep"
    )
    cut = fit(model, shapes, asked.on_shape_change == "crop", what)
    sizes = edit.shapes_of(model)
    after = {node.output[0]: _seen(node, sizes, asked) for node in edit.nodes_of(model, *POOLS)}
    return Change(AXIS, NODES, before, after, SILENT, cut)


@dataclass(frozen=True, slots=True)
class _Window:
    """A pooling node with the size of its input; each list has one entry per spatial axis."""

    sizes: list[int]
    spans: list[int]
    strides: list[int]
    pads: list[tuple[int, int]]
    auto: str

    @property
    def known(self) -> bool:
        return len(self.sizes) == len(self.spans) and 0 not in self.sizes

    def same(self, odd_first: bool) -> list[tuple[int, int]]:
        """Return the padding of TensorFlow's SAME, which gives ceil(size / stride) windows."""
        found = []
        for size, span, stride in zip(self.sizes, self.spans, self.strides, strict=True):
            total = max((-(-size // stride) - 1) * stride + span - size, 0)
            less = total // 2
            found.append((total - less, less) if odd_first else (less, total - less))
        return found


def _window(node: onnx.NodeProto, shapes: edit.Shapes) -> _Window:
    values = edit.attributes(node)
    kernel = values["kernel_shape"]
    rank = len(kernel)
    strides, dilations = (values.get(name, [1] * rank) for name in ("strides", "dilations"))
    spans = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
    auto = values.get("auto_pad", "NOTSET")
    written = values.get("pads", [0] * 2 * rank)
    pads = list(zip(written[:rank], written[rank:], strict=True))
    window = _Window(list(shapes.get(node.input[0], []))[2:], spans, list(strides), pads, auto)
    if auto.startswith("SAME") and window.known:
        pads[:] = window.same(auto == "SAME_LOWER")
    return window


def _set(node: onnx.NodeProto, shapes: edit.Shapes, asked: Pooling) -> None:
    window = _window(node, shapes)
    padded = any(map(any, window.pads)) or window.auto.startswith("SAME")
    if asked.auto_pad != "keep" and padded:
        if not window.known:
            raise ModelError(f"auto_pad: the input of {edit.label(node)} has no fixed size")
        pads = [(-(-sum(pair) // 2),) * 2 for pair in window.pads]
        if asked.auto_pad != "symmetric":
            pads = window.same(asked.auto_pad == "same_lower")
            edit.set_attributes(node, ceil_mode=None)
        ends = [pair[0] for pair in pads] + [pair[1] for pair in pads]
        edit.set_attributes(node, auto_pad=None, pads=ends)
        window = _window(node, shapes)
    if asked.ceil_mode != "keep" and not _same(window, asked):
        ceil = asked.ceil_mode == "ceil" and not _adds_nothing(window)
        edit.set_attributes(node, ceil_mode=int(ceil))
    if asked.count_include_pad != "keep" and node.op_type == "AveragePool":
        edit.set_attributes(node, count_include_pad=int(asked.count_include_pad == "include"))


def _same(window: _Window, asked: Pooling) -> bool:
    """Whether the output size follows TensorFlow's rule, which ignores the rounding mode."""
    written = asked.auto_pad in ("same_upper", "same_lower") and any(map(any, window.pads))
    return written or window.auto.startswith("SAME")


def _adds_nothing(window: _Window) -> bool:
    """Whether every window that rounding up adds would start in the right padding.

    PyTorch, ONNX Runtime and ONNX's reference drop such windows, so the node does not change.
    ONNX's shape inference (1.23) counts them and would report errors in later nodes.
    """
    if not window.known:
        return False
    starts_inside = []
    rows = zip(window.sizes, window.spans, window.strides, window.pads, strict=True)
    for size, span, stride, (first, last) in rows:
        whole, rest = divmod(size + first + last - span, stride)
        if rest:
            starts_inside.append((whole + 1) * stride < size + first)
    return bool(starts_inside) and not any(starts_inside)


def _ceil(asked: Pooling) -> int:
    return int(asked.ceil_mode == "ceil")


def _seen(node: onnx.NodeProto, shapes: edit.Shapes, asked: Pooling | None = None) -> Seen:
    values = edit.attributes(node)
    window = _window(node, shapes)
    size = tuple(shapes.get(node.output[0], []))
    ceil = values.get("ceil_mode", 0)
    if asked and asked.ceil_mode != "keep":
        ceil = _ceil(asked)
    include = values.get("count_include_pad", 0)
    setting = (ceil, include, tuple(window.pads), "" if window.known else window.auto)
    if not window.known or 0 in size[2:]:
        return Seen(node.op_type, setting, setting, size)
    counted = []
    for i, (first, last) in enumerate(window.pads):
        end = (size[2 + i] - 1) * window.strides[i] + window.spans[i] - first
        counted.append((first, min(max(end - window.sizes[i], 0), last)))
    divisor = include if any(map(any, counted)) else None
    return Seen(node.op_type, setting, (size, tuple(counted), divisor), size)


PASS = GraphPass(AXIS, 100, Pooling, Pooling(), apply)
