"""What the conformance suite tries classification with."""

from __future__ import annotations

from typing import Literal

import numpy as np

from simulator.data.labels import Labels
from simulator.tasks.classification.answer import Answer
from simulator.tasks.settings import Network
from simulator.tasks.specimen import Specimen
from simulator.tasks.task import Task

LABELS = Labels(("cat", "dog", "cow", "hen", "pig", "bat", "fox"))


def logits(
    task: type[Task],
    kind: Literal["logits", "probabilities"] = "logits",
    background: int = 0,
    labels: Labels | None = LABELS,
) -> Specimen:
    """Return seven classes with background classes before them, as logits or as their softmax."""
    outputs, classes = [], len(LABELS)
    for best in (0, 1):
        drawn = np.random.default_rng(best).normal(0, 1, (1, classes + background))
        values = drawn.astype(np.float32)
        values[0, background + best] = 5
        if kind == "probabilities":
            values = np.exp(values) / np.exp(values).sum()
        outputs.append({"y": values})
    made = task(task.Output(kind=kind, background=background), Network(labels))
    worthless = [
        (0, Answer(1, 0.5, 0.25, 7, (1, 2, 3, 4, 5))),
        (2, Answer(0, 1.0, 1.0, 7, (0, 1, 3, 4, 5))),
        (1, Answer(2, 0.0, 0.0, 7, (2, 5, 4, 3, 0))),
    ]
    return Specimen(made, (outputs[0], outputs[1]), None, 0, worthless)
