"""What the conformance suite tries classification with."""

from __future__ import annotations

from typing import Literal

import numpy as np

from simulator.contract.text import Row, Tokens
from simulator.data.labels import Labels
from simulator.tasks.classification.answer import Answer
from simulator.tasks.classification.prompts import Class, Matching, PromptedClasses
from simulator.tasks.settings import Network
from simulator.tasks.specimen import Specimen
from simulator.tasks.task import Task

LABELS = Labels(("cat", "dog", "cow", "hen", "pig", "bat", "fox"))


def specimens(task: type[Task]) -> dict[str, Specimen]:
    """Return classes that are scores, and classes that are prompts."""
    return {"logits": logits(task), "prompts": prompted(task)}


def prompted(task: type[Task], step: type[Matching] = Matching) -> Specimen:
    """Return seven classes of two prompts each, whose vectors a second network gave.

    Args:
        task: the class.
        step: what joins both networks.
    """
    asked = PromptedClasses.model_validate({
        "template": ["a {}", "{}"], "image": "image", "text": {"pooling": "none"}, "scale": 20,
        "input": {"vocabulary": 9, "max_length": 3, "names": {"ids": "ids"}},
    })  # fmt: skip
    made, classes = task(task.Output(kind="logits", prompts=asked), Network(LABELS)), len(LABELS)
    steps = []
    for first in (1, 2):  # the template begins with another word
        ids = [np.array([[first, number], [number, 0]], np.int64) for number in range(classes)]
        rows = tuple(Row(0, at, 0, Tokens((1, 2), 2)) for at in range(2))
        steps.append(step(asked, tuple(Class({"ids": one}, rows) for one in ids)))
    directions = np.eye(classes, dtype=np.float32)
    given = [{"text": np.stack([one, 2 * one + 0.1])} for one in directions]
    outputs = [{"image": (3 * directions[best] + 0.2)[None]} for best in (0, 1)]
    other = logits(task).worthless
    return Specimen(
        made, (outputs[0], outputs[1]), None, 0, other, tuple(steps), steps[0].joining(given)
    )


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
