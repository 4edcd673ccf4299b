"""llama.cpp's own tokenizers, which read the vocabulary of a GGUF file."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from backends.llama_cpp.library import check, llama, started
from simulator.contract import Evidence, ModelError, Offer, Options, SampleError
from simulator.contract.text import Tokenizer

_PIECE = 64
"""Bytes of a piece for which there is room at first."""


class LlamaTokenizer(Tokenizer):
    """``llama_tokenize`` on the vocabulary of a GGUF file, whose weights are not read.

    ``special_tokens`` is its ``add_special``: BOS and EOS as the file says. Blanks, normalizing
    and splitting follow ``tokenizer.ggml.pre`` and the file's other fields.

    Source:
        https://github.com/ggml-org/llama.cpp/blob/master/include/llama.h
    """

    takes = "gguf"

    def __init__(self, file: Path, options: Options) -> None:
        super().__init__(file, options)
        check(file)
        self._model, self._vocab = opened(file)

    @property
    def size(self) -> int:
        """The number of tokens of the file."""
        return int(llama.llama_vocab_n_tokens(self._vocab))

    def encode(self, text: str) -> list[int]:
        """Return the ids of a text."""
        try:
            data = text.encode()
        except UnicodeEncodeError as error:
            raise SampleError(f"half a character: {error.reason}") from error
        added, parsed = self.options["special_tokens"], self.options["parse_special"]
        return tokenized(self._vocab, data, added, parsed)

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of some ids, special tokens included."""
        return b"".join(map(self._piece, ids)).decode(errors="replace")

    def _piece(self, token: int) -> bytes:
        from ctypes import create_string_buffer

        room = _PIECE
        while True:
            buffer = create_string_buffer(room)
            length = llama.llama_token_to_piece(self._vocab, token, buffer, room, 0, True)
            if length >= 0:
                return buffer.raw[:length]
            room = -length

    def __del__(self) -> None:
        """Give the vocabulary's memory back."""
        model = self.__dict__.get("_model")
        if model is not None and llama is not None:  # None while Python ends
            llama.llama_model_free(model)


def opened(file: Path) -> tuple[Any, Any]:
    """Open the vocabulary of a file; return its model and its vocabulary.

    Raises:
        ModelError: llama.cpp refuses the file.
    """
    started()
    parameters = llama.llama_model_default_params()
    parameters.vocab_only = True
    model = llama.llama_model_load_from_file(str(file).encode(), parameters)
    if not model:
        raise ModelError("llama.cpp refuses it: cut short, or no GGUF with a vocabulary it knows")
    return model, llama.llama_model_get_vocab(model)


def tokenized(vocab: Any, data: bytes, add_special: bool, parse_special: bool) -> list[int]:
    """Return the ids of UTF-8."""
    room = len(data) + 8
    while True:
        ids = (llama.llama_token * room)()
        count = llama.llama_tokenize(vocab, data, len(data), ids, room, add_special, parse_special)
        if count >= 0:
            return list(ids[:count])
        room = -count


def trial(file: str) -> None:
    """Open a file and use its vocabulary, in a process that may be lost; the reason goes to stderr.

    Each byte that UTF-8 can have is in one of the texts.
    """
    texts = ["".join(map(chr, range(0x800))), "\u4f60\uffee \U0001f600\U0010ffff", "The 2020 <s>"]
    try:
        model, vocab = opened(Path(file))
        for text in texts:
            tokenized(vocab, text.encode(), True, True)
        llama.llama_model_free(model)
    except (ModelError, SampleError) as error:
        sys.exit(str(error))


TOKENIZE = Offer(
    "tokenize",
    {
        "special_tokens": (False, True),
        "parse_special": (True, False),
        "prefix_space": ("file",),
        "normalizer": ("file",),
        "pre_tokenizer": ("file",),
    },
    LlamaTokenizer,
    evidence=Evidence.NATIVE,
    source="https://github.com/ggml-org/llama.cpp",
)
