"""Conditions: corruptions of the world, attacks on the input, faults of the machine.

A condition is never an axis: it is applied to every stack alike. It acts at one place of a chain:
on the ``source``, on the ``frame``, on the ``input``, or on the ``weights`` of the file that the
runtime opens. What has chance in it draws from a generator that depends on the sample, the
condition and the trial alone.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from simulator.contract.passes import Request
from simulator.contract.recipe import Apply, Boundary, Chain, Context, Recipe, Runtimes, generator
from simulator.entry_points import Table
from simulator.errors import UserError

WEIGHTS = "weights"
Disturb = Callable[[Any, np.random.Generator], Any]
"""From a value at the place where a condition acts, and a generator, to the disturbed value."""


class Condition(ABC):
    """One condition with its parameters: a frozen dataclass, made with ``eq=False``.

    Attributes:
        name: as ``--under NAME:PARAMETERS`` has it; also of its entry point.
        summary: one line for people.
        acts_on: a boundary between the steps of a chain, or ``weights``.
        modality: whose values it disturbs; None: those of any.
        has_chance: whether trials differ.
        examples: parameters as people write them, for the conformance suite to try; more than one
            where there are any.
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    acts_on: ClassVar[Boundary | str]
    modality: ClassVar[str | None] = None
    has_chance: ClassVar[bool] = False
    examples: ClassVar[tuple[str, ...]] = ()

    @classmethod
    @abstractmethod
    def parse(cls, parameters: str) -> Condition:
        """Read what stands behind the colon; empty where there is none.

        Raises:
            UserError: saying what is expected.
        """

    @abstractmethod
    def parameters(self) -> dict[str, Any]:
        """Return its parameters by their names, for records and digests; JSON."""

    @property
    def text(self) -> str:
        """The condition as it can be asked for again."""
        values = ",".join(str(value) for value in self.parameters().values())
        return f"{self.name}:{values}" if values else self.name

    def identity(self) -> Any:
        """Return everything that its effect depends on; JSON."""
        return [self.name, self.parameters()]

    def open(self) -> Disturb:
        """Return what disturbs a value; only where it acts between two steps."""
        raise NotImplementedError(f"{self.name} acts on {self.acts_on}")

    def requests(self, trial: int) -> list[Request]:
        """Return the passes over the artifact; only where it acts on the weights."""
        return []


@dataclass(frozen=True, eq=False)
class Disturbance(Recipe):
    """A condition at its place in a chain.

    Attributes:
        condition: what happens.
        trial: which draw of it.
    """

    condition: Condition
    trial: int
    stage = "condition"
    timed = False

    @property
    def gives(self) -> Boundary | None:  # type: ignore[override]
        """The boundary on which it acts."""
        acts_on = self.condition.acts_on
        return acts_on if isinstance(acts_on, Boundary) else None

    def identity(self) -> Any:
        """Return the condition, and the trial where there is chance in it."""
        trial = self.trial if self.condition.has_chance else None
        return ["condition", self.condition.identity(), trial]

    def open(self, runtimes: Runtimes) -> Apply:
        """Return the condition with a generator for every sample."""
        disturb, text, trial = self.condition.open(), self.condition.text, self.trial

        def apply(value: Any, context: Context) -> Any:
            return disturb(value, generator(context.sample, text, trial))

        return apply

    def words(self) -> str:
        """Return the condition, and the trial where there is chance in it."""
        trial = f" trial {self.trial}" if self.condition.has_chance else ""
        return f"{self.condition.text}{trial}"


@dataclass(frozen=True, slots=True)
class Under:
    """A condition and one trial of it: what a whole run is under.

    Attributes:
        condition: what happens.
        trial: which draw of it.
    """

    condition: Condition
    trial: int = 0

    def check(self, modality: str) -> None:
        """Refuse samples that the condition is not for.

        Raises:
            UserError: naming both.
        """
        own = self.condition.modality
        if own not in (None, modality):
            raise UserError(f"--under {self.condition.text}: it is for {own}s, not for {modality}s")

    def disturbed(self, chain: Chain) -> Chain:
        """Return a chain with the condition where it acts, if it acts between two steps.

        A chain that ends before that place is left as it is.
        """
        acts_on = self.condition.acts_on
        if not isinstance(acts_on, Boundary):
            return chain
        if acts_on is not Boundary.SOURCE and not chain.has(acts_on):
            return chain
        return chain.inserted(Disturbance(self.condition, self.trial), acts_on)

    def requests(self) -> Sequence[Request]:
        """Return the passes over the artifact."""
        return self.condition.requests(self.trial)

    def described(self) -> dict[str, Any]:
        """Return what records and reports say of it."""
        return {
            "text": self.condition.text,
            "name": self.condition.name,
            "summary": self.condition.summary,
            "acts_on": str(self.condition.acts_on),
            "parameters": self.condition.parameters(),
            "trial": self.trial if self.condition.has_chance else None,
        }


CONDITIONS: Table[type[Condition]] = Table(
    "simulator.conditions",
    "condition",
    lambda found: isinstance(found, type) and issubclass(found, Condition),
)


def under(text: str | None, trial: int = 0) -> Under | None:
    """Read ``NAME:PARAMETERS`` of ``--under``.

    Raises:
        UserError: there is no such condition, its parameters are wrong, or a trial is asked for
            of a condition without chance.
    """
    if text is None:
        if trial:
            raise UserError("--trial is for --under: there is no condition to draw from")
        return None
    name, _, parameters = text.partition(":")
    condition = CONDITIONS[name].parse(parameters)
    if trial < 0 or (trial and not condition.has_chance):
        why = "must be at least 0" if trial < 0 else f"{name} has no chance in it: leave it out"
        raise UserError(f"--trial {trial}: {why}")
    return Under(condition, trial)
