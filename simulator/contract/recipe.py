"""A step of a stack as data: its stage, backend and options. It is opened where it runs.

A chain of recipes leads from the source of a sample (the bytes of a file) to an answer. Its
intermediate values have names, in this order: the ``source``, the ``frame`` that the stack's
decoder returns, the ``input`` of the network, its ``outputs``, and the ``answer``.
"""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from typing import Any, ClassVar, Protocol

import numpy as np


class Boundary(StrEnum):
    """The named values between the steps of a chain, first to last."""

    SOURCE = "source"
    FRAME = "frame"
    INPUT = "input"
    OUTPUTS = "outputs"
    ANSWER = "answer"


@dataclass(frozen=True, slots=True)
class Context:
    """What a step may use besides its input value.

    Attributes:
        sample: the sample's id: its name below the data folder.
        source: what the modality read: the bytes of the file and the values of its header. If a
            condition acts on the source, this is the condition's result.
        truth: the annotation; None if there is none.
        item: where the sample came from; recordings find answers by it.
    """

    sample: str
    source: Any
    truth: Any
    item: Any = None


Apply = Callable[[Any, Context], Any]
"""Computes the step's value from the previous step's value and the sample's context."""


class Runtimes(Protocol):
    """Open runtimes; each is opened once, however many steps use it."""

    def of(self, choice: Any, artifact: Any) -> Callable[[], AbstractContextManager[Any]]:
        """Return a function whose context manager keeps the runtime open while it is used."""

    def make_room(self, runtimes: int) -> None:
        """Allow at least this many runtimes to be open at once."""

    def guarded(self, choice: Any, method: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """Return a decoder's method; files that may kill this process are decoded in another."""

    def apart(self, choice: Any, method: str) -> Callable[[Any], Any]:
        """Return a method of an implementation that runs in worker processes of its own."""


class Recipe(ABC):
    """One step of one stack: a frozen dataclass of plain data, declared with ``eq=False``.

    Two recipes are equal if their identities are.

    Attributes:
        stage: the name used in latencies, tables and messages; from the stage table.
        operation: its name in :meth:`identity`, where its stage has several; else the stage.
        gives: the boundary that its value is; None for a value without a name.
        timed: whether its time is meaningful; a look-up's is not.
        shares_equal_inputs: whether to look for equal inputs: identical tensors from different
            steps are then computed once per sample.
        needs: the resources of the machine that it runs on, by name; a cluster finds one.
    """

    stage: str
    operation: ClassVar[str] = ""
    gives: ClassVar[Boundary | None] = None
    timed: bool = True
    shares_equal_inputs: ClassVar[bool] = False
    needs: tuple[tuple[str, float], ...] = ()

    def identity(self) -> Any:
        """Return a JSON value of everything that its result depends on, besides its input.

        By default these are all its fields: a section as it is written, and of a field with an
        identity of its own, that. A field that may be left out says nothing where it is None.
        """
        # Every step is a dataclass, which its base cannot say.
        given = [(one, getattr(self, one.name)) for one in fields(self)]  # type: ignore[arg-type]
        values = [value for one, value in given if one.default is not None or value is not None]
        return [self.operation or self.stage, *map(_identity, values)]

    @abstractmethod
    def open(self, runtimes: Runtimes) -> Apply:
        """Return the function that computes the step; this imports its library."""

    def behind(self, before: tuple[Recipe, ...]) -> Recipe:
        """Return the step for a chain that begins with *before*; itself, unless it differs."""
        return self

    def memory(self, source: Any) -> int:
        """Return roughly the maximum size of its result in bytes; 0 if it is small."""
        return 0

    def words(self) -> str:
        """Return a description for the printed plan: its backend and options if it has them."""
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
    """The steps of one stack, first to last.

    Attributes:
        recipes: the steps.
        into: the network that its value is for, where it ends before it.
    """

    recipes: tuple[Recipe, ...]
    into: Recipe | None = None

    @property
    def network(self) -> Recipe | None:
        """The last step that gives a network's outputs; None where no network is known."""
        found = [recipe for recipe in self.recipes if recipe.gives is Boundary.OUTPUTS]
        return found[-1] if found else self.into

    def until(self, boundary: Boundary) -> Chain:
        """Return the steps up to the last one that gives *boundary*; all steps if none does."""
        ends = [at for at, recipe in enumerate(self.recipes) if recipe.gives is boundary]
        return Chain(self.recipes[: ends[-1] + 1], self.network) if ends else self

    def inserted(self, recipe: Recipe, boundary: Boundary) -> Chain:
        """Return the chain with *recipe* inserted right after *boundary*."""
        if boundary is Boundary.SOURCE:
            return replace(self, recipes=(recipe, *self.recipes))
        before = self.until(boundary).recipes
        return replace(self, recipes=(*before, recipe, *self.recipes[len(before) :]))

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


def _identity(value: Any) -> Any:
    if hasattr(value, "identity"):
        return value.identity()
    return value.model_dump(mode="json") if hasattr(value, "model_dump") else value


def generator(*words: Any) -> np.random.Generator:
    """Return a random generator that depends only on *words*, not on order or machine.

    Args:
        words: for example the sample, the condition and the trial; their ``str`` is used.
    """
    text = "\x1f".join(map(str, words))
    seed = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
    return np.random.default_rng(int.from_bytes(seed, "little"))
