"""Texts: requests to a language model, in JSON or plain text files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypedDict

import numpy as np

from simulator.contract.recipe import Recipe
from simulator.contract.text import Passage, Row, Tokens
from simulator.errors import SampleError
from simulator.modalities.modality import Feed, Modality
from simulator.modalities.text import front_end
from simulator.modalities.text.card import Past, TextCard
from simulator.modalities.text.opened import encoder
from simulator.modalities.text.read import SUFFIXES, read
from simulator.modalities.text.sections import Decoding, TextSpec
from simulator.places import Where, size_of
from simulator.profile.implementations import Choices, choose
from simulator.profile.profile import Profile

SPARE = 4
"""Special tokens that may be added to a text."""
REQUESTS = 4
"""Requests of a sample that are shown at most."""
CHOICES, LETTERS = 16, 2000
"""Requests of a sample whose texts are kept at most, and characters of each text."""
AROUND = 3
"""Equal tokens that are shown before and after those that differ."""
PIECES = 24
"""Tokens that are shown at most."""
_INT64 = np.dtype(np.int64)


class Beside(TypedDict):
    """The tokens of one request in two stacks, where they differ.

    Attributes:
        request: its number.
        tokens: how many ids each stack has.
        pieces: of each stack, about the place where they differ.
    """

    request: int
    tokens: list[int]
    pieces: list[list[str]]


@dataclass(frozen=True)
class TextPlacing:
    """Gives the rows of a sample's requests.

    Attributes:
        tokenize: the stack's step from texts to ids.
        feed: its step from ids to inputs.
    """

    tokenize: front_end.Tokenize
    feed: front_end.Feed

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


class TextModality(Modality):
    """One or several requests a sample; its source is a :class:`Passage`."""

    name = "text"
    unit = "text"
    length = "characters"
    fed = "tokens"
    suffixes = SUFFIXES
    levels = "ids"
    Spec = TextSpec
    Card = TextCard
    tried_with = "simulator.testing.text_specimen:write"

    def read(self, name: str, path: Where) -> Passage:
        """Read one file and check its requests."""
        return read(path)

    def located(self, card: Any, find: Callable[[str, str], Path]) -> Any:
        """Return the card with the paths of its vocabularies found."""
        return card.model_copy(update={"input": card.input.located(find, "input")})

    def feeds(self, card: Any) -> tuple[Feed, ...]:
        """Return the inputs that the card names: int64 of any batch and length, then constants."""
        names = card.input.names.model_dump()
        taken = {role: name for role, name in names.items() if name is not None}
        tokens = [
            Feed(name, _INT64, (None,) if role == "lengths" else (None, None), fill=_FILL[role])
            for role, name in taken.items()
        ]
        constants = [
            Feed(name, np.dtype(np.float32), (len(values),), fill=tuple(values))
            for name, values in card.input.constants.items()
        ]
        return (*tokens, *(self._kept(card.input.past) if card.input.past else ()), *constants)

    @staticmethod
    def _kept(past: Past) -> Iterator[Feed]:
        shape = (None, past.heads, None, past.width)
        return (Feed(name, np.dtype(np.float32), shape, is_state=True) for name in past.carried)

    def carried(self, card: Any) -> Mapping[str, str]:
        """Return the output that each input of a KV cache becomes."""
        return card.input.past.carried if card.input.past else {}

    def postprocess(self, profile: Profile, card: Any) -> Decoding:
        """Return how a text is written on."""
        assert isinstance(profile.spec, TextSpec)
        return profile.spec.decoding

    def problem(self, card: Any, graph: Any) -> str | None:
        """Compare the embedding, which ids are looked up in, with the card's vocabulary."""
        ids = {card.input.names.ids}
        for node in graph.node:
            if node.op_type == "Cast" and node.input[0] in ids:
                ids |= set(node.output)
        tables = {node.input[0] for node in graph.node
                  if node.op_type == "Gather" and node.input[1] in ids}  # fmt: skip
        for table in graph.initializer:
            if table.name in tables and table.dims[0] < card.input.vocabulary:
                return (
                    f"its embedding has {table.dims[0]:,} ids, and input.vocabulary is "
                    f"{card.input.vocabulary:,}: ids beyond it would be read past its end"
                )
        return None

    def front_end(self, profile: Profile, choices: Choices, card: Any) -> list[Recipe]:
        """Return the steps from a sample's requests to the network's inputs."""
        return [front_end.tokenizing(profile, choices, card), front_end.feeding(profile, card)]

    def placing(self, profile: Profile, card: Any) -> TextPlacing:
        """Return the function that gives the rows of a sample's requests.

        Of a front end that is not ours they are those of the sections that describe it.
        """
        spec = profile.spec.model_copy(update={"front_end": None})
        tokenize = front_end.tokenizing(profile, choose(replace(profile, spec=spec)), card)
        return TextPlacing(tokenize, front_end.feeding(profile, card))

    def beside(self, placings: Sequence[TextPlacing], source: Passage) -> list[Beside] | None:
        """Return the requests of a sample whose ids differ between two stacks, the first few.

        Requests that differ in the same pieces, such as those of a shared context, are told once.
        """
        rows = [placing(source) for placing in placings]
        found: list[Beside] = []
        for number, pair in enumerate(zip(*rows, strict=True)):
            tokens = [row.tokens for row in pair]
            if tokens[0].ids != tokens[1].ids and len(found) < REQUESTS:
                parts = _parts(*tokens)
                shown = [
                    _told(placing, part) for placing, part in zip(placings, parts, strict=True)
                ]
                lengths = [len(token.ids) for token in tokens]
                if all(known["pieces"] != shown for known in found):
                    found.append({"request": number, "tokens": lengths, "pieces": shown})
        return found or None

    def asked(self, source: Passage) -> list[dict[str, str]]:
        """Return the texts of the first requests; of a long context the end is kept."""
        return [
            {
                "context": text if len(text := one.context) <= LETTERS else f"…{text[-LETTERS:]}",
                "continuation": text if len(text := one.continuation) <= LETTERS else
                f"{text[:LETTERS]}…",
            }
            for one in source.requests[:CHOICES]
        ]  # fmt: skip

    def remarks(
        self, placing: Any, files: Sequence[Where], choices: Choices, format: str | None
    ) -> list[str]:
        """Say how many texts are over-long, so that their contexts are cut."""
        longest, side = placing.feed.longest, placing.feed.truncation_side
        number = sum(_is_cut(placing, file) for file in files)
        told = (
            f"{number:,} of {len(files):,} texts are longer than the {longest:,} tokens that the "
        )
        return [f"{told}network takes: their contexts are cut on the {side}"] if number else []

    def sizes(self, source: Passage) -> dict[str, int]:
        """Return the file's bytes, the characters of all requests, and how many these are."""
        texts = [request.context + request.continuation for request in source.requests]
        return {
            "bytes": len(source.data),
            "characters": sum(map(len, texts)),
            "requests": len(texts),
        }


def _is_cut(placing: TextPlacing, file: Where) -> bool:
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


def _parts(one: Tokens, other: Tokens) -> list[Sequence[int]]:
    """The ids of both about the place where they differ."""
    pairs = list(zip(one.ids, other.ids, strict=False))
    first = next((at for at, (a, b) in enumerate(pairs) if a != b), len(pairs))
    backward = zip(reversed(one.ids), reversed(other.ids), strict=False)
    same = 0
    for a, b in backward:
        if a != b or same >= len(pairs) - first:
            break
        same += 1
    start = max(first - AROUND, 0)
    ends = (max(len(ids) - same + AROUND, start) for ids in (one.ids, other.ids))
    return [
        ids[start : min(end, start + PIECES)]
        for ids, end in zip((one.ids, other.ids), ends, strict=True)
    ]


def _told(placing: TextPlacing, ids: Sequence[int]) -> list[str]:
    tokenizer = encoder(placing.tokenize).tokenizer
    return list(map(str, ids)) if tokenizer is None else tokenizer.pieces(ids)


_FILL = {"ids": 0, "mask": 1, "positions": 0, "types": 0, "lengths": 1}
TEXT = TextModality()
