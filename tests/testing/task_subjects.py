"""Our three tasks, each with a card of every kind, and what the suite tries them with."""

from __future__ import annotations

import numpy as np
from detection_cards import ANCHORS, BOXES, DENSE, FINAL, RETINANET, SCORE, distances, output

from simulator.data.labels import Labels
from simulator.data.masks import ArrayMask
from simulator.data.truth import Boxes
from simulator.modalities.image.geometry import Placement
from simulator.tasks.classification.answer import Answer
from simulator.tasks.classification.task import Classification
from simulator.tasks.detection.boxes import Detections
from simulator.tasks.detection.task import Detection
from simulator.tasks.segmentation.task import Segmentation
from simulator.tasks.task import Network
from simulator.testing.tasks import TaskSubject

LETTERBOX = Placement(39, 65, 19, 32, 6, 0, 32, 32, centered=True)
"""39 x 65 pixels in 32 x 32: thirteen rows of padding, so that half of it is no whole pixel."""
LABELS = Labels(("cat", "dog", "cow"))
NETWORK = Network(32, 32, LABELS)


def random(shape, seed, scale=3.0):
    return np.random.default_rng(seed).normal(0, scale, shape).astype(np.float32)


def classification(task=Classification, kind="logits", background=0, labels=LABELS):
    """Three classes, background classes before them; a probability is a rounded softmax."""
    outputs = []
    for best in (0, 1):
        values = random((1, 3 + background), best, 1.0)
        values[0, background + best] = 5
        if kind == "probabilities":
            values = np.exp(values) / np.exp(values).sum()
        outputs.append({"y": values})
    made = task(task.Output(kind=kind, background=background), Network(32, 32, labels))
    worthless = [(0, Answer(1, 0.5, 0.25)), (2, Answer(0, 1.0, 1.0)), (1, Answer(2, 0.0, 0.0))]
    return TaskSubject(made, tuple(outputs), LETTERBOX, 0, worthless)


def boxes(rows, classes):
    """A truth of rows of x, y, w, h."""
    xywh = np.array(rows, float).reshape(-1, 4)
    none = np.zeros(len(xywh), bool)
    return Boxes(xywh, np.array(classes, np.int64), none, xywh[:, 2] * xywh[:, 3], none)


def detections(*rows):
    """Rows of x1, y1, x2, y2, score, class."""
    table = np.array(rows, float).reshape(-1, 6)
    return Detections(table[:, :4], table[:, 4], table[:, 5].astype(np.int64))


ONE = boxes([[5, 5, 20, 10]], [1])
ODD = boxes(
    [[-1e30, -1e30, 2e30, 2e30], [9, 9, 0, 0], [9, 9, -4, 5], [1, 1, 1e30, 0]], [0, 1, 2, 0]
)
NEGATIVE = 9, 9, 5, 14
BOUNDLESS = [
    (ONE, detections()),
    (ONE, detections((5, 5, 25, 15, 0.75, 2))),
    (ONE, detections((-1e30, -1e30, 1e30, 1e30, 0.74, 1), (0, 0, 1e30, 1e30, 0.73, 1))),
    (ONE, detections((5, 5, 5, 5, 0.72, 1), (5, 5, 25, 5, 0.71, 1), (25, 15, 5, 5, 0.7, 1))),
    (ONE, detections((1e30, 1e30, 1e30, 1e30, 0.69, 1), (-1e9, 7, -1e9, 7, 0.68, 1))),
    (ODD, detections((9, 9, 9, 9, 0.67, 1), (*NEGATIVE, 0.66, 2), (1, 1, 1e30, 1, 0.65, 0))),
]
"""Nothing, another class, everything, no area, nowhere, and truths of no area."""


def detection(task=Detection, head=ANCHORS, outputs=None, **fields):
    """A detector of three classes on 32 x 32; outputs of a seed, one box of 16 pixels a cell."""
    card = output(head, {"score_threshold": 0.05, **fields.pop("nms", {})}, **fields)
    outputs = outputs or dense
    made = task(card, NETWORK)
    return TaskSubject(made, (outputs(0), outputs(1)), LETTERBOX, ONE, BOUNDLESS)


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


def decoded(seed):
    corners = np.sort(np.random.default_rng(seed).random((1, 7, 2, 2)) * 32, axis=2)
    return {"scores": dense(seed, 7)["scores"], "boxes": corners.reshape(1, 7, 4).astype("f4")}


def final(seed):
    """Seven rows of boxes with score and class; an integer says that five are answers."""
    inside = decoded(seed)["boxes"][0]
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


def mask(rows, columns, *fills):
    """A mask of class 0, and of a class in each rectangle (top, bottom, left, right, class)."""
    found = np.zeros((rows, columns), np.uint8)
    for top, bottom, left, right, index in fills:
        found[top:bottom, left:right] = index
    return found


HALF = mask(39, 65, (0, 39, 30, 65, 1))
SEAM = mask(39, 65, (0, 39, 30, 65, 1), (10, 14, 0, 65, 255))
WRONG = [
    (ArrayMask(HALF), (HALF + 1) % 3),
    (ArrayMask(SEAM), mask(39, 65, (0, 39, 0, 65, 2))),
    (ArrayMask(HALF), mask(39, 65, (0, 39, 0, 65, 200))),
    (ArrayMask(HALF), np.where(HALF == 1, 0, 255).astype(np.uint8)),
]
"""Another class each, one class for all, a class that there is not, and hardly an answer."""


def segmentation(task=Segmentation, outputs=None, **fields):
    """A segmenter of three classes, 8 x 8 scores for 32 x 32."""
    linear = {"mode": "bilinear", "coordinate_transformation_mode": "half_pixel"}
    card = {
        "scores": "y", "kind": "logits", "logits_upsample": linear, "argmax": "after",
        "output_stride": 1, "mask_resize": {"of": "logits", **linear}, **fields,
    }  # fmt: skip
    outputs = outputs or (lambda seed: {"y": random((1, 3, 8, 8), seed)})
    made = task(task.Output.model_validate({k: v for k, v in card.items() if v}), NETWORK)
    return TaskSubject(made, (outputs(0), outputs(1)), LETTERBOX, ArrayMask(SEAM), WRONG)


def probabilities(seed):
    powers = np.exp(random((1, 8, 8, 3), seed))
    return {"y": powers / powers.sum(axis=-1, keepdims=True)}


def labels(seed):
    return {"y": np.random.default_rng(seed).integers(0, 3, (1, 32, 32))}


NEAREST = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric"}
SUBJECTS = {
    "classification of logits": classification(),
    "classification without labels": classification(labels=None),
    "classification with a background": classification(kind="probabilities", background=1),
    "detection by anchors": detection(nms=GREEDY),
    "detection by RetinaNet": detection(head=RETINANET, outputs=retinanet, clip="network"),
    "detection by YOLO": detection(head=YOLO, outputs=yolo, nms=GREEDY),
    "detection by distances": detection(head=DFL, outputs=columns, clip="image"),
    "detection of decoded boxes": detection(head=BOXES, outputs=decoded),
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
}  # fmt: skip
