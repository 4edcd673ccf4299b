"""librosa: istft and griffinlim."""

from __future__ import annotations

import warnings

import numpy as np

from backends.sound.framing import window
from backends.sound.vocoders import FIELDS, vocoders
from simulator.contract import Array, Backend, Evidence, Library, Vocoder

_librosa = Library("librosa", distribution="librosa", extra="librosa")


class LibrosaVocoder(Vocoder):
    """``librosa.istft``, and ``librosa.griffinlim`` with its own iteration.

    ``phase: zeros`` is ``init=None``, ``random`` its default with ``random_state=0``.
    """

    def _wave(self, spectrum: Array, n_fft: int, win_length: int, hop: int) -> Array:
        options = self.options
        shape = window(options, win_length, n_fft)
        common = {
            "hop_length": hop, "n_fft": n_fft, "window": shape,
            "center": options["center"],
        }  # fmt: skip
        if options["method"] == "istft":
            made: Array = _librosa.istft(spectrum, **common)
            return made
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of momentum
            found: Array = _librosa.griffinlim(
                spectrum, n_iter=options["iterations"], momentum=options["momentum"],
                init="random" if options["phase"] == "random" else None, random_state=0,
                pad_mode=options["pad_mode"], dtype=np.float32, **common,
            )  # fmt: skip
        return found


BACKEND = Backend(
    name="librosa",
    summary="librosa: istft and griffinlim",
    library=_librosa,
    offers=vocoders(
        LibrosaVocoder,
        "https://librosa.org/doc/: istft, griffinlim",
        windows=("hann", "hamming", "none"),
        evidence=Evidence.NATIVE,
    ),
    fields=FIELDS,
)
