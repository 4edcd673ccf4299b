"""Sounds of the tests' own, and a profile's way from a file to the network's input."""

from __future__ import annotations

import struct
from types import SimpleNamespace

import numpy as np

from simulator.contract.recipe import Context
from simulator.modalities.audio.card import AudioCard
from simulator.modalities.audio.headers import inspect
from simulator.modalities.audio.modality import AUDIO
from simulator.profile.implementations import choose
from simulator.profile.load import load

TRAINED = {
    "stft": {
        "center": True, "pad_mode": "reflect", "window": "hann", "window_symmetry": "periodic",
        "scaling": "none", "frames": "whole", "power": 2,
    },
    "mel": {"scale": "slaney", "norm": "slaney"},
    "log": {"kind": "ln", "floor": "add", "value": 1e-6},
    "normalize": {"kind": "none"},
}  # fmt: skip
DIGITS = {
    "kind": "audio", "features": "log_mel", "rate": 8000, "n_fft": 256, "win_length": 256,
    "hop": 128, "n_mels": 40, "fmin": 0, "fmax": 4000, "layout": "NMT",
}  # fmt: skip
WAVEFORM = {"kind": "audio", "features": "waveform", "rate": 8000, "layout": "NS"}


def card(given=DIGITS, trained=TRAINED, **changed):
    """A model card as the modality reads it; its network does not exist."""
    return AudioCard.model_validate(
        {
            "schema": 1,
            "name": "digits",
            "task": "classification",
            "model": "model.onnx",
            "input": {**given, **changed},
            "trained": trained,
            "output": {},
        }
    )


def way(profile, given=None, *overrides):
    """The function from a file's bytes to the network's input, of one stack."""
    loaded = load(profile, overrides)
    recipes = AUDIO.front_end(loaded, choose(loaded), given or card())
    guard = SimpleNamespace(guarded=lambda _, method: method)
    steps = [recipe.open(guard) for recipe in recipes]

    def through(data, name="sound"):
        value = inspect(name, data)
        context = Context(name, value, None)
        for step in steps:
            value = step(value, context)
        return value

    return through


def riff(body, form=1, channels=1, rate=8000, bits=16):
    """A WAV file with any bytes as its data."""
    block = channels * bits // 8
    head = struct.pack("<HHIIHH", form, channels, rate, rate * block, block, bits)
    chunks = b"fmt " + struct.pack("<I", 16) + head + b"data" + struct.pack("<I", len(body)) + body
    return b"RIFF" + struct.pack("<I", 4 + len(chunks)) + b"WAVE" + chunks


def floats(samples, rate=8000):
    """A WAV file of 32-bit floats."""
    return riff(np.asarray(samples, "<f4").tobytes(), form=3, rate=rate, bits=32)
