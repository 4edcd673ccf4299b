"""Text samples, and the stage that turns text into token ids."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from simulator.contract.backend import Options


@dataclass(frozen=True, slots=True)
class Request:
    """One text that a language model reads.

    Attributes:
        context: what it reads before ``continuation``.
        continuation: what it is scored on; empty where nothing is, or where it writes on.
        length: characters by which a log-likelihood is divided for acc_norm; those of the choice
            without the delimiter before it. None where that is not asked for.
        ids: the token ids where the sample's file brings them; no tokenizer is asked then.
        scored: how many of the last *ids* are scored.
    """

    context: str
    continuation: str = ""
    length: int | None = None
    ids: tuple[int, ...] | None = None
    scored: int = 0


@dataclass(frozen=True, slots=True)
class Passage:
    """The source of a text sample.

    Attributes:
        requests: at least one: a question has one for each choice.
        data: the bytes of its file.
    """

    requests: tuple[Request, ...]
    data: bytes


@dataclass(frozen=True, slots=True)
class Tokens:
    """One request as token ids.

    Attributes:
        ids: of the context and of the continuation, as they are after truncation.
        start: the index of the continuation's first id; ``len(ids)`` where there is none.
        cut: ids of the context that truncation removed.
    """

    ids: tuple[int, ...]
    start: int
    cut: int = 0

    @property
    def scored(self) -> tuple[int, ...]:
        """The ids of the continuation."""
        return self.ids[self.start :]


@dataclass(frozen=True, slots=True)
class Row:
    """Where the outputs for one request are.

    Attributes:
        inference: the index of the inference; 0 where all requests are one batch.
        row: the index in the batch.
        first: the position in the padded row of the request's first token.
        tokens: the request.
        length: see :class:`Request`.
        text: turns ids into text with the stack's tokenizer; None where there is none.
    """

    inference: int
    row: int
    first: int
    tokens: Tokens
    length: int | None = None
    text: Callable[[Sequence[int]], str] | None = field(default=None, compare=False, repr=False)

    @property
    def predicts(self) -> slice:
        """The positions whose logits predict :attr:`Tokens.scored`; one before each of them."""
        return slice(self.first + self.tokens.start - 1, self.first + len(self.tokens.ids) - 1)


class Tokenizer(ABC):
    """Turns text into token ids and back.

    Args:
        file: the vocabulary, in the format :attr:`takes`.
        options: the checked fields of the profile's ``tokenize`` section.

    Attributes:
        takes: the format of the file, as model cards name it in ``input.tokenizer``:
            ``tokenizers`` (a ``tokenizer.json``), ``sentencepiece`` (``.model``), ``gguf``.
    """

    takes: ClassVar[str]

    def __init__(self, file: Path, options: Options) -> None:
        self.file, self.options = file, options

    @property
    @abstractmethod
    def size(self) -> int:
        """The number of ids."""

    @abstractmethod
    def encode(self, text: str) -> list[int]:
        """Return the ids of a text; none for an empty text without special tokens."""

    @abstractmethod
    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of some ids."""

    def pieces(self, ids: Sequence[int]) -> list[str]:
        """Return the text of each id alone, for reports."""
        return [self.decode([one]) for one in ids]

    def identity(self) -> Any:
        """Return what the ids depend on besides the file and the options, as JSON."""
        return None
