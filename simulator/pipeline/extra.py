"""Stages of other packages at their places in a chain."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from simulator.contract.recipe import Apply, Boundary, Chain, Recipe, Runtimes
from simulator.contract.stage import StageSpec, timed_steps
from simulator.errors import SampleError, SimulatorError, one_line
from simulator.profile.implementations import Choice


@dataclass(frozen=True, eq=False)
class Extra(Recipe):
    """One stage of another package.

    Attributes:
        choice: its implementation.
        stage: the name of its step.
        call: the method that takes what the step before gave, and returns its own value.
        boundary: that of the step which it follows, where its value takes the place of that one's.
    """

    choice: Choice
    stage: str
    call: str
    boundary: Boundary | None

    @property
    def gives(self) -> Boundary | None:  # type: ignore[override]
        """The boundary that its value takes over."""
        return self.boundary

    def identity(self) -> Any:
        """Return the step and its implementation."""
        return ["extra", self.stage, self.choice.identity()]

    def open(self, runtimes: Runtimes) -> Apply:
        """Return the implementation's method; a crash in it costs one sample."""
        call, name = getattr(self.choice.make(), self.call), self.choice.backend.name

        def apply(value: Any, _: Any) -> Any:
            try:
                return call(value)
            except SimulatorError:
                raise
            except Exception as error:  # the package's own reason, whatever its type
                raise SampleError(f"{name}: {one_line(error)}") from error

        return apply


def with_extras(chain: Chain, extras: Iterable[tuple[StageSpec, Choice]]) -> Chain:
    """Put stages behind the steps that they follow, or the nearest ones before those.

    Args:
        chain: from the source to the network's input.
        extras: in pipeline order.
    """
    steps = timed_steps()
    recipes = list(chain.recipes)
    for spec, choice in extras:
        assert spec.step is not None and spec.after is not None
        last = steps.index(spec.after)
        known = [at for at, one in enumerate(recipes) if _place(one, steps) <= last]
        at = known[-1] + 1 if known else 0
        before = recipes[at - 1].gives if at else None
        own = before if before in (Boundary.INPUT, Boundary.OUTPUTS) else None
        recipes.insert(at, Extra(choice, spec.step, spec.calls[0], own))
    return Chain(tuple(recipes))


def _place(recipe: Recipe, steps: tuple[str, ...]) -> int:
    return steps.index(recipe.stage) if recipe.stage in steps else len(steps)
