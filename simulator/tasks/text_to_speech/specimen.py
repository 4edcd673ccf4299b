"""What the conformance suite tries text to speech with."""

from __future__ import annotations

import numpy as np

from simulator.tasks.settings import Network
from simulator.tasks.specimen import Specimen
from simulator.tasks.task import Task
from simulator.tasks.text_to_speech.task import Speech

RATE = 8000


def tones(task: type[Task]) -> dict[str, Specimen]:
    """Return two tones of different pitch and length, with durations and without."""
    return {"durations": _tones(task, "w"), "waveform only": _tones(task, None)}


def _tones(task: type[Task], durations: str | None) -> Specimen:
    """Return two tones.

    Args:
        task: the class.
        durations: the name of their output; None leaves it out.
    """
    made = task(task.Output(rate=RATE, waveform="y", durations=durations), Network())
    outputs = []
    for pitch, frames in ((220, (2, 3)), (330, (2, 2))):
        times = np.arange(sum(frames) * 256) / RATE
        wave = np.sin(2 * np.pi * pitch * times).astype(np.float32)
        one = {"y": 0.5 * wave[None, None]}
        if durations:
            one[durations] = np.array([[frames]], np.float32)
        outputs.append(one)
    wave = outputs[1]["y"].reshape(-1)
    worthless = [
        ([2, 3], Speech(wave, RATE, ())),
        ([2, 3], Speech(np.zeros(1, np.float32), RATE, (3, 2))),
        ([1], Speech(wave, RATE, (10**9,))),
    ]
    return Specimen(made, ((outputs[0],), (outputs[1],)), None, [2, 3], worthless)
