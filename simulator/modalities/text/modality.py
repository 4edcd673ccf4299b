"""Texts: requests to a language model, in JSON or plain text files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from simulator.contract.recipe import Recipe
from simulator.contract.text import Passage
from simulator.modalities.modality import Feed, Modality
from simulator.modalities.text import front_end
from simulator.modalities.text.beside import asked, beside
from simulator.modalities.text.card import TextCard
from simulator.modalities.text.placing import TextPlacing, is_cut
from simulator.modalities.text.read import SUFFIXES, read
from simulator.modalities.text.sections import TextSpec
from simulator.places import Where
from simulator.profile.implementations import Choices, choose
from simulator.profile.profile import Profile

_INT64 = np.dtype(np.int64)


class TextModality(Modality):
    """One or several requests a sample; its source is a :class:`Passage`."""

    name = "text"
    unit = "text"
    length = "characters"
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
        files = {
            format: str(find(f"input.tokenizer.{format}", file))
            for format, file in card.input.tokenizer.items()
        }
        return card.model_copy(update={"input": card.input.model_copy(update={"tokenizer": files})})

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
        return (*tokens, *constants)

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
        return front_end.front_end(profile, choices, card)

    def placing(self, profile: Profile, card: Any) -> TextPlacing:
        """Return the function that gives the rows of a sample's requests."""
        tokenize = front_end.tokenizing(profile, choose(profile), card)
        return TextPlacing(tokenize, front_end.feeding(profile, card))

    def beside(self, placings: Any, source: Any) -> Any:
        """Return the tokens of requests that the stacks tokenize differently; None if none is."""
        return beside(placings, source) or None

    def asked(self, source: Passage) -> list[dict[str, str]]:
        """Return the context and the continuation of each request, the first few, shortened."""
        return asked(source)

    def remarks(self, placing: Any, files: Sequence[Where]) -> list[str]:
        """Say how many texts are over-long, so that their contexts are cut."""
        longest, side = placing.feed.longest, placing.feed.truncation_side
        number = sum(is_cut(placing, file) for file in files)
        told = (
            f"{number:,} of {len(files):,} texts are longer than the {longest:,} tokens that the "
        )
        return [f"{told}network takes: their contexts are cut on the {side}"] if number else []

    def sizes(self, source: Passage) -> dict[str, int]:
        """Return the file's bytes, the characters of all requests, and how many these are."""
        texts = [one.context + one.continuation for one in source.requests]
        return {
            "bytes": len(source.data),
            "characters": sum(map(len, texts)),
            "requests": len(texts),
        }


_FILL = {"ids": 0, "mask": 1, "positions": 0, "types": 0, "lengths": 1}
TEXT = TextModality()
