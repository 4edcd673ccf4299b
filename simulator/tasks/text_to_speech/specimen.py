"""What the conformance suite tries text to speech with."""

from __future__ import annotations

import numpy as np

from simulator.tasks.settings import Network
from simulator.tasks.specimen import Specimen
from simulator.tasks.task import Task
from simulator.tasks.text_to_speech.spectrogram import WAVEFORM
from simulator.tasks.text_to_speech.task import Speech

RATE = 8000


def tones(task: type[Task]) -> dict[str, Specimen]:
    """Return two tones of different pitch and length; and as the spectra that a stack inverts."""
    found = {"durations": _tones(task, "w"), "waveform only": _tones(task, None)}
    return {**found, "spectra": _spectra(task)}


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


def _spectra(task: type[Task]) -> Specimen:
    """Return complex spectra of one frame and of two, and the waveforms that were made of them."""
    conventions = {
        "center": False, "window": "none", "scaling": "none", "frames": "whole", "power": 1,
    }  # fmt: skip
    spectrogram = {
        "outputs": ["real", "imaginary"], "features": "complex", "layout": "NMT", "n_fft": 4,
        "win_length": 4, "hop": 4,
    }  # fmt: skip
    asked = {"rate": RATE, "spectrogram": spectrogram, "trained": {"stft": conventions}}
    made = task(task.Output.model_validate(asked), Network())
    outputs = []
    for frames in (1, 2):
        parts = {name: np.zeros((1, 3, frames), np.float32) for name in ("real", "imaginary")}
        parts["real"][0, 0] = 4 * frames
        outputs.append({**parts, WAVEFORM: np.full(4 * frames, frames, np.float32)})
    wave = np.ones(4, np.float32)
    worthless = [([4], Speech(wave, RATE, (10**9,)))]
    return Specimen(made, ((outputs[0],), (outputs[1],)), None, [4], worthless)
