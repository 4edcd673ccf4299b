"""A two-stage detector of 32 x 32 pixels: its files, its card, and the same in plain loops.

The second part shares no code with the simulator: convolutions, RoIAlign (He et al., 2017), the
boxes and NMS are written out for one anchor, one bin, one box at a time.
"""

from __future__ import annotations

import math

import numpy as np
import onnx
import tiny
import yaml
from onnx import helper

SIDE, STRIDE, CELLS, BINS = 32, 4, 8, 2
ANCHORS = ((10.0, 10.0), (14.0, 7.0))
CLASSES = ("cat", "dog", "cow")
RANDOM = np.random.default_rng(3)
STEM = RANDOM.normal(size=(4, 3, STRIDE, STRIDE)).astype(np.float32)
SCORE = RANDOM.normal(size=(2, 4, 1, 1)).astype(np.float32)
DELTA = 0.1 * RANDOM.normal(size=(8, 4, 1, 1)).astype(np.float32)
CLASS = RANDOM.normal(size=(16, 4)).astype(np.float32)
BOX = 0.6 * RANDOM.normal(size=(16, 16)).astype(np.float32)
IMAGE = np.random.default_rng(5).integers(0, 256, (SIDE, SIDE, 3)).astype(np.uint8)
NMS = {
    "kind": "greedy", "class_aware": False, "offset": 0, "top_k_before": 40, "top_k_after": 12,
    "iou_threshold": 0.4, "score_threshold": 0.3,
}  # fmt: skip


def first(feature: str = "p") -> onnx.ModelProto:
    """Return the network that gives a map, and the numbers of proposals."""
    conv = helper.make_node
    nodes = [
        conv("Conv", ["image", "stem"], [feature], strides=[STRIDE, STRIDE]),
        conv("Conv", [feature, "score"], ["rpn_scores"]),
        conv("Conv", [feature, "delta"], ["rpn_deltas"]),
    ]
    grid = [CELLS, CELLS]
    outputs = {feature: [1, 4, *grid], "rpn_scores": [1, 2, *grid], "rpn_deltas": [1, 8, *grid]}
    weights = {"stem": STEM, "score": SCORE, "delta": DELTA}
    return tiny.model(nodes, {"image": [1, 3, SIDE, SIDE]}, outputs, weights)


def second(mode: str = "half_pixel", rows: int | str = "n") -> onnx.ModelProto:
    """Return the network that reads boxes from the map; torchvision's numbers of a box."""
    align = {"coordinate_transformation_mode": mode, "spatial_scale": 1 / STRIDE,
             "output_height": BINS, "output_width": BINS, "sampling_ratio": 2}  # fmt: skip
    nodes = [
        helper.make_node("Shape", ["proposals"], ["shape"], start=0, end=1),
        helper.make_node("ConstantOfShape", ["shape"], ["which"],
                         value=helper.make_tensor("zero", onnx.TensorProto.INT64, [1], [0])),
        helper.make_node("RoiAlign", ["p", "proposals", "which"], ["bins"], **align),
        helper.make_node("Flatten", ["bins"], ["flat"]),
        helper.make_node("MatMul", ["flat", "class"], ["class_logits"]),
        helper.make_node("MatMul", ["flat", "box"], ["box_regression"]),
    ]  # fmt: skip
    inputs = {"p": [1, 4, CELLS, CELLS], "proposals": [rows, 4]}
    outputs = {"class_logits": [rows, 4], "box_regression": [rows, 16]}
    return tiny.model(nodes, inputs, outputs, {"class": CLASS, "box": BOX})


def document() -> dict:
    """Return the card."""

    def outputs(scores: str, boxes: str) -> list:
        return [
            {"names": [scores], "columns": ["scores"]},
            {"names": [boxes], "columns": ["boxes"]},
        ]

    return {
        "schema": 1, "name": "two_stages", "task": "detection", "labels": "labels.txt",
        "model": "first.onnx", "second": {"model": "second.onnx"},
        "input": {"height": SIDE, "width": SIDE, "layout": "NCHW", "order": "rgb", "top": 1,
                  "mean": [0, 0, 0], "std": [1, 1, 1]},
        "geometry": {"kind": "squash"},
        "output": {
            "proposals": {
                "input": "proposals", "features": ["p"], "exp_clamp": 1.0, "clip": "network",
                "nms": NMS,
                "head": {
                    "kind": "anchors", "outputs": outputs("rpn_scores", "rpn_deltas"),
                    "layout": "maps", "strides": [STRIDE], "cells": "ceil", "center": 0.5,
                    "score": {"activation": "sigmoid", "background": "none", "classes": "all"},
                    "anchors": {"kind": "shapes", "shapes": [[list(one) for one in ANCHORS]]},
                    "deltas": {"weights": [1, 1, 1, 1]},
                },
            },
            "head": {
                "kind": "regions", "outputs": outputs("class_logits", "box_regression"),
                "score": {"activation": "softmax", "background": "first", "classes": "all"},
                "deltas": {"weights": [10, 10, 5, 5]}, "class_boxes": "scores",
            },
            "exp_clamp": 4.0, "clip": "network", "operating_threshold": 0.5,
            "nms": {**NMS, "class_aware": True, "top_k_before": "all", "score_threshold": 0.1},
        },
    }  # fmt: skip


def write(folder, change=lambda card: None, **files):
    """Write files, card and labels; return the path of the card."""
    card = document()
    change(card)
    made = {"first": first(), "second": second(), **files}
    for name, model in made.items():
        if model is not None:
            onnx.save(model, folder / f"{name}.onnx")
    (folder / "labels.txt").write_text("".join(f"{name}\n" for name in CLASSES))
    path = folder / "card.yaml"
    path.write_text(yaml.safe_dump(card))
    return path


# The same in plain loops


def maps():
    """The map, and the numbers of every anchor: row, column, anchor."""
    pixels = IMAGE.astype(np.float64) / 255
    found = np.zeros((4, CELLS, CELLS))
    for row in range(CELLS):
        for column in range(CELLS):
            at = (slice(STRIDE * row, STRIDE * row + STRIDE),
                  slice(STRIDE * column, STRIDE * column + STRIDE))  # fmt: skip
            found[:, row, column] = np.einsum("oihw,hwi->o", STEM, pixels[at])
    scores = np.einsum("ai,ihw->hwa", SCORE[..., 0, 0], found)
    deltas = np.einsum("di,ihw->hwd", DELTA[..., 0, 0], found).reshape(CELLS, CELLS, 2, 4)
    return found, scores, deltas


def moved(around, delta, weights, clamp, wide=0, less=0):
    """One box from another: its width is x2 - x1 + *wide*, and x2 is *less* smaller."""
    corners = []
    for axis in (0, 1):
        size = around[axis + 2] - around[axis] + wide
        center = around[axis] + size / 2 + delta[axis] / weights[axis] * size
        half = size * math.exp(min(delta[axis + 2] / weights[axis + 2], clamp)) / 2
        corners.append(
            [min(max(end, 0), SIDE - less) for end in (center - half, center + half - less)]
        )
    (x1, x2), (y1, y2) = corners
    return [x1, y1, x2, y2]


def iou(a, b, wide=0):
    """The overlap of two boxes that are x2 - x1 + *wide* wide."""

    def sides(box):
        return max(box[2] - box[0] + wide, 0) * max(box[3] - box[1] + wide, 0)

    common = sides([max(a[0], b[0]), max(a[1], b[1]), min(a[2], b[2]), min(a[3], b[3])])
    return common / (sides(a) + sides(b) - common) if common else 0.0


def suppressed(rows, threshold, most, wide=0):
    """Of (score, label, box), best first, those that no better one of the label overlaps.

    Then boxes that an offset has turned inside out are dropped.
    """
    kept = []
    for row in rows:
        if all(row[1] != other[1] or iou(row[2], other[2], wide) <= threshold for other in kept):
            kept.append(row)
    return [row for row in kept[:most] if row[2][0] <= row[2][2] and row[2][1] <= row[2][3]]


def proposals(anchors=0, corners=0, nms=0, threshold=0.4, whole=None):
    """The boxes that the second network takes."""
    _, scores, deltas = maps()
    rows = []
    for row, column, anchor in np.ndindex(CELLS, CELLS, 2):
        score = 1 / (1 + math.exp(-scores[row, column, anchor]))
        if score > 0.3:
            wide, high = ANCHORS[anchor]
            cx, cy = (column + 0.5) * STRIDE, (row + 0.5) * STRIDE
            around = [cx - wide / 2, cy - high / 2, cx + wide / 2, cy + high / 2]
            box = moved(around, deltas[row, column, anchor], (1, 1, 1, 1), 1.0, anchors, corners)
            rows.append((score, 0, [whole(end) for end in box] if whole else box))
    rows.sort(key=lambda one: -one[0])
    return [box for _, _, box in suppressed(rows[:40], threshold, 12, nms)]


def aligned(found, box, mode):
    """(4, 2, 2) of one box: the mean of 2 x 2 samples a bin, each of the four pixels around it."""
    half = 0.5 if mode == "half_pixel" else 0.0
    x1, y1, x2, y2 = (end / STRIDE - half for end in box)
    least = 0.0 if half else 1.0
    wide, high = max(x2 - x1, least), max(y2 - y1, least)
    made = np.zeros((4, BINS, BINS))
    for row, column, i, j in np.ndindex(BINS, BINS, 2, 2):
        y = y1 + high * (row + (i + 0.5) / 2) / BINS
        x = x1 + wide * (column + (j + 0.5) / 2) / BINS
        if -1 <= y <= CELLS and -1 <= x <= CELLS:
            y, x = min(max(y, 0), CELLS - 1), min(max(x, 0), CELLS - 1)
            top, left = int(y), int(x)
            down, right = min(top + 1, CELLS - 1), min(left + 1, CELLS - 1)
            b, r = y - top, x - left
            made[:, row, column] += (
                found[:, top, left] * (1 - b) * (1 - r) + found[:, top, right] * (1 - b) * r
                + found[:, down, left] * b * (1 - r) + found[:, down, right] * b * r
            ) / 4  # fmt: skip
    return made


def detections(boxes, mode="half_pixel", anchors=0, corners=0):
    """(score, label, box), best first, of the proposals."""
    found = maps()[0]
    rows = []
    for box in boxes:
        flat = aligned(found, box, mode).reshape(-1)
        powers = np.exp(flat @ CLASS - (flat @ CLASS).max())
        regression = (flat @ BOX).reshape(4, 4)
        for label in range(3):
            score = powers[label + 1] / powers.sum()
            if score > 0.1:
                own = moved(box, regression[label + 1], (10, 10, 5, 5), 4.0, anchors, corners)
                rows.append((score, label, own))
    rows.sort(key=lambda one: -one[0])
    return suppressed(rows, 0.4, 12)
