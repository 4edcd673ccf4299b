"""The conventions of sounds that values alone do not show, in code that is written here."""

import pytest
from shared_data import shared

import simulator

CODE = """\
import numpy as np, soundfile
MEL = np.load({mel!r})

def features(path, window=np.hanning(257)[:-1], power=2):
    x = soundfile.read(path, dtype="float32")[0]
    x = np.pad(x, 128, mode="reflect")
    frames = np.lib.stride_tricks.sliding_window_view(x, 256)[::128]
    spectrum = np.abs(np.fft.rfft(frames * window, axis=1)).T ** power
    return np.log(MEL @ spectrum + 1e-6).astype(np.float32)[None]

def pre(path): return features(path)
def hamming(path): return features(path, window=np.hamming(257)[:-1])
def magnitude(path): return features(path, power=1)
"""


@pytest.mark.parametrize(
    ("function", "name"),
    [("hamming", "the window is Hamming's"), ("magnitude", "magnitudes in place of powers")],
)
def test_a_convention_is_found_by_varying_the_model_cards(cache, tmp_path, function, name):
    audio = shared("audio")
    (tmp_path / "own.py").write_text(CODE.format(mel=str(audio / "fsdd_mel40_8k_256.npy")))
    code = f"{tmp_path / 'own.py'}:"
    summary = simulator.diagnose(
        code + "pre", code + function, model="tests/cards/digits.yaml", data=audio / "fsdd_test",
        out=tmp_path / "run", limit=1,
    ).summary  # fmt: skip

    assert [one.name for one in summary.findings] == [name]
    assert summary.explained
