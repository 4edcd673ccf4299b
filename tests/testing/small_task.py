"""The smallest task that there can be: everything else is by default."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from simulator.errors import ModelError
from simulator.tasks.finite import check_finite
from simulator.tasks.settings import Network
from simulator.tasks.specimen import Specimen
from simulator.tasks.task import CHANGES, Task


class Parity(Task):
    """Which of several choices a model prefers: one inference each, the largest output wins."""

    name = "parity"
    metrics = ("accuracy",)
    columns = (pa.field("accuracy", pa.float64()), pa.field("choice", pa.int64()), *CHANGES)
    several = True

    def decode(self, outputs, settings, placement):
        values = [value for (value,) in (part.values() for part in outputs)]
        if any(value.shape != (1, 1) or value.dtype.kind not in "fiu" for value in values):
            raise ModelError(f"parity expects an output (1, 1), got {values[0].shape}")
        scores = np.concatenate(values).ravel()
        check_finite(scores)
        return int(scores.argmax())

    def record(self, prediction, truth):
        right = None if truth is None else float(prediction == truth)
        return {"accuracy": right, "choice": prediction}

    def examples(self):
        return [(0, 0), (1, 1), (2, 2)]


def scored(*scores):
    """One inference for each choice."""
    return tuple({"y": np.array([[score]], np.float32)} for score in scores)


def parity(task):
    made = task(task.Output(), Network())
    outputs = scored(0.5, 2.0, 1.0), scored(3.0, -1.0, 0.0)
    return Specimen(made, outputs, None, 1, [(0, 2), (1, 0), (2, 1)])
