"""From token ids to text, by the byte-level vocabulary of a ``tokenizer.json``."""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

from simulator.errors import ModelError, one_line

_PLAIN = (*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAC + 1), *range(0xAE, 0xFF + 1))
"""The bytes that such a vocabulary writes as the character of that code."""


class Vocabulary:
    """The bytes of each token; special tokens are no text.

    Args:
        file: a ``tokenizer.json`` with a byte-level vocabulary, as GPT-2 and Whisper have it.

    Raises:
        ModelError: the file cannot be read, or is no such vocabulary.

    Source:
        https://github.com/openai/gpt-2/blob/master/src/encoder.py, ``bytes_to_unicode``: the bytes
        that are not printable are the characters from 256 on.
    """

    def __init__(self, file: Path) -> None:
        bytes_of = {chr(byte): byte for byte in _PLAIN}
        others = (byte for byte in range(256) if byte not in _PLAIN)
        bytes_of |= {chr(256 + at): byte for at, byte in enumerate(others)}
        try:
            content = json.loads(file.read_text(encoding="utf-8"))
            known, added = content["model"]["vocab"], content["added_tokens"]
            special = {token["id"] for token in added}
            self._tokens = {
                number: bytes(bytes_of[character] for character in token)
                for token, number in known.items()
                if number not in special
            }
        except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
            why = one_line(error)
            raise ModelError(f"{file}: no byte-level tokenizer.json: {why}") from error
        self.size = max([*self._tokens, *special], default=-1) + 1
        """The number of ids."""

    def text(self, ids: Iterable[int]) -> str:
        """Return the text of some ids; bytes that are no UTF-8 become U+FFFD.

        Raises:
            ModelError: an id is below 0. One above the vocabulary is a time stamp, and no text.
        """
        found = list(ids)
        if any(number < 0 for number in found):
            raise ModelError(f"a token id from 0 up expected, got {min(found)}")
        joined = b"".join(self._tokens.get(number, b"") for number in found)
        return joined.decode("utf-8", "replace").strip()


@lru_cache(maxsize=8)
def vocabulary(file: Path) -> Vocabulary:
    """Return the vocabulary of a file, read once a process.

    Raises:
        ModelError: see :class:`Vocabulary`.
    """
    return Vocabulary(file)
