"""Whisper in CTranslate2, with a model of the user's own."""

import os
from pathlib import Path

import numpy as np
import pytest
from installing import uninstall

from simulator import registry
from simulator.errors import MissingLibrary, ModelError
from simulator.model.card import load

CARD = """\
schema: 1
name: whisper
task: transcription
ctranslate2: {folder}
input:
  {{kind: audio, features: log_mel, rate: 16000, layout: NMT, samples: 480000, frames: 3000,
   n_fft: 400, win_length: 400, hop: 160, n_mels: 80, fmin: 0, fmax: 8000}}
output: {{tokens: {folder}/tokenizer.json, words: lower}}
"""
OPTIONS = {
    "device": "cpu", "threads": 1, "beam_size": 1, "timestamps": False, "language": "en",
    "storage": "fp32", "compute": "fp32",
}  # fmt: skip


def test_a_card_may_name_a_folder_only(tmp_path):
    (tmp_path / "w").mkdir()
    (tmp_path / "w" / "tokenizer.json").write_text('{"added_tokens": [], "model": {"vocab": {}}}')
    (tmp_path / "card.yaml").write_text(CARD.format(folder="w"))

    assert load(tmp_path / "card.yaml").file("ctranslate2") == tmp_path / "w"


def test_a_folder_that_is_not_there_is_one_line(tmp_path):
    (tmp_path / "card.yaml").write_text(CARD.format(folder="w"))
    with pytest.raises(ModelError, match=r"^[^\n]*ctranslate2: there is no folder[^\n]*$"):
        load(tmp_path / "card.yaml")


def runtime(folder, **changed):
    return registry.backend("ctranslate2").offers[0].make(folder, OPTIONS | changed)


def test_noise_is_no_model(tmp_path):
    (tmp_path / "model.bin").write_bytes(b"noise")
    with pytest.raises(ModelError, match=r"^[^\n]*CTranslate2 cannot open it[^\n]*$"):
        runtime(tmp_path)


def test_what_is_missing_says_so(monkeypatch):
    library = registry.backend("ctranslate2").libraries[0]
    uninstall(monkeypatch, library)
    with pytest.raises(MissingLibrary, match="transcription"):
        library.load()


@pytest.mark.extras
def test_whisper_hears_nothing_in_silence_and_the_same_twice():
    """``WHISPER`` is the folder of a model, as faster-whisper takes it."""
    folder = os.environ.get("WHISPER")
    if not folder:
        pytest.skip("WHISPER names no folder")
    opened = runtime(Path(folder))
    silence = np.full((1, 80, 3000), -1.5, np.float32)
    first, again = (opened.run({"features": silence})["ids"] for _ in range(2))

    assert first.dtype == np.int64 and first.shape[0] == 1
    assert first.tolist() == again.tolist()
    with pytest.raises(ModelError, match="knows English only"):
        runtime(Path(folder), language="de")
