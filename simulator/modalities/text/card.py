"""The model card of a network that takes texts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, model_validator

from simulator.modalities.card import CardInput, CardSpec
from simulator.profile.section import Finite, Positive, Section

Id = Annotated[int, Field(ge=0)]


class Names(Section):
    """What the network calls its inputs; None for one that it does not take.

    Attributes:
        ids: token ids, (batch, length) int64.
        mask: 1 for a token and 0 for padding, (batch, length) int64.
        positions: the position of each token, (batch, length) int64.
        types: zeros, the segment of each token, (batch, length) int64.
        lengths: how many tokens each row has, (batch,) int64.
    """

    ids: str
    mask: str | None = None
    positions: str | None = None
    types: str | None = None
    lengths: str | None = None

    @property
    def taken(self) -> tuple[str, ...]:
        """The names of the inputs that there are."""
        return tuple(name for name in self.model_dump().values() if name is not None)


class Past(Section):
    """A KV cache: the network takes keys and values of earlier tokens, and gives them with its own.

    Inputs are ``past_key_values.N.key`` and ``.value``, (batch, heads, past, width) float32, where
    N counts layers from 0; outputs are ``present.N.key`` and ``.value``. A mask covers all tokens.

    Attributes:
        layers: with attention.
        heads: of keys and values.
        width: of a head.
    """

    layers: Positive
    heads: Positive
    width: Positive

    @property
    def carried(self) -> dict[str, str]:
        """The output that each of these inputs becomes."""
        ends = (f"{layer}.{word}" for layer in range(self.layers) for word in ("key", "value"))
        return {f"past_key_values.{end}": f"present.{end}" for end in ends}


class TextInput(CardInput):
    """What the network takes.

    Attributes:
        tokenizer: the path of its vocabulary in each format that there is, see
            :attr:`simulator.contract.text.Tokenizer.takes`; none where samples bring their ids.
        vocabulary: the number of ids that it has an embedding for.
        max_length: ids that it takes at most.
        pad: the id of padding; None where it must not be padded.
        prefix: the id that stands for an empty context; None where there is none.
        names: of its inputs.
        past: its KV cache; None where it has none.
        constants: further float32 inputs, with their values.
    """

    kind: Literal["text"] = "text"
    tokenizer: Mapping[str, str] = Field(default_factory=dict)
    vocabulary: Positive
    max_length: Positive
    pad: Id | None = None
    prefix: Id | None = None
    names: Names
    past: Past | None = None
    constants: Mapping[str, list[Finite]] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _ids_exist(self) -> TextInput:
        for name in ("pad", "prefix"):
            one = getattr(self, name)
            if one is not None and one >= self.vocabulary:
                raise ValueError(f"{name}: {one} is none of the {self.vocabulary} ids")
        names = [*self.names.taken, *self.constants]
        if len(set(names)) < len(names):
            raise ValueError("names, constants: each input needs a name of its own")
        return self

    def located(self, find: Callable[[str, str], Path], key: str) -> TextInput:
        """Return the section with the paths of its vocabularies found.

        Args:
            find: gives the path of a file from its key and its name.
            key: of the section in the card.
        """
        files = {
            format: str(find(f"{key}.tokenizer.{format}", file).resolve())
            for format, file in self.tokenizer.items()
        }
        return self.model_copy(update={"tokenizer": files})


class TextCard(CardSpec):
    """The card of a network that takes texts."""

    input: TextInput
