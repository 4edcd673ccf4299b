"""Greedy decoding: each inference takes what the last one found most likely."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from simulator.contract import Array
from simulator.contract.text import Row
from simulator.errors import ModelError, SampleError
from simulator.tasks.text import array_of

Feeds = Mapping[str, Array]


@dataclass(frozen=True, slots=True)
class Greedy:
    """Writes on until a token ends the text, or there are enough; without a KV cache.

    Attributes:
        tokens: how many are written at most.
        stop: ids that end the text.
        longest: positions that the network has.
        names: what the network calls its inputs: ``ids``, ``mask``, ``positions``; None for one
            that it does not take.
        logits: the output with the logits; None: the first one.
    """

    tokens: int
    stop: tuple[int, ...]
    longest: int
    names: Mapping[str, str | None]
    logits: str | None = None

    def identity(self) -> Any:
        """Return how long it goes on, and what ends it."""
        return ["greedy", self.tokens, list(self.stop), self.longest]

    def steps(
        self, feeds: Any, placement: tuple[Row, ...]
    ) -> Generator[Feeds, Feeds, tuple[Feeds, ...]]:
        """Yield what each inference takes, be sent its outputs, and return those that are read.

        Args:
            feeds: of the first inference, as the modality made it: one mapping of (1, T) arrays,
                or a tuple of one.
            placement: the request.

        Raises:
            SampleError: there is nothing to write on from.
            ModelError: a sample has several requests.
        """
        if len(placement) != 1:
            raise ModelError(f"generation takes one request a sample, got {len(placement)}")
        (row,) = placement
        given: Feeds = feeds[0] if isinstance(feeds, tuple) else feeds
        last = row.first + len(row.tokens.ids) - 1
        if last < row.first:
            raise SampleError("the text has no token to write on from")
        found: list[Feeds] = []
        while True:
            outputs = yield given
            logits = array_of(outputs, Row(0, 0, 0, row.tokens), 3, self.logits)
            if last >= len(logits):
                raise ModelError(f"logits for {last + 1} tokens expected, got {len(logits)}")
            found.append({"logits": logits[None, last : last + 1].copy()})
            token = int(logits[last].argmax())
            if token in self.stop or len(found) >= self.tokens or last + 1 >= self.longest:
                return tuple(found)
            given, last = self._longer(given, token, last)

    def _longer(self, feeds: Feeds, token: int, last: int) -> tuple[Feeds, int]:
        """The feeds with one more token, and its place: in padding where there is some."""
        ids = feeds[str(self.names["ids"])]
        mask, positions = (self.names.get(what) for what in ("mask", "positions"))
        place, room = last + 1, last + 1 < ids.shape[1]
        shift = not room and mask in feeds and not feeds[str(mask)][0, 0]

        def put(values: Array, value: int) -> Array:
            if room:
                longer = values.copy()
                longer[:, place] = value
                return longer
            kept = values[:, 1:] if shift else values
            return np.concatenate([kept, np.full((1, 1), value, values.dtype)], axis=1)

        longer = {**feeds, str(self.names["ids"]): put(ids, token)}
        if mask is not None:
            longer[mask] = put(feeds[mask], 1)
        if positions is not None:
            longer[positions] = put(feeds[positions], int(feeds[positions][0, last]) + 1)
        return longer, last if shift else place
