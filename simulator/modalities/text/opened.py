"""Opened tokenizers: each vocabulary is read once, and a sample's ids are computed once."""

from __future__ import annotations

import threading
from collections import OrderedDict
from functools import lru_cache
from typing import TYPE_CHECKING

from simulator.contract.text import Passage, Tokenizer, Tokens
from simulator.errors import ModelError, SampleError, foreign
from simulator.modalities.text.pairs import tokenized

if TYPE_CHECKING:
    from simulator.modalities.text.front_end import Tokenize

TOKENIZERS = 16
"""Tokenizers that stay open."""
SAMPLES = 64
"""Samples whose ids are kept for whoever asks next."""


class Encoder:
    """An opened tokenizer, for requests; may be called from several threads.

    Args:
        recipe: says which.

    Attributes:
        tokenizer: None where samples bring their ids.
    """

    def __init__(self, recipe: Tokenize) -> None:
        self.tokenizer: Tokenizer | None = recipe.make()
        self._recipe = recipe
        self._known: OrderedDict[Passage, tuple[Tokens, ...]] = OrderedDict()
        self._lock = threading.Lock()

    def __call__(self, passage: Passage) -> tuple[Tokens, ...]:
        """Return the ids of each request, computed now.

        Raises:
            SampleError: a text becomes no ids, or the tokenizer refuses it.
            ModelError: the ids are those of another network.
        """
        found = tokenized(passage, self._encode if self.tokenizer else None, self._recipe.limits)
        with self._lock:
            self._known[passage] = found
            while len(self._known) > SAMPLES:
                self._known.popitem(last=False)
        return found

    def known(self, passage: Passage) -> tuple[Tokens, ...]:
        """Return the ids of each request; those of the last samples are still known."""
        found = self._known.get(passage)
        return self(passage) if found is None else found

    def _encode(self, text: str) -> list[int]:
        assert self.tokenizer is not None
        with foreign(SampleError, "the tokenizer refuses it"):
            return self.tokenizer.encode(text)


def encoder(recipe: Tokenize) -> Encoder:
    """Return the opened tokenizer of a recipe; recipes with equal identity share it.

    Raises:
        ModelError: its vocabulary cannot be used, or is that of another model.
        MissingLibrary: its library is not installed.
    """
    with _opening:
        return _opened(recipe)


@lru_cache(maxsize=TOKENIZERS)
def _opened(recipe: Tokenize) -> Encoder:
    with foreign(ModelError, str(recipe.file)):
        return Encoder(recipe)


_opening = threading.Lock()
