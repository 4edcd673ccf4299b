"""Stages of other packages, inserted into a chain."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from simulator.contract.recipe import Apply, Boundary, Chain, Recipe, Runtimes
from simulator.contract.stage import StageSpec, timed_steps
from simulator.errors import SampleError, foreign
from simulator.profile.implementations import Choice


@dataclass(frozen=True, eq=False)
class Extra(Recipe):
    """One stage of another package.

    Attributes:
        choice: its implementation.
        stage: the name of its step.
        call: the method that takes the value of the step before, and returns a new value.
        boundary: of the step before, where the new value replaces that step's value; else None.
    """

    choice: Choice
    stage: str
    call: str
    boundary: Boundary | None

    @property
    def gives(self) -> Boundary | None:  # type: ignore[override]
        """The boundary whose value it replaces; None where it replaces none."""
        return self.boundary

    def identity(self) -> Any:
        """Return the step and its implementation."""
        return ["extra", self.stage, self.choice.identity()]

    def open(self, runtimes: Runtimes) -> Apply:
        """Return the implementation's method; if it crashes, one sample is skipped."""
        call, name = getattr(self.choice.make(), self.call), self.choice.backend.name

        def apply(value: Any, _: Any) -> Any:
            with foreign(SampleError, name):
                return call(value)

        return apply


def with_extras(chain: Chain, extras: Iterable[tuple[StageSpec, Choice]]) -> Chain:
    """Insert stages after the steps that they follow.

    Where a chain does not have that step, the stage comes after the nearest earlier step.

    Args:
        chain: from the source to the network's input.
        extras: the stages with their implementations, in pipeline order.
    """
    steps = timed_steps()
    recipes = list(chain.recipes)
    for spec, choice in extras:
        assert spec.step is not None and spec.after is not None
        last = steps.index(spec.after)
        earlier = [at for at, recipe in enumerate(recipes) if _position(recipe, steps) <= last]
        at = earlier[-1] + 1 if earlier else 0
        before = recipes[at - 1].gives if at else None
        replaced = before if before in (Boundary.INPUT, Boundary.OUTPUTS) else None
        recipes.insert(at, Extra(choice, spec.step, spec.calls[0], replaced))
    return Chain(tuple(recipes))


def _position(recipe: Recipe, steps: tuple[str, ...]) -> int:
    """The index of a recipe's step; steps that are not timed come last."""
    return steps.index(recipe.stage) if recipe.stage in steps else len(steps)
