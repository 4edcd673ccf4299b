"""The axis roi_align: how the second network of a detector reads boxes from feature maps."""

from __future__ import annotations

import onnx

from simulator.contract.passes import GraphPass
from simulator.model.passes.graph import edit
from simulator.model.passes.graph.change import Change, Seen
from simulator.profile.graph import RoiAlign

AXIS, NODES = "roi_align", "RoiAlign"
DEFAULTS: edit.Attributes = {
    "coordinate_transformation_mode": "half_pixel", "sampling_ratio": 0
}  # fmt: skip
OLD: edit.Attributes = DEFAULTS | {"coordinate_transformation_mode": "output_half_pixel"}


def apply(model: onnx.ModelProto, asked: RoiAlign) -> Change:
    """Apply the requested settings to every RoiAlign, in place.

    Args:
        model: an ONNX model; one of opset 10 to 15 is raised to opset 16, where boxes can be moved
            by half a pixel.
        asked: the profile's section.

    Raises:
        ModelError: the model is too old and cannot be raised.

    Source:
        ONNX operator RoiAlign; torchvision's ``roi_align`` with ``aligned`` True and False.
    """
    before = _seen(model)
    if before:
        wanted = {k: v for k, v in asked.model_dump().items() if v != "keep"}
        if wanted.get("sampling_ratio") == "adaptive":
            wanted["sampling_ratio"] = 0
        if edit.opset(model) < 16:
            _raise_opset(model)
        for node in edit.nodes_of(model, "RoiAlign"):
            edit.set_attributes(node, **wanted)
    return Change(AXIS, NODES, before, _seen(model))


def _raise_opset(model: onnx.ModelProto) -> None:
    edit.raise_opset(model, 16, AXIS)
    for node in edit.nodes_of(model, "RoiAlign"):
        edit.set_attributes(node, coordinate_transformation_mode="output_half_pixel")


def _seen(model: onnx.ModelProto) -> dict[str, Seen]:
    shapes = edit.shapes_of(model)
    before = OLD if edit.opset(model) < 16 else DEFAULTS
    found = {}
    for node in edit.nodes_of(model, "RoiAlign"):
        values = before | edit.attributes(node)
        setting = tuple(values[name] for name in DEFAULTS)
        size = tuple(shapes.get(node.output[0], ()))
        found[node.output[0]] = Seen(node.op_type, setting, setting, size)
    return found


PASS = GraphPass(AXIS, 700, RoiAlign, RoiAlign(), apply)
