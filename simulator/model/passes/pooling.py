"""The pooling axis: size, padding and divisor of every MaxPool and AveragePool."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import onnx

from simulator.contract.passes import GraphPass
from simulator.errors import ModelError
from simulator.model.passes.graph import edit
from simulator.model.passes.graph.change import Change, Seen
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


def fit(model: onnx.ModelProto, before: edit.Shapes, crop: bool, what: str) -> tuple[str, ...]:
    """Check that every node fits after a rewrite that changes sizes; crop maps if requested.

    Args:
        model: changed in place; its outputs get their new shapes.
        before: every shape before the rewrite.
        crop: crop maps to their old height and width with a Slice, just before the node that
            does not fit, or before the Flatten or Reshape that leads to it; also if the shape
            of an output would change, because tasks rely on it.
        what: the rewrite, for messages.

    Returns:
        A note for each crop.

    Raises:
        ModelError: a node does not fit, and the message names it; or the model is older than
            opset 10, which Slice needs.
    """
    cut: list[str] = []
    while True:
        try:
            shapes = edit.infer(model, before)
        except edit.Misfit as error:
            made = _cut(model, [error.node], before) if crop else []
            if not made:
                hint = "graph.pooling.on_shape_change: crop would cut the map back"
                rest = "no map before it became larger, so cropping cannot help" if crop else hint
                raise ModelError(f"{what} breaks the model further down: {error}; {rest}") from None
        else:
            outputs = {value.name for value in model.graph.output}
            changed = {name for name in outputs if shapes.get(name) != before.get(name)}
            makers = [_name(node) for node in model.graph.node if changed & set(node.output)]
            made = _cut(model, makers, before) if crop else []
            if not made:
                return tuple(f"cropped before {where}" for where in dict.fromkeys(cut))
        cut += made


def _name(node: onnx.NodeProto) -> str:
    return node.name or f"of output {node.output[0]}"


def _cut(model: onnx.ModelProto, names: Sequence[str], before: edit.Shapes) -> list[str]:
    """Crop every map that became larger and is an input of some nodes; return these nodes."""
    edit.need_opset(model, 10, "on_shape_change: crop")
    shapes = edit.shapes_of(model)
    producers = {out: node for node in model.graph.node for out in node.output}
    failing = [node for node in model.graph.node if _name(node) in names]
    waiting = deque((node, i) for node in failing for i in range(len(node.input)))
    slices: dict[str, list[onnx.NodeProto]] = {}
    seen = set()
    made = []
    while waiting:
        node, place = waiting.popleft()
        given = node.input[place]
        old, new = before.get(given, []), shapes.get(given, [])
        if old == new or (node.output[0], place) in seen:
            continue
        seen.add((node.output[0], place))
        if _is_grown_map(old, new):
            builder = edit.Builder(model, "crop", f"{given}/{node.output[0]}")
            axes = [axis for axis, size in enumerate(old) if size != new[axis]]
            limits = ([0] * len(axes), [old[axis] for axis in axes], axes)
            node.input[place] = builder(
                "Slice", given, *(builder.constant(limit, "int64") for limit in limits)
            )
            slices.setdefault(node.output[0], []).extend(builder.nodes)
            made.append(edit.label(node))
        elif given in producers:
            inner = producers[given]
            waiting.extend((inner, i) for i in range(len(inner.input)))
    edit.splice(model, {node.output[0]: [*slices[node.output[0]], node]
                        for node in model.graph.node if node.output[0] in slices})  # fmt: skip
    return made


def _is_grown_map(old: Sequence[int], new: Sequence[int]) -> bool:
    """Whether a tensor of at least two spatial axes is larger than it was."""
    grown = all(o == n or n > o > 0 for o, n in zip(old, new, strict=False))
    return len(old) == len(new) > 3 and grown
