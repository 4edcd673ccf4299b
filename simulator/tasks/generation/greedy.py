"""Decoding: each inference takes the token that was chosen of the last one's logits."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from simulator.contract import Array
from simulator.contract.recipe import generator
from simulator.contract.text import Row
from simulator.errors import ModelError, SampleError
from simulator.modalities.text.sections import Decoding
from simulator.tasks.generation.growing import Growing, guessed, joined
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
        pad: the id of padding.
    """

    tokens: int
    stop: tuple[int, ...]
    longest: int
    names: Mapping[str, str | None]
    logits: str | None = None
    how: Decoding = field(default_factory=Decoding)
    carried: Mapping[str, str] = field(default_factory=dict)
    pad: int | None = None

    @property
    def is_cached(self) -> bool:
        """Whether an inference takes new tokens only."""
        return self.how.cache == "kv"

    @property
    def moves(self) -> bool:
        """Whether kept tokens get other positions."""
        return self.how.shift is not None

    @property
    def neighbours(self) -> int:
        """How many other samples' texts are written in the same batch."""
        return self.how.neighbours

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
                of one. Of several texts a list of these, the sample's own first.
            placement: the sample's request.

        Raises:
            SampleError: there is nothing to write on from.
            ModelError: a sample has several requests.
        """
        if len(placement) != 1:
            raise ModelError(f"generation takes one request a sample, got {len(placement)}")
        (row,) = placement
        every = feeds if isinstance(feeds, list) else [feeds]
        prompts = [one[0] if isinstance(one, tuple) else one for one in every]
        last = row.first + len(row.tokens.ids) - 1
        if last < row.first:
            raise SampleError("the text has no token to write on from")
        given, ends = joined(prompts, self.names, self.pad, last)
        text = Growing(given, self.names, ends, self.is_cached)
        state = {name: given[name] for name in self.carried if name in given}
        seeds = [row.tokens.ids, *(one[str(self.names["ids"])][0].tolist() for one in prompts[1:])]
        chosen: list[int | None] = [-1] * len(prompts)
        wrote, guesses, found = list[int](), list[int](), list[Feeds]()
        while True:
            begin, end = text.next(None if wrote else self.how.prefill_chunk)
            outputs = yield {**given, **text.feeds(begin, end), **state}
            if self.is_cached:
                state = {name: outputs[self.carried[name]] for name in self._given(outputs)}
            own = self._read(outputs, Row(0, 0, 0, row.tokens), text, (begin, end), len(guesses))
            gained = [self._chosen(one, seeds[0], len(wrote)) for one in own]
            right = next(
                (at for at, guess in enumerate(guesses) if guess != gained[at]), len(guesses)
            )
            gained = self._cut(gained[: right + 1], len(wrote))
            found.append(self._kept(own[: len(gained)], gained))
            for number in range(1, len(chosen)):
                read = self._read(outputs, Row(0, number, 0, row.tokens), text, (begin, end))
                if chosen[number] is not None and len(read):
                    chosen[number] = self._chosen(read[0], seeds[number], len(wrote))
            wrote += gained
            if end < text.width:
                continue
            text.forget(len(guesses) - right)
            if self.how.shift is not None and text.length(0) >= self.longest:
                text.shift(self.how.shift)
            chosen[0] = wrote[-1]
            chosen = [self._goes_on(one, text, at) for at, one in enumerate(chosen)]
            if chosen[0] is None or len(wrote) >= self.tokens:
                return tuple(found)
            text.add(chosen)
            room = min(self.tokens - len(wrote), self.longest - text.length(0)) - 1
            most = min(self.how.lookup or 0, room)
            guesses = guessed([*row.tokens.ids, *wrote], most) if most > 0 else []
            for guess in guesses:
                text.add([guess])

    def _chosen(self, logits: Array, seed: Sequence[int], number: int) -> int:
        """A text's next token: the likeliest, or drawn; equal prompts have equal draws."""
        if (how := self.how.sampling) is None:
            return int(logits.argmax())
        scaled = logits.astype(np.float64) / how.temperature
        summed = np.exp(scaled - scaled.max()).cumsum()
        drawn = generator("decoding", how.seed, *seed, "token", number).random()
        return int(np.searchsorted(summed, drawn * summed[-1], side="right"))

    def _cut(self, gained: list[int], written: int) -> list[int]:
        """What counts of the tokens of an inference: none behind the end of the text."""
        ends = (at + 1 for at, token in enumerate(gained) if token in self.stop)
        return gained[: min(next(ends, len(gained)), self.tokens - written)]

    def _kept(self, logits: Array, ids: list[int]) -> Feeds:
        """What is kept of an inference; drawn ids beside their logits."""
        drawn = {} if self.how.sampling is None else {"ids": np.array([ids], np.int64)}
        return {"logits": logits[None].copy(), **drawn}

    def _read(
        self, outputs: Feeds, row: Row, text: Growing, places: tuple[int, int], more: int = 0
    ) -> Array:
        """The logits behind a text's last token and those before it; none where it is elsewhere.

        Args:
            outputs: of the inference.
            row: of the text.
            text: says where the last token is.
            places: that the inference took, from and to.
            more: tokens before the last one.

        Raises:
            ModelError: there are too few.
        """
        logits, (begin, end) = array_of(outputs, row, 3, self.logits), places
        if len(logits) < end - begin:
            raise ModelError(f"logits for {end - begin} tokens expected, got {len(logits)}")
        last = text.last[row.row] - begin
        inside = 0 <= last - more <= last < end - begin
        return logits[last - more : last + 1] if inside else logits[:0]

    def _goes_on(self, token: int | None, text: Growing, row: int) -> int | None:
        """A text's next token; None where it has ended."""
        return None if token in self.stop or text.length(row) >= self.longest else token

    def _given(self, outputs: Feeds) -> list[str]:
        """The inputs of the cache whose outputs the network gives; none where it is stateful."""
        return [name for name, output in self.carried.items() if output in outputs]
