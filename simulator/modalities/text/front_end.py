"""The first recipes of a text stack: from requests to the network's inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from simulator.contract import Array
from simulator.contract.recipe import Apply, Boundary, Recipe, Runtimes
from simulator.contract.text import Passage, Row, Tokenizer, Tokens
from simulator.errors import ModelError
from simulator.files import hash_file
from simulator.modalities.text.card import TextCard, TextInput
from simulator.modalities.text.opened import encoder
from simulator.modalities.text.pairs import Limits, fed, truncated
from simulator.modalities.text.sections import Feeds
from simulator.profile.implementations import Choice, Choices
from simulator.profile.profile import Profile

CHARACTERS = 3
"""Characters a token, about; for estimates of memory."""


@dataclass(frozen=True, eq=False)
class Tokenize(Recipe):
    """Turns requests into token ids; see :func:`simulator.modalities.text.pairs.tokenized`.

    Attributes:
        choice: the tokenizer; None where samples bring their ids.
        file: its vocabulary.
        digest: SHA-256 of *file*.
        limits: of the network.
    """

    choice: Choice | None
    file: Path | None
    digest: str
    limits: Limits
    stage = "tokenize"
    gives: ClassVar[Boundary] = Boundary.FRAME

    def identity(self) -> Any:
        """Return the tokenizer, its vocabulary's digest and the network's limits."""
        choice = self.choice.identity() if self.choice else None
        return ["tokenize", choice, self.digest, self.limits.vocabulary, self.limits.prefix]

    def open(self, runtimes: Runtimes) -> Apply:
        """Return a function from a :class:`Passage` to a tuple of :class:`Tokens`."""
        made = encoder(self)
        return lambda passage, _: made(passage)

    def make(self) -> Tokenizer | None:
        """Build the tokenizer; None where samples bring their ids.

        Raises:
            ModelError: it has ids that the network has no embedding for.
        """
        if self.choice is None:
            return None
        made: Tokenizer = self.choice.make(self.file)
        if made.size > self.limits.vocabulary:
            raise ModelError(
                f"{self.file} has {made.size:,} ids, and the network knows "
                f"{self.limits.vocabulary:,} (input.vocabulary of its card): it is the tokenizer "
                "of another model"
            )
        return made

    def words(self) -> str:
        """Return the tokenizer and its options."""
        return super().words() if self.choice else "ids of the samples"


@dataclass(frozen=True, eq=False)
class Feed(Recipe):
    """Makes the network's inputs of token ids.

    Attributes:
        network: the section ``input`` of the card.
        asked: the section ``feeds`` of the profile, see :meth:`.sections.Feeds.neutral`.
        longest: ids that the network is fed at most.
        truncation_side: see :func:`simulator.modalities.text.pairs.truncated`.
    """

    network: TextInput
    asked: Feeds
    longest: int
    truncation_side: str
    stage = "feeds"
    gives: ClassVar[Boundary] = Boundary.INPUT

    def identity(self) -> Any:
        """Return all attributes; of the network what inputs are made of."""
        network, asked = self.network, self.asked
        made = [network.pad, network.names.model_dump(), dict(network.constants)]
        made += [network.past.model_dump()] if network.past else []
        padding = [asked.padding_side, asked.pad_to, asked.mask, asked.position_ids]
        return ["feeds", asked.batch, *padding, self.longest, self.truncation_side, made]

    def open(self, runtimes: Runtimes) -> Apply:
        """Return a function of our own; no library is involved."""
        return lambda tokens, _: self.inputs(tokens)

    def inputs(self, tokens: Sequence[Tokens]) -> Mapping[str, Array] | tuple[Any, ...]:
        """Return the inputs of one inference, or of one for each request.

        Raises:
            SampleError: a request is over-long.
        """
        rows = [fed(one) for one in self.cut(tokens)]
        if self.asked.batch == "choices":
            return self._batch(rows)
        return tuple(self._batch([row]) for row in rows)

    def rows(self, tokens: Sequence[Tokens]) -> tuple[Row, ...]:
        """Return where the outputs for each request are; lengths are not known here."""
        cut, together = self.cut(tokens), self.asked.batch == "choices"
        longest = self.asked.pad_to or max(len(fed(one)) for one in cut)
        found = []
        for at, one in enumerate(cut):
            width = longest if together or self.asked.pad_to else len(fed(one))
            first = width - len(fed(one)) if self.asked.padding_side == "left" else 0
            found.append(Row(*((0, at) if together else (at, 0)), first, one))
        return tuple(found)

    def cut(self, tokens: Sequence[Tokens]) -> list[Tokens]:
        """Return requests that fit into the network."""
        return [truncated(token, self.longest, self.truncation_side) for token in tokens]

    def memory(self, source: Passage) -> int:
        """Return about the bytes of the logits that are made of the inputs."""
        length = max(
            len(one.ids or ()) or (len(one.context) + len(one.continuation)) // CHARACTERS + 1
            for one in source.requests
        )
        tokens = min(self.longest, length)
        rows = len(source.requests) if self.asked.batch == "choices" else 1
        return 4 * rows * tokens * self.network.vocabulary

    def words(self) -> str:
        """Return the batch, and how it is padded."""
        asked = self.asked
        return f"batch {asked.batch}, padding {asked.padding_side}, mask {asked.mask}"

    def _batch(self, rows: Sequence[Sequence[int]]) -> dict[str, Array]:
        asked = self.asked
        width = asked.pad_to or max(map(len, rows))
        ids = np.full((len(rows), width), self.network.pad or 0, np.int64)
        real = np.zeros_like(ids)
        for at, row in enumerate(rows):
            start = width - len(row) if asked.padding_side == "left" else 0
            ids[at, start : start + len(row)] = row
            real[at, start : start + len(row)] = 1
        mask = real if asked.mask == "honoured" else np.ones_like(real)
        counted = mask if asked.position_ids == "from_mask" else np.ones_like(real)
        found = {
            "ids": ids,
            "mask": mask,
            "positions": (counted.cumsum(axis=1) - 1).clip(0),
            "types": np.zeros_like(ids),
            "lengths": mask.sum(axis=1),
        }
        names = self.network.names.model_dump()
        fed = {name: found[role] for role, name in names.items() if name is not None}
        if past := self.network.past:
            empty = np.zeros((len(rows), past.heads, 0, past.width), np.float32)
            fed |= dict.fromkeys(past.carried, empty)
        constants = self.network.constants.items()
        return fed | {name: np.array(values, np.float32) for name, values in constants}


def tokenizing(profile: Profile, choices: Choices, card: TextCard) -> Tokenize:
    """Return the step from requests to token ids.

    Raises:
        ModelError: the card has no vocabulary in the tokenizer's format, or it cannot be read.
    """
    limits = Limits(card.input.vocabulary, card.input.prefix)
    choice = choices.get("tokenize")
    if choice is None:
        return Tokenize(None, None, "", limits)
    takes, files = choice.offer.make.takes, card.input.tokenizer
    if takes not in files:
        has = f"only {', '.join(files)}" if files else "none"
        raise ModelError(
            f"{profile.where(('tokenize', 'backend'))}: tokenize.backend: {choice.backend.name} "
            f"takes a vocabulary of the format {takes}, and the card of {card.name} names {has}; "
            f"add input.tokenizer: {{{takes}: FILE}}"
        )
    file = Path(files[takes])
    try:
        found = file.stat()
        return Tokenize(choice, file, _digest(file, found.st_mtime_ns, found.st_size), limits)
    except OSError as error:
        raise ModelError(f"{file}: cannot be read: {error.strerror or error}") from error


@lru_cache(maxsize=64)
def _digest(file: Path, changed: int, size: int) -> str:
    """SHA-256 of a file; read again where its time or its size changed."""
    return hash_file(file)


def feeding(profile: Profile, card: TextCard) -> Feed:
    """Return the step from token ids to the network's inputs.

    Raises:
        ModelError: rows are padded, and the network has no id or no mask for padding.
    """
    spec: Any = profile.spec  # of texts, or of images beside texts
    network, asked = card.input, spec.feeds
    padded = asked.batch == "choices" or asked.pad_to is not None
    chosen = asked.neutral(padded, network.names.positions is not None)
    if padded and network.pad is None:
        raise ModelError(
            f"{profile.where(('feeds',))}: feeds: rows are padded, and {card.name} has no id for "
            "that; write batch: single without pad_to, or input.pad in the card"
        )
    told = network.names.mask or network.names.lengths
    if padded and told is None and chosen.mask == "honoured":
        raise ModelError(
            f"{profile.where(('feeds', 'mask'))}: feeds.mask: honoured, but {card.name} takes no "
            "mask; write mask: ignored, or batch: single without pad_to"
        )
    own = network.max_length if asked.max_length == "model" else asked.max_length
    longest = min(network.max_length, own, asked.pad_to or own)
    side = spec.tokenize.truncation_side if spec.tokenize else "refuse"
    return Feed(network, chosen, longest, side)
