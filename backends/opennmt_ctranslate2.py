"""CTranslate2: Whisper, from a log-mel spectrogram to token ids."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from simulator.contract import (
    Admits,
    Array,
    AtLeast,
    Backend,
    Effective,
    Library,
    ModelError,
    Offer,
    Port,
    Runtime,
    Stage,
)

_CT2 = Library("ctranslate2", distribution="ctranslate2", extra="transcription")
FRAMES = 3000
"""Of a spectrogram: 30 s, which is all that the model takes."""
_TYPES = {"fp32": "float32", "int8": "int8_float32", "int16": "int16"}
_KINDS = {name: kind for kind, name in _TYPES.items()}


class WhisperRuntime(Runtime):
    """``ctranslate2.models.Whisper.generate`` on one window of 30 s, without sampling.

    The weights are converted to ``precision.storage`` when the folder is opened. Text, time stamps
    and special tokens come out as one row of ids, without the end. What CTranslate2 suppresses by
    default is suppressed: blanks at the beginning and the symbols that the model's ``config.json``
    lists.

    Source:
        https://opennmt.net/CTranslate2/python/ctranslate2.models.Whisper.html
    """

    takes: ClassVar[str] = "ctranslate2"

    def _open(self, artifact: Path) -> tuple[tuple[Port, ...], tuple[Port, ...]]:
        try:
            self._model = _CT2.models.Whisper(
                str(artifact),
                device="cpu",
                compute_type=_TYPES[self.options["compute"]],
                intra_threads=self.options["threads"],
                inter_threads=1,
            )
        except (RuntimeError, ValueError) as error:
            raise ModelError(f"{artifact}: CTranslate2 cannot open it: {error}") from error
        self._prompt = _prompt(artifact, self.options, self._model.is_multilingual)
        features = Port("features", np.dtype(np.float32), (1, self._model.n_mels, FRAMES))
        return (features,), (Port("ids", np.dtype(np.int64), (1, None)),)

    def _run(self, feeds: Mapping[str, Array]) -> Mapping[str, Array]:
        view = _CT2.StorageView.from_array(np.ascontiguousarray(feeds["features"]))
        (found,) = self._model.generate(
            view, [self._prompt], beam_size=self.options["beam_size"], return_scores=False
        )
        return {"ids": np.array([found.sequences_ids[0]], np.int64)}

    def effective(self, feeds: Mapping[str, Array]) -> Effective:
        """Return the type that CTranslate2 says it computes in."""
        kind = self._model.compute_type
        return Effective({}, {"device": "cpu"}, {"compute_type": kind}, _KINDS.get(kind, kind))

    def _close(self) -> None:
        self._model.unload_model()


def _prompt(folder: Path, options: Mapping[str, Any], multilingual: bool) -> list[int]:
    """The ids before the answer: start, language and task where it has several, time stamps.

    Raises:
        ModelError: the folder's ``tokenizer.json`` lacks one of them.
    """
    words = ["<|startoftranscript|>"]
    if multilingual:
        words += [f"<|{options['language']}|>", "<|transcribe|>"]
    elif options["language"] != "en":
        raise ModelError(f"{folder}: language: {options['language']}, and it knows English only")
    words += [] if options["timestamps"] else ["<|notimestamps|>"]
    file = folder / "tokenizer.json"
    try:
        known = {one["content"]: one["id"] for one in json.loads(file.read_bytes())["added_tokens"]}
        return [known[word] for word in words]
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise ModelError(f"{file}: has no tokens {' '.join(words)}: {error}") from error


def _offer(kind: str) -> Offer:
    options: dict[str, Admits] = {
        "device": ("cpu",),
        "threads": AtLeast(1),
        "beam_size": AtLeast(1),
        "timestamps": (False, True),
        "language": ("en", "de", "es", "fr", "it", "ja", "ko", "nl", "pt", "ru", "zh"),
        "storage": (kind,),
        "compute": (kind,),
    }
    source = "https://opennmt.net/CTranslate2/quantization.html"
    return Offer(Stage.RUNTIME, options, WhisperRuntime, source=source)


BACKEND = Backend(
    name="ctranslate2",
    summary="CTranslate2: Whisper on a CPU, as faster-whisper runs it, in FP32, INT16 and INT8",
    library=_CT2,
    offers=tuple(_offer(kind) for kind in _TYPES),
    fields={
        "beam_size": "hypotheses that are followed; 1: greedy",
        "timestamps": "whether time stamps are written between the words; they change the words",
        "language": "what is spoken; a model that knows one language takes that only",
    },
)
