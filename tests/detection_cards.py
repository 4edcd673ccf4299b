"""Output sections of detectors' cards, as short as they can be, and what is made of them."""

from __future__ import annotations

from typing import Any

from simulator.modalities.image.geometry import Placement
from simulator.profile.postprocess import Postprocess
from simulator.tasks.detection.card import DetectionOutput
from simulator.tasks.detection.settings import Settings, resolve

NMS = {
    "kind": "none", "iou_threshold": 0.5, "class_aware": True, "offset": 0,
    "score_threshold": 0.0, "top_k_before": "all", "top_k_after": "all",
}  # fmt: skip
SCORE = {"activation": "none", "background": "none", "classes": "all"}
APART = [{"names": ["scores"], "columns": ["scores"]}, {"names": ["boxes"], "columns": ["boxes"]}]
DENSE = {"outputs": APART, "layout": "rows", "score": SCORE, "strides": [8], "cells": "ceil"}
ANCHORS = {
    **DENSE, "kind": "anchors", "center": 0.5, "deltas": {"weights": [1, 1, 1, 1]},
    "anchors": {"kind": "shapes", "shapes": [[[16, 8]]]},
}  # fmt: skip
BOXES = {
    "kind": "boxes", "outputs": APART, "layout": "rows", "score": SCORE,
    "format": "xyxy", "unit": "pixel",
}  # fmt: skip
FINAL = {
    "kind": "detections", "format": "xyxy", "unit": "pixel", "first_class": 0,
    "outputs": [{"names": ["found"], "columns": ["boxes", "score", "class"]}],
}  # fmt: skip
RETINANET = {
    **ANCHORS,
    "outputs": [
        {"names": ["cls_logits"], "columns": ["scores"]},
        {"names": ["box_deltas"], "columns": ["boxes"]},
    ],
    "score": {**SCORE, "activation": "sigmoid"},
    "strides": [8, 16, 32],
    "anchors": {
        "kind": "ratios", "sizes": [[20], [48], [96]], "scales": [1, 2 ** (1 / 3), 2 ** (2 / 3)],
        "ratios": [0.75, 1, 4 / 3], "outer": "ratios", "rounding": "none",
    },
}  # fmt: skip


def center_size(center: Any, size: Any, **fields: Any) -> dict[str, Any]:
    """A grid head of centers and sizes."""
    encoding = {"kind": "center_size", "center": center, "size": size}
    return {**DENSE, "kind": "grid", "encoding": encoding, **fields}


def distances(**fields: Any) -> dict[str, Any]:
    """A grid head of distances, in strides, from the middle of a cell."""
    encoding = {"kind": "distances", "unit": "stride", "shift": 0.5, **fields}
    return {**DENSE, "kind": "grid", "encoding": encoding}


def output(head: dict[str, Any], nms: Any = None, **fields: Any) -> DetectionOutput:
    """A card's output section around a head; *nms* replaces some of its keys."""
    document = {
        "head": head, "clip": "none", "nms": {**NMS, **(nms or {})}, "operating_threshold": 0.5,
    }  # fmt: skip
    exp = head["kind"] == "anchors" or "'exp'" in str(head.get("encoding"))
    clamp = {"exp_clamp": "none"} if exp else {}
    return DetectionOutput.model_validate({**document, **clamp, **fields})


def settings(
    head: dict[str, Any], size: tuple[int, int], asked: Any = None, classes: int = 3, **fields: Any
) -> Settings:
    """What is in force for a network of this size."""
    return resolve(output(head, **fields), Postprocess.model_validate(asked or {}), size, classes)


def whole(height: int, width: int) -> Placement:
    """An image that is the network's input, pixel for pixel."""
    return Placement(height, width, height, width, 0, 0, height, width)
