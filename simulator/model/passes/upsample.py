"""The upsample axis: interpolation and coordinates of every Resize."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np
import onnx
from onnx import helper

from simulator.contract import Array
from simulator.contract.passes import GraphPass
from simulator.model.passes.graph import edit
from simulator.model.passes.graph.change import Change, Seen
from simulator.profile.graph import Upsample

AXIS, NODES = "upsample", "Resize or Upsample"
FIELDS = ("mode", "coordinate_transformation_mode", "nearest_mode")
DEFAULTS: edit.Attributes = dict(
    zip(FIELDS, ("nearest", "half_pixel", "round_prefer_floor"), strict=True)
)
OLD: edit.Attributes = dict(zip(FIELDS, ("nearest", "asymmetric", "floor"), strict=True))
SILENT = "both give the same values at these sizes"


def apply(model: onnx.ModelProto, asked: Upsample) -> Change:
    """Apply the requested settings to every Resize, in place; Upsample of opset 9 becomes Resize.

    Sizes do not change. ConvTranspose is a layer with its own weights and does not change.

    Args:
        model: an ONNX model; one of opset 9 or 10 is raised to opset 11, whose Resize has
            these attributes.
        asked: the profile's section.

    Raises:
        ModelError: the model is too old and cannot be raised.

    Source:
        ONNX operator Resize. Opset 10 and Upsample are ``asymmetric`` and ``floor``.
    """
    kept = len(edit.nodes_of(model, "ConvTranspose"))
    notes = (f"{kept} ConvTranspose unchanged",) if kept else ()
    before = _seen(model)
    if not before:
        return Change(AXIS, NODES, {}, {}, SILENT, notes)
    if edit.opset(model) < 11:
        _raise_opset(model)
    wanted = {k: v for k, v in asked.model_dump().items() if v != "keep"}
    for node in edit.nodes_of(model, "Resize"):
        edit.set_attributes(node, **wanted)
    return Change(AXIS, NODES, before, _seen(model), SILENT, notes)


def _raise_opset(model: onnx.ModelProto) -> None:
    edit.raise_opset(model, 11, AXIS)
    for node in edit.nodes_of(model, "Resize"):
        edit.set_attributes(node, **{k: v for k, v in OLD.items() if k != "mode"})


def _seen(model: onnx.ModelProto) -> dict[str, Seen]:
    nodes = edit.nodes_of(model, "Resize", "Upsample")
    if not nodes:
        return {}
    shapes, constants = edit.shapes_of(model), edit.constants(model)
    old = edit.opset(model) < 11
    found = {}
    for node in nodes:
        values = (OLD if old else DEFAULTS) | edit.attributes(node)
        scales = values.pop("scales", None)
        at = 1 if old else 2
        if scales is None and len(node.input) > at and node.input[at] in constants:
            scales = constants[node.input[at]]
        setting = tuple(values[name] for name in FIELDS)
        size = tuple(shapes.get(node.output[0], ()))
        effect = _effect(values, shapes.get(node.input[0], []), list(size), scales)
        found[node.output[0]] = Seen(node.op_type, setting, effect, size)
    return found


def _effect(values: edit.Attributes, given: list[int], made: list[int], scales: Any) -> Hashable:
    """Return what a resize does to a row of numbers, for each axis; interpolation is separable."""
    setting = (tuple(values[name] for name in FIELDS), tuple(given), tuple(made))
    crops = values["coordinate_transformation_mode"] == "tf_crop_and_resize"
    if crops or len(given) != len(made) or 0 in (*given[1:], *made[1:]):
        return setting
    if scales is None or np.size(scales) != len(given):
        scales = [1.0, *(out / size for size, out in zip(given[1:], made[1:], strict=True))]
    rows = []
    for size, out, scale in zip(given, made, scales, strict=True):
        if (size, float(scale)) != (out, 1.0):
            row = _resized(_row(size), out, float(scale), values)
            rows.append((size, np.round(row, 5).tobytes()))
    return tuple(rows)


def _row(size: int) -> Array:
    return np.random.default_rng(size).normal(size=size).astype(np.float32)


def _resized(row: Array, out: int, scale: float, values: edit.Attributes) -> Array:
    """Resize one row with ONNX's reference implementation, by the scale or to the size."""
    names = (*FIELDS, "cubic_coeff_a", "exclude_outside", "antialias")
    options = {name: values[name] for name in names if name in values}
    by_scale = int(np.floor(len(row) * scale)) == out
    inputs = ["x", "", "s"] if by_scale else ["x", "", "", "s"]
    kind = onnx.TensorProto.FLOAT if by_scale else onnx.TensorProto.INT64
    node = helper.make_node("Resize", inputs, ["y"], **options)
    graph = helper.make_graph(
        [node], "row",
        [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [len(row)]),
         helper.make_tensor_value_info("s", kind, [1])],
        [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [None])],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])
    asked = np.array([scale], np.float32) if by_scale else np.array([out], np.int64)
    from onnx.reference import ReferenceEvaluator

    made: Any = ReferenceEvaluator(model).run(None, {"x": row, "s": asked})
    return np.asarray(made[0])


PASS = GraphPass(AXIS, 200, Upsample, Upsample(), apply)
