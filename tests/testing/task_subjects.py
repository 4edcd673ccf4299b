"""Our three tasks, each with a card of every kind, and what the suite tries them with."""

from __future__ import annotations

import numpy as np
from detection_cards import ANCHORS, BOXES, DENSE, FINAL, RETINANET, SCORE, distances, output
from small_task import Parity, parity

from simulator.tasks.classification.specimen import logits, prompted
from simulator.tasks.classification.task import Classification
from simulator.tasks.detection import specimen as boxes
from simulator.tasks.detection.task import Detection
from simulator.tasks.segmentation import specimen as masks
from simulator.tasks.segmentation.task import Segmentation


def random(shape, seed, scale=3.0):
    return np.random.default_rng(seed).normal(0, scale, shape).astype(np.float32)


def detection(task=Detection, head=ANCHORS, outputs=None, **fields):
    """A detector of three classes on 32 x 32; outputs of a seed, one box of 16 pixels a cell."""
    card = output(head, {"score_threshold": 0.05, **fields.pop("nms", {})}, **fields)
    return boxes.specimen(task(card, boxes.NETWORK), outputs or dense)


def dense(seed, rows=16, width=4, background=0, scale=1.0):
    """Scores in 0 to 1 and boxes for each cell of one grid."""
    scores = np.random.default_rng(seed + 10).random((1, rows, 3 + background), np.float32)
    return {"scores": scores**2, "boxes": random((1, rows, width), seed, scale)}


def retinanet(seed):
    rows = 9 * (16 + 4 + 1)
    logits = random((1, rows, 3), seed) - 2
    return {"cls_logits": logits, "box_deltas": random((1, rows, 4), seed + 5, 0.5)}


def yolo(seed):
    """(1, 6, 4, 4) maps: objectness, box, one class of scores each."""
    return {"out": random((1, 8, 4, 4), seed, 1.5)}


def final(seed):
    """Seven rows of boxes with score and class; an integer says that five are answers."""
    inside = boxes.decoded(seed)["boxes"][0]
    rng = np.random.default_rng(seed)
    scores, classes = rng.random(7)[:, None], rng.integers(1, 4, 7)[:, None]
    found = np.concatenate([inside, scores, classes], axis=1).astype("f4")
    return {"found": found[None], "count": np.array([5], np.int64)}


YOLO = {
    **DENSE, "kind": "grid", "layout": "maps",
    "outputs": [{"names": ["out"], "columns": ["objectness", "boxes", "scores"]}],
    "score": {**SCORE, "activation": "sigmoid", "objectness": {"activation": "sigmoid"}},
    "encoding": {
        "kind": "center_size",
        "center": {"activation": "sigmoid", "gain": 2, "shift": -0.5},
        "size": {"activation": "exp", "unit": "anchor"},
    },
    "anchors": {"kind": "shapes", "shapes": [[[12, 9]]]},
}  # fmt: skip
DFL = {**distances(activation="distribution", bins=8), "layout": "columns"}
COUNTED = {
    **FINAL, "first_class": 1,
    "outputs": [*FINAL["outputs"], {"names": ["count"], "columns": ["count"]}],
}  # fmt: skip
GREEDY = {"kind": "greedy", "iou_threshold": 0.4}


def columns(seed):
    return {name: array.swapaxes(1, 2) for name, array in dense(seed, width=32).items()}


def segmentation(task=Segmentation, outputs=None, **fields):
    """A segmenter of three classes, 8 x 8 scores for 32 x 32."""
    card = {name: value for name, value in {**masks.CARD, **fields}.items() if value}
    made = task(task.Output.model_validate(card), masks.NETWORK)
    return masks.specimen(made, outputs or (lambda seed: {"y": random((1, 3, 8, 8), seed)}))


def probabilities(seed):
    powers = np.exp(random((1, 8, 8, 3), seed))
    return {"y": powers / powers.sum(axis=-1, keepdims=True)}


def labels(seed):
    return {"y": np.random.default_rng(seed).integers(0, 3, (1, 32, 32))}


NEAREST = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric"}
SUBJECTS = {
    "classification of logits": logits(Classification),
    "classification without labels": logits(Classification, labels=None),
    "classification with a background": logits(Classification, "probabilities", background=1),
    "classification by prompts": prompted(Classification),
    "detection by anchors": detection(nms=GREEDY),
    "detection by RetinaNet": detection(head=RETINANET, outputs=retinanet, clip="network"),
    "detection by YOLO": detection(head=YOLO, outputs=yolo, nms=GREEDY),
    "detection by distances": detection(head=DFL, outputs=columns, clip="image"),
    "detection of decoded boxes": detection(head=BOXES, outputs=boxes.decoded),
    "detection with NMS inside": detection(head=COUNTED, outputs=final),
    "segmentation by logits": segmentation(),
    "segmentation by probabilities": segmentation(
        outputs=probabilities, kind="probabilities", layout="NHWC", argmax="before",
        logits_upsample=NEAREST, mask_resize={"of": "labels", **NEAREST},
    ),
    "segmentation by labels": segmentation(
        outputs=labels, kind="labels", argmax=None, logits_upsample=None,
        mask_resize={"of": "labels", **NEAREST},
    ),
    "a task of six members": parity(Parity),
}  # fmt: skip
