"""Where the outputs for each request of a sample are, for a given stack."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from simulator.contract.text import Passage, Row
from simulator.errors import SampleError
from simulator.modalities.text.front_end import Feed, Tokenize
from simulator.modalities.text.opened import encoder
from simulator.modalities.text.read import read
from simulator.places import Where, size_of

SPARE = 4
"""Special tokens that may be added to a text."""


@dataclass(frozen=True)
class TextPlacing:
    """Gives the rows of a sample's requests.

    Attributes:
        tokenize: the stack's step from texts to ids.
        feed: its step from ids to inputs.
    """

    tokenize: Tokenize
    feed: Feed

    def identity(self) -> Any:
        """Return both steps."""
        return [self.tokenize.identity(), self.feed.identity()]

    def __call__(self, source: Passage) -> tuple[Row, ...]:
        """Return a row for each request.

        Raises:
            SampleError: a request becomes no ids, or is over-long.
        """
        opened = encoder(self.tokenize)
        rows = self.feed.rows(opened.known(source))
        read = opened.tokenizer.decode if opened.tokenizer else None
        pairs = zip(rows, source.requests, strict=True)
        return tuple(replace(row, length=request.length, text=read) for row, request in pairs)


def is_cut(placing: TextPlacing, file: Where) -> bool:
    """Return whether a request of a sample is truncated; False where it is skipped.

    A token is a byte at least, and a blank may be put before each; so a file that is short enough
    is not read.
    """
    try:
        size = size_of(file)
        if size is not None and 2 * size + SPARE <= placing.feed.longest:
            return False
        return any(row.tokens.cut for row in placing(read(file)))
    except SampleError:
        return False
