"""Greedy decoding: each inference takes what the last one found most likely."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from typing import Any

from simulator.contract import Array
from simulator.contract.text import Row
from simulator.errors import ModelError, SampleError
from simulator.modalities.text.sections import Decoding
from simulator.tasks.generation.growing import Growing
from simulator.tasks.text import array_of

Feeds = Mapping[str, Array]


@dataclass(frozen=True, slots=True)
class Greedy:
    """Writes on until a token ends the text, or there are enough.

    Without a cache each inference takes the whole text; with one it takes new tokens only, and
    what the network gave of the earlier ones. A stateful runtime has kept that itself: the mask
    covers the whole text.

    Attributes:
        tokens: how many are written at most.
        stop: ids that end the text.
        longest: positions that the network has.
        names: what the network calls its inputs: ``ids``, ``mask``, ``positions``; None for one
            that it does not take.
        logits: the output with the logits; None: the first one.
        how: of the profile.
        carried: the output that each input of a KV cache becomes; empty where it takes none.
    """

    tokens: int
    stop: tuple[int, ...]
    longest: int
    names: Mapping[str, str | None]
    logits: str | None = None
    how: Decoding = field(default_factory=Decoding)
    carried: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_cached(self) -> bool:
        """Whether an inference takes new tokens only."""
        return self.how.cache == "kv"

    def identity(self) -> Any:
        """Return how long it goes on, what ends it, and how it is done."""
        how = self.how.model_dump(exclude_defaults=True)
        return ["greedy", self.tokens, list(self.stop), self.longest, *([how] if how else ())]

    def steps(
        self, feeds: Any, placement: tuple[Row, ...]
    ) -> Generator[Feeds, Feeds, tuple[Feeds, ...]]:
        """Yield what each inference takes, be sent its outputs, and return those that are read.

        Args:
            feeds: of the prompt, as the modality made it: one mapping of (1, T) arrays, or a tuple
                of one.
            placement: the request.

        Raises:
            SampleError: there is nothing to write on from.
            ModelError: a sample has several requests.
        """
        if len(placement) != 1:
            raise ModelError(f"generation takes one request a sample, got {len(placement)}")
        (row,) = placement
        given: Feeds = feeds[0] if isinstance(feeds, tuple) else feeds
        text = Growing(given, self.names, row.first + len(row.tokens.ids) - 1, self.is_cached)
        if text.last < row.first:
            raise SampleError("the text has no token to write on from")
        state = {name: given[name] for name in self.carried if name in given}
        found: list[Feeds] = []
        while True:
            begin, end = text.next(self.how.prefill_chunk)
            outputs = yield {**given, **text.feeds(begin, end), **state}
            logits = array_of(outputs, Row(0, 0, 0, row.tokens), 3, self.logits)
            if len(logits) < end - begin:
                raise ModelError(f"logits for {end - begin} tokens expected, got {len(logits)}")
            if self.is_cached:
                state = {name: outputs[self.carried[name]] for name in self._given(outputs)}
            at = text.last - begin
            read = logits[None, at : at + 1] if 0 <= at < end - begin else logits[None, :0]
            found.append({"logits": read.copy()})
            if end < text.width:
                continue
            token = int(read[0, 0].argmax())
            written = sum(one["logits"].shape[1] for one in found)
            if token in self.stop or written >= self.tokens or text.last + 1 >= self.longest:
                return tuple(found)
            text.add(token)

    def _given(self, outputs: Feeds) -> list[str]:
        """The inputs of the cache whose outputs the network gives; none where it is stateful."""
        return [name for name, output in self.carried.items() if output in outputs]
