"""YOLOX's own export to ONNX, known by its names and by the number of its boxes.

Sources, of Megvii-BaseDetection/YOLOX: ``tools/export_onnx.py`` (``images``, ``output``; without
``--decode_in_inference`` a grid), ``yolox/models/yolo_head.py`` (``decode_outputs``),
``yolox/data/data_augment.py`` (``preproc``: BGR as read, 0-255, the image at the top left of 114,
sides rounded down), ``yolox/exp/yolox_base.py`` (``nmsthre`` 0.65, ``test_conf`` 0.01).
"""

from __future__ import annotations

from simulator.importers.network import CardFields, NetworkFile

_STRIDES = (8, 16, 32)


def of_network(network: NetworkFile) -> CardFields | None:
    """Return the card of a network that looks like such an export; None: it does not."""
    shape = network.outputs.get("output", ())
    named = "images" in network.inputs and len(shape) == 3
    if network.image is None or not named or None in (*network.image, *shape):
        return None
    _, height, width = network.image
    cells = sum(((height or 0) // stride) * ((width or 0) // stride) for stride in _STRIDES)
    if shape[1] != cells or (shape[2] or 0) <= 5:
        return None
    made = CardFields("names and number of boxes, which are YOLOX's", is_guess=True)
    made.name({number: f"class {number}" for number in range((shape[2] or 0) - 5)})
    why = "as YOLOX's data_augment.preproc"
    made.say(why, task="detection", input__order="bgr", input__top=255)
    made.say(why, input__mean=[0.0] * 3, input__std=[1.0] * 3)
    made.say(why, geometry__kind="letterbox", geometry__rounding="floor")
    made.say(why, geometry__position="top_left", geometry__value=114)
    none = {"activation": "none"}
    head = {
        "kind": "grid",
        "outputs": [{"names": ["output"], "columns": ["boxes", "objectness", "scores"]}],
        "layout": "rows", "score": {**none, "background": "none", "classes": "best",
                                    "objectness": none},
        "strides": list(_STRIDES), "cells": "ceil",
        "encoding": {"kind": "center_size", "center": none,
                     "size": {"activation": "exp", "unit": "stride"}},
    }  # fmt: skip
    nms = {
        "kind": "greedy", "iou_threshold": 0.65, "class_aware": True, "offset": 0,
        "score_threshold": 0.01, "top_k_before": "all", "top_k_after": 100,
    }  # fmt: skip
    made.say("as YOLOX's decode_outputs", output__head=head, output__exp_clamp="none")
    made.say("as YOLOX's evaluation", output__clip="none", output__nms=nms)
    made.say("as YOLOX's evaluation", output__unletterbox={"scale": "ratio", "offset": "integer"})
    made.say("as YOLOX's demo", output__operating_threshold=0.3)
    return made
