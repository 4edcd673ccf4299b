"""Cropping of feature maps that became too large for a layer of fixed size."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import onnx

from simulator.errors import ModelError
from simulator.model.passes.graph import edit


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
