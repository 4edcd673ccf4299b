"""Google's SentencePiece: ``.model`` files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from simulator.contract import Backend, Library, ModelError, Offer, Options, SampleError
from simulator.contract.text import Tokenizer
from simulator.errors import one_line

sp = Library("sentencepiece", distribution="sentencepiece", extra="text")

LARGEST = 2**28
"""Bytes of a model at most."""


class SentencePieceTokenizer(Tokenizer):
    """``sentencepiece.SentencePieceProcessor``.

    The normalizer, the blank before a text and the treatment of unknown characters are those of
    the file. Control symbols such as ``<s>`` are never read from a text.

    Source:
        https://github.com/google/sentencepiece/blob/master/python/README.md
    """

    takes = "sentencepiece"

    def __init__(self, file: Path, options: Options) -> None:
        super().__init__(file, options)
        try:
            if not 0 < file.stat().st_size <= LARGEST:
                raise ModelError(f"{file}: no SentencePiece model: 1 to {LARGEST:,} bytes expected")
            self._made = sp.SentencePieceProcessor()
            self._made.LoadFromSerializedProto(file.read_bytes())
        except (OSError, RuntimeError, ValueError) as error:
            raise ModelError(f"{file}: no SentencePiece model: {one_line(error, 300)}") from error
        added = options["special_tokens"]
        self._bos, self._eos = added in ("bos", "bos_eos"), added in ("eos", "bos_eos")
        for wanted, name in ((self._bos, "bos"), (self._eos, "eos")):
            if wanted and getattr(self._made, f"{name}_id")() < 0:
                raise ModelError(f"{file} has no {name.upper()}; write another special_tokens")

    @property
    def size(self) -> int:
        """The number of pieces."""
        return int(self._made.GetPieceSize())

    def encode(self, text: str) -> list[int]:
        """Return the ids of a text."""
        try:
            return list(self._made.Encode(text, add_bos=self._bos, add_eos=self._eos))
        except (RuntimeError, ValueError) as error:
            raise SampleError(f"SentencePiece refuses it: {error}") from error

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of some ids; control symbols have none."""
        return str(self._made.Decode(list(ids)))

    def pieces(self, ids: Sequence[int]) -> list[str]:
        """Return the pieces themselves, where a blank is a low line."""
        return [str(self._made.IdToPiece(one)) for one in ids]


BACKEND = Backend(
    name="sentencepiece",
    summary="Google SentencePiece: .model files",
    library=sp,
    offers=(
        Offer(
            "tokenize",
            {
                "special_tokens": (False, "bos", "eos", "bos_eos"),
                "parse_special": (False,),
                "prefix_space": ("file",),
                "normalizer": ("file",),
                "pre_tokenizer": ("file",),
            },
            SentencePieceTokenizer,
            source="https://github.com/google/sentencepiece",
        ),
    ),
)
