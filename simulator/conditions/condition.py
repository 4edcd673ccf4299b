"""Conditions: corruptions of the world, attacks on the input, faults of the machine.

A condition is never an axis: it is applied to every stack in the same way. It acts on one value:
the ``source``, the ``frame``, the ``input``, or the ``weights`` of the file that the runtime
opens. A random condition draws from a generator whose seed depends only on the sample, the
condition and the trial.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, cast

import numpy as np

from simulator.contract.passes import Request
from simulator.contract.recipe import Apply, Boundary, Chain, Context, Recipe, Runtimes, generator
from simulator.contract.warp import Size, Warp, WarpOf
from simulator.entry_points import Table
from simulator.errors import UserError
from simulator.model.card import Card
from simulator.model.onnxfile import ModelFile

LAST_TRIAL = 2**31 - 1
"""Records keep it in 32 bits."""
WEIGHTS = "weights"
Parameters = dict[str, str | int]
"""The parameters of a condition by name, for records and digests."""
Disturb = Callable[[Any, np.random.Generator], Any]
"""A function from the value on which a condition acts, and a generator, to the new value."""


class Condition(ABC):
    """One condition with its parameters: a frozen dataclass, made with ``eq=False``.

    Attributes:
        name: as written in ``--under NAME:PARAMETERS``; also the name of its entry point.
        summary: one line, for reports.
        acts_on: a boundary between the steps of a chain, or ``weights``.
        modality: the modality that it is for; None for every modality.
        moves: whether what a sample shows gets another place or size in it, so that truth in
            pixels has to follow.
        has_chance: whether it is random, so that trials differ.
        gives_format: of the image files that it gives, whatever it got; None where it keeps theirs.
        of_clips: whether it is for frames of clips alone.
        examples: valid parameters, as written after the colon, for the conformance suite; at least
            two, where the condition has parameters.
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    acts_on: ClassVar[Boundary | str]
    modality: ClassVar[str | None] = None
    moves: ClassVar[bool] = False
    has_chance: ClassVar[bool] = False
    gives_format: ClassVar[str | None] = None
    of_clips: ClassVar[bool] = False
    examples: ClassVar[tuple[str, ...]] = ()

    @classmethod
    @abstractmethod
    def parse(cls, parameters: str) -> Condition:
        """Read the text after the colon; it is empty where there is none.

        Raises:
            UserError: the parameters are wrong; the message says what is expected.
        """

    @abstractmethod
    def parameters(self) -> Parameters:
        """Return its parameters by name, as JSON, for records and digests."""

    @property
    def text(self) -> str:
        """The condition as written for ``--under``."""
        values = ",".join(str(value) for value in self.parameters().values())
        return f"{self.name}:{values}" if values else self.name

    @property
    def draws(self) -> str:
        """What its draws depend on, besides the sample and the trial."""
        return self.text

    def identity(self) -> Any:
        """Return everything that its effect depends on, as JSON."""
        return [self.name, self.parameters()]

    def open(self) -> Disturb:
        """Return the function that changes a value; only for conditions between two steps."""
        raise NotImplementedError(f"{self.name} acts on {self.acts_on}")

    def warp(self, size: Size) -> Warp | None:
        """Return where the pixels of an image go, so that boxes and masks follow.

        Args:
            size: rows and columns of the image.

        Returns:
            None where truth cannot follow; then a condition that ``moves`` is refused for it.
        """
        return None

    def preparation(self) -> Recipe | None:
        """Return a step on the source that many conditions share; it is then made once a sample.

        What the condition gives must be the same without it.
        """
        return None

    def bound(self, card: Card, source: ModelFile) -> Condition:
        """Return the condition for a model: itself, unless what it does depends on the model.

        Args:
            card: of the model that all stacks run.
            source: the card's file, which was checked.

        Raises:
            UserError: it is not for this model.
        """
        return self

    @property
    def erased(self) -> str | None:
        """Why nothing of it reaches a stack; None where something does."""
        return None

    @property
    def asks(self) -> str | None:
        """The profile of a stack whose network it asks; None for none."""
        return None

    @property
    def asks_each(self) -> bool:
        """Whether it asks the network of the very stack that it is applied to."""
        return False

    def asking(self, infer: Recipe) -> Condition:
        """Return the condition with the step that runs the network of the stack that it asks."""
        raise NotImplementedError(f"{self.name} asks no stack")

    def applied(self, trial: int, runtimes: Runtimes | None = None) -> Apply:
        """Return the function that changes the value of a sample in one trial.

        Args:
            trial: which draw.
            runtimes: of the stack that it asks; None where no stacks are run.
        """
        disturb, draws = self.open(), self.draws

        def apply(value: Any, context: Context) -> Any:
            return disturb(value, generator(context.sample, draws, trial))

        return apply

    def memory(self, source: Any) -> int:
        """Return roughly how many bytes it needs for a sample; 0 if that is little."""
        return 0

    def requests(self, trial: int) -> list[Request]:
        """Return the passes that change the artifact; only for conditions on the weights."""
        return []


@dataclass(frozen=True, eq=False)
class Disturbance(Recipe):
    """A condition as a step of a chain."""

    condition: Condition
    trial: int
    stage = "condition"
    timed = False
    shares_equal_inputs: ClassVar[bool] = True

    @property
    def gives(self) -> Boundary | None:  # type: ignore[override]
        """The boundary whose value it changes."""
        acts_on = self.condition.acts_on
        return acts_on if isinstance(acts_on, Boundary) else None

    def identity(self) -> Any:
        """Return the condition, and the trial if the condition is random."""
        trial = self.trial if self.condition.has_chance else None
        return ["condition", self.condition.identity(), trial]

    def open(self, runtimes: Runtimes) -> Apply:
        """Return the condition's function, with a generator for every sample."""
        return self.condition.applied(self.trial, runtimes)

    def memory(self, source: Any) -> int:
        """Return what the condition needs."""
        return self.condition.memory(source)

    def words(self) -> str:
        """Return the condition, and the trial where there is chance in it."""
        trial = f" trial {self.trial}" if self.condition.has_chance else ""
        return f"{self.condition.text}{trial}"


@dataclass(frozen=True, slots=True)
class AppliedCondition:
    """A condition and one trial of it, applied to a whole run.

    Attributes:
        condition: the condition.
        trial: which random draw of it, from 0.
    """

    condition: Condition
    trial: int = 0

    @property
    def warp(self) -> WarpOf | None:
        """Where the pixels of an image go; None where they stay, or truth cannot follow."""
        movement = self.condition.warp if self.condition.moves else None
        known = movement is not None and movement((2, 2)) is not None
        return cast("WarpOf", movement) if known else None

    def bound(self, card: Card, source: ModelFile) -> AppliedCondition:
        """Return it for a model; see :meth:`Condition.bound`."""
        return replace(self, condition=self.condition.bound(card, source))

    def check(self, modality: str, *, in_pixels: bool) -> None:
        """Refuse samples that the condition is not for.

        Args:
            modality: of the samples.
            in_pixels: whether answers and truth are places in a sample.

        Raises:
            UserError: the condition is for another modality, or moves what they are about.
        """
        if self.condition.moves and in_pixels and self.warp is None:
            raise UserError(
                f"--under {self.condition.text}: it moves what an image shows, and boxes and masks "
                "cannot follow; it is for models whose answer is not a place"
            )
        wanted = self.condition.modality
        if wanted not in (None, modality):
            raise UserError(
                f"--under {self.condition.text}: it is for {wanted}s, not for {modality}s"
            )

    def disturbed(self, chain: Chain) -> Chain:
        """Return a chain with the condition inserted, if it acts between two steps.

        A chain that ends before the condition's boundary is returned unchanged. A condition that
        asks each stack asks the network that the chain ends with or leads to.
        """
        acts_on, condition = self.condition.acts_on, self.condition
        if not isinstance(acts_on, Boundary):
            return chain
        if acts_on is not Boundary.SOURCE and not chain.has(acts_on):
            return chain
        if condition.asks_each:
            assert chain.network is not None, f"{condition.text}: no network to ask"
            condition = condition.asking(chain.network)
        disturbed = chain.inserted(Disturbance(condition, self.trial), acts_on)
        first = condition.preparation()
        return disturbed if first is None else disturbed.inserted(first, Boundary.SOURCE)

    def requests(self) -> Sequence[Request]:
        """Return the passes that change the artifact."""
        return self.condition.requests(self.trial)

    def described(self) -> dict[str, Any]:
        """Return its description for results, as JSON."""
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


def under(text: str | None, trial: int = 0) -> AppliedCondition | None:
    """Read the value of ``--under``.

    Args:
        text: ``NAME:PARAMETERS``, or None for no condition.
        trial: which random draw, from 0.

    Raises:
        UserError: there is no such condition, its parameters are wrong, or a trial is given for a
            condition that is not random.
    """
    if text is None:
        if trial:
            raise UserError("--trial needs --under: there is no condition to draw from")
        return None
    name, _, parameters = text.partition(":")
    condition = CONDITIONS[name].parse(parameters)
    if not 0 <= trial <= LAST_TRIAL or (trial and not condition.has_chance):
        wrong = not 0 <= trial <= LAST_TRIAL
        why = f"0 to {LAST_TRIAL:,} expected" if wrong else f"{name} is not random; leave it out"
        raise UserError(f"--trial {trial}: {why}")
    return AppliedCondition(condition, trial)
