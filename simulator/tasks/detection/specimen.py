"""What the conformance suite tries detection with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace

import numpy as np

from simulator.contract import Array
from simulator.data.labels import Labels
from simulator.data.truth import Boxes
from simulator.modalities.image.geometry import Placement
from simulator.tasks.detection.boxes import Detections
from simulator.tasks.settings import Network
from simulator.tasks.specimen import Specimen
from simulator.tasks.task import Task

LETTERBOX = Placement(39, 65, 19, 32, 6, 0, 32, 32, centered=True)
"""39 x 65 pixels in 32 x 32: 13 rows of padding, so half of the padding is not a whole pixel."""
NETWORK = Network(Labels(("cat", "dog", "cow")), SimpleNamespace(height=32, width=32))
CARD = {
    "head": {
        "kind": "boxes",
        "outputs": [
            {"names": ["scores"], "columns": ["scores"]},
            {"names": ["boxes"], "columns": ["boxes"]},
        ],
        "layout": "rows",
        "score": {"activation": "none", "background": "none", "classes": "all"},
        "format": "xyxy",
        "unit": "pixel",
    },
    "nms": {
        "kind": "none", "iou_threshold": 0.5, "class_aware": True, "offset": 0,
        "score_threshold": 0.05, "top_k_before": "all", "top_k_after": "all",
    },
    "clip": "none",
    "operating_threshold": 0.5,
}  # fmt: skip


def boxes(task: type[Task]) -> Specimen:
    """Return boxes that the model has decoded, of three classes, before NMS."""
    return specimen(task(task.Output.model_validate(CARD), NETWORK), decoded)


def specimen(task: Task, outputs: Callable[[int], dict[str, Array]]) -> Specimen:
    """Return a detector of 32 x 32 with odd answers: boundless, without area, turned inside out.

    Args:
        task: with :data:`NETWORK`.
        outputs: from a seed to the outputs for one image.
    """
    boxes = truth([[5, 5, 20, 10]], [1])
    odd = truth([[-1e30, -1e30, 2e30, 2e30], [9, 9, 0, 0], [9, 9, -4, 5], [1, 1, 1e30, 0]],
                [0, 1, 2, 0])  # fmt: skip
    inside_out = 9, 9, 5, 14
    worthless = [
        (boxes, found()),
        (boxes, found((5, 5, 25, 15, 0.75, 2))),
        (boxes, found((-1e30, -1e30, 1e30, 1e30, 0.74, 1), (0, 0, 1e30, 1e30, 0.73, 1))),
        (boxes, found((5, 5, 5, 5, 0.72, 1), (5, 5, 25, 5, 0.71, 1), (25, 15, 5, 5, 0.7, 1))),
        (boxes, found((1e30, 1e30, 1e30, 1e30, 0.69, 1), (-1e9, 7, -1e9, 7, 0.68, 1))),
        (odd, found((9, 9, 9, 9, 0.67, 1), (*inside_out, 0.66, 2), (1, 1, 1e30, 1, 0.65, 0))),
    ]
    return Specimen(task, (outputs(0), outputs(1)), LETTERBOX, boxes, worthless)


def truth(rows: Sequence[Sequence[float]], classes: Sequence[int]) -> Boxes:
    """Return annotated boxes of rows of x, y, w, h."""
    xywh = np.array(rows, float).reshape(-1, 4)
    none = np.zeros(len(xywh), bool)
    return Boxes(xywh, np.array(classes, np.int64), none, xywh[:, 2] * xywh[:, 3], none)


def found(*rows: Sequence[float]) -> Detections:
    """Return detections of rows of x1, y1, x2, y2, score, class."""
    table = np.array(rows, float).reshape(-1, 6)
    return Detections(table[:, :4], table[:, 4], table[:, 5].astype(np.int64))


def decoded(seed: int) -> dict[str, Array]:
    """Return seven boxes inside of the network's input, and their scores."""
    corners = np.sort(np.random.default_rng(seed).random((1, 7, 2, 2)) * 32, axis=2)
    scores = np.random.default_rng(seed + 10).random((1, 7, 3), np.float32) ** 2
    return {"scores": scores, "boxes": corners.reshape(1, 7, 4).astype(np.float32)}
