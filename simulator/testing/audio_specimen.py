"""The samples and model with which the conformance suite tests the modality ``audio``."""

from __future__ import annotations

import io
import wave
from pathlib import Path

import numpy as np
import onnx
from onnx import helper

from simulator.contract import Array
from simulator.modalities.specimen import Specimen
from simulator.testing import models

CARD = """\
schema: 1
name: pitch
task: classification
model: model.onnx
input:
  {kind: audio, features: log_mel, rate: 8000, n_fft: 128, win_length: 128, hop: 64, n_mels: 3,
   fmin: 0, fmax: 4000, layout: NMT}
trained:
  stft:
    {center: true, pad_mode: reflect, window: hann, window_symmetry: periodic, scaling: none,
     frames: whole, power: 2}
  mel: {scale: slaney, norm: slaney}
  log: {kind: ln, floor: add, value: 1.0e-6}
  normalize: {kind: none}
output: {kind: logits}
"""


def write(folder: Path) -> Specimen:
    """Write two WAV files, and a classifier whose logits are the means of three bands."""
    path, other = folder / "one.wav", folder / "other.wav"
    path.write_bytes(wav(sine(440, 8000, 2000), 8000))
    other.write_bytes(wav(sine(1500, 16000, 3001), 16000))
    nodes = [
        helper.make_node("ReduceMean", ["x"], ["means"], axes=[2], keepdims=0),
        helper.make_node("MatMul", ["means", "weights"], ["y"]),
    ]
    weights = {"weights": np.eye(3, dtype=np.float32)}
    model = models.model("pitch", nodes, {"x": [1, 3, "t"]}, {"y": [1, 3]}, weights)
    onnx.save(model, folder / "model.onnx")
    (folder / "card.yaml").write_text(CARD)
    return Specimen((path, other), folder / "card.yaml", "librosa_fp32")


def sine(hertz: float, rate: int, count: int, level: float = 0.5) -> Array:
    """Return (count,) float64, a sine of an amplitude of *level*."""
    made: Array = level * np.sin(2 * np.pi * hertz / rate * np.arange(count))
    return made


def wav(samples: Array, rate: int, width: int = 2) -> bytes:
    """Return a WAV file of integers.

    Args:
        samples: (N,) or (N, channels) of full scale 1.
        rate: samples a second.
        width: bytes of a sample, 1 to 4.
    """
    rows = samples.reshape(len(samples), -1)
    top = 2 ** (8 * width - 1)
    whole = np.rint(rows * top).clip(-top, top - 1).astype(np.int64) + (128 if width == 1 else 0)
    file = io.BytesIO()
    with wave.open(file, "wb") as out:
        out.setnchannels(rows.shape[1])
        out.setsampwidth(width)
        out.setframerate(rate)
        out.writeframes(whole.astype("<i8").view(np.uint8).reshape(-1, 8)[:, :width].tobytes())
    return file.getvalue()
