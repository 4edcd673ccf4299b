"""A step of a stack as data: what is done, by whom and with which options, opened where it runs.

A chain of recipes leads from the source of a sample (the bytes of a file) to an answer. Between
its steps lie named boundaries, in this order: the ``source``, the ``frame`` that the stack's own
decoder made of it, the ``input`` of the network, its ``outputs``, and the ``answer``.
"""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, ClassVar, Protocol

import numpy as np


class Boundary(StrEnum):
    """The places between the steps of a chain, first to last."""

    SOURCE = "source"
    FRAME = "frame"
    INPUT = "input"
    OUTPUTS = "outputs"
    ANSWER = "answer"


@dataclass(frozen=True, slots=True)
class Context:
    """What a step may know besides the value that it takes.

    Attributes:
        sample: the sample's id: its name below the data folder.
        source: what the modality read: the bytes of the file, and what its header says. Where a
            condition acts on the source, this is what the condition made of it.
        truth: what people have annotated; None where nobody has.
        item: where the sample came from; recordings look answers up by it.
    """

    sample: str
    source: Any
    truth: Any
    item: Any = None


Apply = Callable[[Any, Context], Any]
"""From the previous step's value and the sample to the step's own value."""


class Runtimes(Protocol):
    """Opened runtimes, each once however many steps use it."""

    def of(self, choice: Any, artifact: Any) -> Callable[[], AbstractContextManager[Any]]:
        """Return what lends a runtime: as a context, in which it stays open."""

    def make_room(self, runtimes: int) -> None:
        """Let so many stay open at once."""


class Recipe(ABC):
    """One step of one stack: a frozen dataclass of plain data, made with ``eq=False``.

    Equal recipes have equal identities.

    Attributes:
        stage: the name that latencies, tables and messages use; one of the stage table.
        gives: the boundary that its value is, where it is one.
        timed: whether its time means anything; a look-up's does not.
        shares_equal_inputs: whether equal inputs are worth looking for: identical tensors from
            different steps are then computed once per sample.
    """

    stage: str
    gives: ClassVar[Boundary | None] = None
    timed: bool = True
    shares_equal_inputs: ClassVar[bool] = False

    @abstractmethod
    def identity(self) -> Any:
        """Return everything that its result depends on, besides its input; JSON."""

    @abstractmethod
    def open(self, runtimes: Runtimes) -> Apply:
        """Return the computation; libraries are imported here at the latest."""

    def memory(self, source: Any) -> int:
        """Return about how many bytes its result takes at most; 0 where that is little."""
        return 0

    def words(self) -> str:
        """Return what it does, for the printed plan: its backend and options, where it has one."""
        choice = getattr(self, "choice", None)
        if choice is None:
            return " ".join(str(part) for part in self.identity()[1:] if isinstance(part, str))
        values = [value for value in choice.options.values() if isinstance(value, str)]
        return " ".join([choice.backend.name, *values])

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.identity() == other.identity()

    def __hash__(self) -> int:
        return hash(json.dumps(self.identity(), sort_keys=True))

    def __str__(self) -> str:
        return f"{self.stage} {self.words()}".rstrip()


@dataclass(frozen=True, slots=True)
class Chain:
    """The steps of one stack, first to last."""

    recipes: tuple[Recipe, ...]

    def until(self, boundary: Boundary) -> Chain:
        """Return the steps up to the last one that gives *boundary*; all where none does."""
        ends = [at for at, recipe in enumerate(self.recipes) if recipe.gives is boundary]
        return Chain(self.recipes[: ends[-1] + 1]) if ends else self

    def with_last(self, recipe: Recipe) -> Chain:
        """Return the chain with another last step."""
        return Chain((*self.recipes[:-1], recipe))

    def inserted(self, recipe: Recipe, boundary: Boundary) -> Chain:
        """Return the chain with one more step right after *boundary*."""
        if boundary is Boundary.SOURCE:
            return Chain((recipe, *self.recipes))
        before = self.until(boundary).recipes
        return Chain((*before, recipe, *self.recipes[len(before) :]))

    def has(self, boundary: Boundary) -> bool:
        """Whether a step gives *boundary*."""
        return any(recipe.gives is boundary for recipe in self.recipes)

    @property
    def last(self) -> Recipe:
        """The last step."""
        return self.recipes[-1]

    def stages(self) -> tuple[str, ...]:
        """Return the stages whose time is recorded, in order, each once."""
        return tuple(dict.fromkeys(recipe.stage for recipe in self.recipes if recipe.timed))


def generator(*words: Any) -> np.random.Generator:
    """Return a generator that depends on *words* alone: not on the order of work or the machine.

    Args:
        words: for example the sample, the condition and the trial; each is told apart by ``str``.
    """
    text = "\x1f".join(map(str, words))
    seed = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
    return np.random.default_rng(int.from_bytes(seed, "little"))
