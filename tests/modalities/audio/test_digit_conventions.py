"""The spoken digits: accuracy and flips of each convention, as measured outside of this program.

LANGUAGE-SPEECH.md, section 7: librosa, torch, TensorFlow, SciPy and kaldi-native-fbank called by
hand, the same network in ONNX Runtime, 300 recordings of the Free Spoken Digit Dataset.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import onnxruntime
import pytest
from shared_data import shared
from sounds import way

ROWS = {
    "torchaudio_defaults": ("torchaudio_defaults", [], 29.7, 208),
    "kaldi_fbank": (
        "kaldi_fbank", ["stft.dither=0.0", "log.floor=add", "log.value=1.0e-6"], 20.7, 238,
    ),
    "audio_scipy": ("audio_scipy", [], 13.0, 267),
    "float16": ("librosa_fp32", ["stft.arithmetic=float16"], 91.3, 1),
    "symmetric window": ("librosa_fp32", ["stft.window_symmetry=symmetric"], 91.3, 1),
    "zeros at the ends": ("librosa_fp32", ["stft.pad_mode=constant"], 91.3, 5),
    "not centred": ("librosa_fp32", ["stft.center=false", "stft.pad_mode=null"], 90.7, 19),
    "pad_end": (
        "librosa_fp32",
        ["stft.center=false", "stft.pad_mode=null", "stft.frames=every_hop"],
        92.3,
        15,
    ),
    "normalized": ("librosa_fp32", ["stft.scaling=sqrt_n"], 49.7, 147),
    "magnitude": ("librosa_fp32", ["stft.power=1"], 16.3, 243),
    "not divided": ("librosa_fp32", ["read.scale=int16"], 10.0, 279),
    "8 bits": ("librosa_fp32", ["read.width='8'"], 77.0, 51),
    "no norm": ("librosa_fp32", ["mel.norm=none"], 45.3, 163),
    "to 3800 Hz": ("librosa_fp32", ["mel.fmax=3800.0"], 86.7, 20),
    "floor": ("librosa_fp32", ["log.floor=max"], 90.0, 9),
}  # fmt: skip


@cache
def digits():
    """The bytes of each file, its digit, and the function that recognizes it."""
    folder = shared("audio")
    files = sorted((folder / "fsdd_test").glob("*.wav"))
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(folder / "fsdd_logmel_cnn.onnx", settings)
    truth = np.array([int(file.name[0]) for file in files])

    def recognized(through):
        inputs = (through(file.read_bytes(), file.name) for file in files)
        return np.array([session.run(None, {"logmel": one})[0].argmax() for one in inputs])

    return truth, recognized


@cache
def trained():
    return digits()[1](way("librosa_fp32"))


def test_the_training_stack_is_right_in_91_of_100():
    truth, _ = digits()

    assert len(truth) == 300
    assert round(100 * (trained() == truth).mean(), 1) == 91.0


@pytest.mark.parametrize("row", ROWS)
def test_a_convention_costs_what_it_cost_by_hand(row):
    profile, overrides, accuracy, flips = ROWS[row]
    truth, recognized = digits()

    found = recognized(way(profile, None, *overrides))

    assert round(100 * (found == truth).mean(), 1) == accuracy
    assert (found != trained()).sum() == flips
