"""A byte-level tokenizer of plain Python that passes every check, and its faults."""

from __future__ import annotations

import json

from simulator.contract.text import Tokenizer
from simulator.errors import ModelError
from simulator.testing.vocabularies import alphabet


class PlainTokenizer(Tokenizer):
    """A token a byte."""

    takes = "tokenizers"

    def __init__(self, file, options):
        super().__init__(file, options)
        try:
            self.known = dict(json.loads(file.read_bytes())["model"]["vocab"])
            self.bytes = {self.known[text]: byte for byte, text in alphabet().items()}
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise ModelError(f"{file}: no vocabulary: {' '.join(str(error).split())}") from error

    @property
    def size(self):
        return len(self.known)

    def encode(self, text):
        letters = alphabet()
        ids = [self.known[letters[byte]] for byte in text.encode()]
        return [1, *ids] if self.options["special_tokens"] else ids

    def decode(self, ids):
        data = bytes(self.bytes[one] for one in ids if one in self.bytes)
        return data.decode(errors="replace")


class LosesBlanks(PlainTokenizer):
    def encode(self, text):
        return super().encode(text.replace("  ", " ") if len(text) < 99 else text)


class MissesTheAddedTokens(PlainTokenizer):
    @property
    def size(self):
        return super().size - 3


class JoinsPieces(PlainTokenizer):
    def pieces(self, ids):
        return [self.decode(ids)]


class NeverEmpty(PlainTokenizer):
    def encode(self, text):
        return super().encode(text or " ")


class FearsNul(PlainTokenizer):
    def encode(self, text):
        if "\x00" in text:
            raise KeyError("\x00")
        return super().encode(text)


class IgnoresSpecialTokens(PlainTokenizer):
    def __init__(self, file, options):
        super().__init__(file, {**options, "special_tokens": False})


class OpensAnyFile(PlainTokenizer):
    def __init__(self, file, options):
        try:
            super().__init__(file, options)
        except ModelError:
            self.known, self.bytes = {}, {}


FAULTS = {
    "texts_come_back": LosesBlanks,
    "ids_are_within_the_vocabulary": MissesTheAddedTokens,
    "each_id_has_its_piece": JoinsPieces,
    "an_empty_text_is_nothing": NeverEmpty,
    "any_text_will_do": FearsNul,
    "values_do_something": IgnoresSpecialTokens,
    "bad_vocabularies_are_refused": OpensAnyFile,
}
