"""What the conformance suite tries voice activity with."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np

from simulator.tasks.settings import Network
from simulator.tasks.specimen import Specimen
from simulator.tasks.task import Task
from simulator.tasks.voice_activity.task import sure


def three_chunks(task: type[Task]) -> dict[str, Specimen]:
    """Return three chunks of a second each."""
    input = SimpleNamespace(rate=16000, chunk=SimpleNamespace(size=16000, carried={}))
    made = task(task.Output(probability="p", threshold=0.5), Network(input=input))
    first, second = (
        tuple({"p": np.array([[value]], np.float32)} for value in values)
        for values in ((0.1, 0.9, 0.2), (0.1, 0.2, 0.7))
    )
    worthless = [
        ([(1.0, 2.0)], sure(True, False, True)),
        ([], sure(True, True, True)),
        ([(-1e30, 1e30)], sure(False, False, False)),
    ]
    return {"three chunks": Specimen(made, (first, second), None, [(1.0, 2.0)], worthless)}
