"""A detector and a segmenter of colored squares, small enough to be worked out by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import tiny
import yaml
from onnx import helper
from PIL import Image

GRAY = (110, 110, 110)
NMS = {
    "kind": "greedy", "iou_threshold": 0.5, "class_aware": True, "offset": 0,
    "score_threshold": 0.3, "top_k_before": "all", "top_k_after": "all",
}  # fmt: skip
HEAD = {
    "kind": "anchors",
    "outputs": [
        {"names": ["scores"], "columns": ["scores"]},
        {"names": ["deltas"], "columns": ["boxes"]},
    ],
    "layout": "rows", "score": {"activation": "sigmoid", "background": "none", "classes": "best"},
    "strides": [16], "cells": "ceil", "center": 0.5,
    "anchors": {"kind": "shapes", "shapes": [[[16, 16]]]},
    "deltas": {"weights": [1, 1, 1, 1]},
}  # fmt: skip
DETECTOR = {
    "head": HEAD, "exp_clamp": 4.0, "clip": "network", "nms": NMS, "operating_threshold": 0.5,
}  # fmt: skip
SEGMENTER = {
    "scores": "scores", "kind": "logits", "argmax": "after", "output_stride": 1,
    "logits_upsample": {"mode": "bilinear", "coordinate_transformation_mode": "half_pixel"},
    "mask_resize": {
        "of": "labels", "mode": "nearest", "coordinate_transformation_mode": "half_pixel",
    },
}  # fmt: skip


def _excess(scale):
    """How far a cell's mean in each channel is above the mean of all three, times *scale*."""
    weights = (scale * (np.eye(3) - 1 / 3) * 1.5).astype(np.float32).reshape(3, 3, 1, 1)
    return [
        helper.make_node("AveragePool", ["x"], ["pooled"], kernel_shape=[16, 16], strides=[16, 16]),
        helper.make_node("Conv", ["pooled", "w", "b"], ["excess"], name="excess"),
    ], {"w": weights, "b": np.full(3, -2.0, np.float32)}


def detector(free=False):
    """A 64x64 image in 4x4 cells: the logit of a color is how much of it there is in a cell.

    *free*: of any size.
    """
    nodes, constants = _excess(4)
    nodes += [
        helper.make_node("Reshape", ["excess", "flat"], ["columns"]),
        helper.make_node("Transpose", ["columns"], ["scores"], perm=[0, 2, 1]),
        helper.make_node("Slice", ["scores", "from", "to", "axis"], ["one"]),
        helper.make_node("Concat", ["one"] * 4, ["four"], axis=2),
        helper.make_node("Mul", ["four", "zero"], ["deltas"]),
    ]
    constants |= {
        "flat": np.array([1, 3, 16]), "zero": np.float32([0]), "from": np.array([0]),
        "to": np.array([1]), "axis": np.array([2]),
    }  # fmt: skip
    shapes = {"scores": [1, 16, 3], "deltas": [1, 16, 4]}
    if free:
        constants["flat"] = np.array([1, 3, -1])
        shapes = {name: [1, "cells", width] for name, (_, _, width) in shapes.items()}
    return tiny.model(nodes, {"x": [1, 3, "h", "w"] if free else [1, 3, 64, 64]}, shapes, constants)


def segmenter():
    """The same cells as 4x4 logits of three classes."""
    nodes, constants = _excess(4)
    nodes.append(helper.make_node("Identity", ["excess"], ["scores"]))
    return tiny.model(nodes, {"x": [1, 3, 64, 64]}, {"scores": [1, 3, 4, 4]}, constants)


def card(folder: Path, task: str = "detection", model=None, **fields: Any) -> Path:
    """Write a model and its card; *fields* are laid over those of its output."""
    output, proto = (DETECTOR, detector) if task == "detection" else (SEGMENTER, segmenter)
    size = {**tiny.SPEC["input"], "height": 64, "width": 64}
    return tiny.card(
        folder, model or proto(), name=f"squares-{task}", task=task, input=size,
        output=output | fields,
    )  # fmt: skip


def free_card(folder: Path, geometry=None, **size: Any) -> Path:
    """Write the detector of any size and its card."""
    network = {**tiny.SPEC["input"], "height": "free", "width": "free", "multiple_of": 16, **size}
    rect = {"kind": "rect_letterbox", "long_side": 64, "multiple_of": 16, "value": 110}
    return tiny.card(
        folder, detector(free=True), name="free", task="detection", input=network,
        geometry=geometry or {**rect, "rounding": "albumentations"},
        output=DETECTOR | {"unletterbox": {"scale": "ratio", "offset": "integer"}},
    )  # fmt: skip


def picture(*squares, size=(64, 64)):
    """A gray image with squares (color, left, top, side)."""
    pixels = np.full((*size, 3), GRAY, np.uint8)
    for color, left, top, side in squares:
        pixels[top : top + side, left : left + side] = tiny.COLORS[color]
    return pixels


SCENES = {
    "a.jpg": [("red", 0, 0, 16), ("blue", 32, 16, 16)],
    "b.jpg": [("green", 16, 48, 16)],
    "c.jpg": [("blue", 48, 48, 16), ("red", 0, 32, 16), ("green", 32, 0, 16)],
    "d.jpg": [],
}


def data(folder: Path, task: str = "detection", copies: int = 1) -> Path:
    """Write the scenes, their annotations and a data card; return the card."""
    names = list(tiny.COLORS)
    images, annotations = [], []
    for copy in range(copies):
        for name, squares in SCENES.items():
            file = folder / "images" / f"{copy:02}{name}"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(tiny.encoded(picture(*squares), quality=95))
            images.append({"id": len(images), "file_name": file.name, "width": 64, "height": 64})
            mask = np.full((64, 64), 255, np.uint8)
            for color, left, top, side in squares:
                mask[top : top + side, left : left + side] = names.index(color)
                annotations.append(
                    {"id": len(annotations) + 1, "image_id": images[-1]["id"],
                     "category_id": names.index(color) + 1, "bbox": [left, top, side, side],
                     "area": side * side, "iscrowd": 0}
                )  # fmt: skip
            (folder / "masks").mkdir(exist_ok=True)
            Image.fromarray(mask).save(folder / "masks" / f"{file.stem}.png")
    categories = [{"id": i, "name": name} for i, name in enumerate(names, 1)]
    document = {"images": images, "annotations": annotations, "categories": categories}
    (folder / "boxes.json").write_text(json.dumps(document))
    (folder / "classes.txt").write_text("\n".join(names) + "\n")
    spec = {"schema": 1, "name": "squares", "task": task, "images": "images"}
    if task == "detection":
        spec |= {"format": "coco", "annotations": "boxes.json"}
    else:
        spec |= {"format": "index_masks", "annotations": "masks", "classes": "classes.txt",
                 "ignore": 255}  # fmt: skip
    path = folder / "data.yaml"
    path.write_text(yaml.safe_dump(spec, sort_keys=False))
    return path
