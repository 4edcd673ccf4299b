"""A first model card for an ONNX file: what the file says, and TODO where it cannot know."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import onnx

from simulator.errors import ModelError
from simulator.model.card import TODO
from simulator.model.onnxfile import dims, shape_words, structure
from simulator.model.passes.graph import edit
from simulator.profile.modeline import MODEL_CARD, modeline
from simulator.profile.text import Line, flow, render

Shape = tuple[int | None, ...]
IMAGENET = {"mean": [0.485, 0.456, 0.406], "std": [0.229, 0.224, 0.225]}
NORMALIZES = ("Sub", "Div", "Mul", "Add", "BatchNormalization")
"""What a graph begins with where normalization is inside it."""
_HEAD = """\
{file}: {opset}; takes {inputs}; gives {outputs}.
{todo} marks what an ONNX file does not say: correct it as in training, and remove the mark.
All fields: docs/model-cards.md. Then: simulate model check {card}"""
_DETECTION = """\
How the outputs become boxes: docs/model-cards.md#heads has a card for SSD, RetinaNet, YOLOv3 to
YOLOv8, FCOS, and models with NMS inside; copy the one that fits."""


def document(model: Path, card: Path) -> str:
    """Return the text of a card for a network that takes images.

    Args:
        model: the ONNX file.
        card: where the card will be; its ``model`` is relative to it.

    Raises:
        ModelError: it is not an ONNX file, or has no input that an image could be.
    """
    proto, _ = structure(model)
    inputs = {value.name: dims(value) for value in edit.inputs_of(proto)}
    outputs = {value.name: dims(value) for value in proto.graph.output}
    layout, height, width = _image(model, inputs)
    opset = ", ".join(
        f"opset {one.version}" if not one.domain else f"{one.domain} {one.version}"
        for one in proto.opset_import
    )
    head = _HEAD.format(
        file=" ".join(model.name.split()), opset=opset, card=card, todo=TODO,
        inputs=_words(inputs), outputs=_words(outputs),
    )  # fmt: skip
    task, why = _task(outputs)
    lines = [Line(0, "", note=note) for note in (modeline(MODEL_CARD, card), *head.split("\n"))]
    lines += [
        Line(0, "schema", "1"),
        Line(0, "name", flow(model.stem)),
        Line(0, "summary", flow(f"{TODO}: one line: which network, trained on what")),
        Line(0, "task", task, f"{TODO}: {why}"),
        Line(0, "model", flow(os.path.relpath(model, card.parent))),
        Line(0, "input"),
        *_size("height", height),
        *_size("width", width),
        Line(1, "layout", layout),
        *_values(proto, next(iter(inputs))),
        Line(0, "geometry"),
        *_geometry(task, height),
        Line(0, "output"),
        *_output(proto, task, outputs, layout, height),
    ]
    if task == "classification":
        lines.append(Line(0, "labels", "classes.txt", "optional: a file with a class a line", 0))
    else:
        lines.append(Line(0, "labels", "classes.txt", f"{TODO}: a file with a class a line"))
    return render(lines)


def _image(model: Path, inputs: dict[str, Shape]) -> tuple[str, int | None, int | None]:
    """Return the layout, height and width of the one input; None where a side is free."""
    shapes = list(inputs.values())
    if len(shapes) == 1 and len(shapes[0]) == 4:
        _, a, b, c = shapes[0]
        if a == 3:
            return "NCHW", b, c
        if c == 3:
            return "NHWC", a, b
    raise ModelError(
        f"{model}: takes {_words(inputs) or 'nothing'}; a card can be proposed for one image, "
        "(1, 3, height, width) or (1, height, width, 3); for others see docs/model-cards.md"
    )


def _task(outputs: dict[str, Shape]) -> tuple[str, str]:
    """Return what the shapes of the outputs are typical of, and the words for it."""
    shapes = list(outputs.values())
    if len(shapes) == 1 and len(shapes[0]) == 2:
        return "classification", "one row of scores looks like it; or detection, segmentation"
    if len(shapes) == 1 and len(shapes[0]) == 4:
        return "segmentation", "one map of scores looks like it; or detection, classification"
    return "detection", "these outputs look like it; or classification, segmentation"


def _size(key: str, found: int | None) -> Iterator[Line]:
    if found is None:
        yield Line(1, key, "224", f"{TODO}: free in the file; the size it was trained on")
    else:
        yield Line(1, key, str(found))


def _values(proto: onnx.ModelProto, name: str) -> Iterator[Line]:
    """How pixels become numbers, which the file never says."""
    first = next((node.op_type for node in proto.graph.node if name in node.input), "")
    yield Line(1, "order", "rgb", f"{TODO}: or bgr, as networks trained with OpenCV's imread")
    if first in NORMALIZES:
        why = f"{TODO}: the graph begins with {first}, so it may normalize by itself"
        yield Line(1, "top", "255", why)
        yield Line(1, "mean", "[0.0, 0.0, 0.0]", why)
        yield Line(1, "std", "[1.0, 1.0, 1.0]", why)
        return
    yield Line(1, "top", "1", f"{TODO}: pixels are scaled to 0...1 first, or 255: they are not")
    for key, value in IMAGENET.items():
        yield Line(1, key, flow(value), f"{TODO}: these are ImageNet's; (pixel - mean) / std")


def _geometry(task: str, height: int | None) -> Iterator[Line]:
    about = f"{TODO}: short_side_crop (needs short_side), squash, or letterbox"
    if task == "classification":
        yield Line(1, "kind", "short_side_crop", about)
        yield Line(1, "short_side", str(round((height or 224) * 256 / 224)), f"{TODO}: before it")
    else:
        yield Line(1, "kind", "letterbox" if task == "detection" else "squash", about)


def _output(
    proto: onnx.ModelProto, task: str, outputs: dict[str, Shape], layout: str, height: int | None
) -> Iterator[Line]:
    name, shape = next(iter(outputs.items()))
    ends = next((node.op_type for node in proto.graph.node if name in node.output), "")
    kind = "probabilities" if ends == "Softmax" else "logits"
    if task == "classification":
        yield Line(1, "kind", kind, f"the graph ends with {ends}")
        if shape[-1] == 1001:
            yield Line(1, "background", "1", f"{TODO}: of 1001 scores, the first is of no class")
        return
    if task == "segmentation":
        rows = shape[2] if layout == "NCHW" else shape[1]
        stride = round((height or 224) / rows) if rows else 1
        yield Line(1, "scores", flow(name))
        yield Line(1, "kind", kind, f"the graph ends with {ends}")
        yield Line(1, "layout", layout)
        yield Line(1, "argmax", "after", f"{TODO}: or before: the class is chosen, then enlarged")
        yield Line(1, "output_stride", str(stride), "network pixels from one score to the next")
        resize = "{of: labels, mode: nearest, coordinate_transformation_mode: half_pixel}"
        yield Line(1, "mask_resize", resize, f"{TODO}: how the mask gets the image's size")
        return
    yield from (Line(1, "", note=note) for note in _DETECTION.split("\n"))
    yield Line(1, "head", "{}", f"{TODO}: {_words(outputs)}")


def _words(values: dict[str, Shape]) -> str:
    """Names and shapes on one line, whatever is in the names."""
    return ", ".join(f"{' '.join(name.split())} {shape_words(s)}" for name, s in values.items())
