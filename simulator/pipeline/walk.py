"""The one interpreter of recipes: a sample goes down a plan once.

Pictures, controls, latency, calibration and workers all walk; nobody else applies a recipe.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from simulator.contract import Array, clock
from simulator.contract.recipe import Apply, Boundary, Context, Recipe, Runtimes
from simulator.errors import SampleError
from simulator.pipeline.plan import Node, Path, Plan

Say = Callable[[Recipe, Any], None]
"""Told each recipe with its value, in order."""


class Opened:
    """A plan whose recipes were opened in this process.

    Args:
        plan: what is walked.
        runtimes: opened runtimes; the caller closes them.
    """

    def __init__(self, plan: Plan, runtimes: Runtimes) -> None:
        self.plan = plan
        self._runtimes = runtimes
        self._applied: dict[int, Apply] = {}
        runtimes.make_room(sum(node.recipe.gives is Boundary.OUTPUTS for node in plan.nodes))
        on_paths = {index for path in plan.paths for index in path}
        self._main = tuple(sorted(on_paths))
        self._kept = _kept(plan)
        for index in self._main:
            self.apply(index)

    def apply(self, index: int) -> Apply:
        """Return the computation of a node; those beside the arms are opened on first use."""
        if index not in self._applied:
            self._applied[index] = self.plan.nodes[index].recipe.open(self._runtimes)
        return self._applied[index]

    def walk(self, context: Context, say: Say | None = None) -> Walk:
        """Take a sample down every arm.

        Args:
            context: the sample.
            say: told each recipe with its value.

        Raises:
            StageError: it cannot go through one of them.
        """
        walk = Walk(self, context, say)
        walk.through(self._main, self._kept)
        return walk


class StageError(SampleError):
    """A sample that cannot go on, with the stage at which it stopped.

    Attributes:
        stage: of the recipe.
        reason: why.
    """

    def __init__(self, stage: str, reason: object) -> None:
        super().__init__(f"{stage}: {reason}")
        self.stage, self.reason = stage, str(reason)


@dataclass(frozen=True, slots=True)
class _Twin:
    """What a recipe made of one input, kept in case another node has an equal one."""

    given: Array
    value: Any
    ns: int


class Walk:
    """What one sample left on its way: values and times of the nodes that it went through.

    Args:
        opened: the plan.
        context: the sample.
        say: told each recipe with its value.

    Attributes:
        spent: nanoseconds of all that was really computed, each unique step once.
    """

    def __init__(self, opened: Opened, context: Context, say: Say | None = None) -> None:
        self._opened, self.context, self._say = opened, context, say
        count = len(opened.plan.nodes)
        self._values: list[Any] = [None] * count
        self._contexts: list[Context] = [context] * count
        self._done = [False] * count
        self._ns = [0] * count
        self.spent = 0
        self._twins: dict[tuple[str, bytes], _Twin] = {}

    def through(self, nodes: Iterable[int], kept: Sequence[bool]) -> None:
        """Compute nodes in order, and forget values that nobody takes any more.

        Args:
            nodes: indices, parents first.
            kept: for every node of the plan, whether its value is kept to the end.

        Raises:
            StageError: a recipe refuses the sample.
        """
        plan = self._opened.plan
        left = [node.children for node in plan.nodes]
        for index in nodes:
            self._compute(index)
            parent = plan.nodes[index].parent
            if parent is not None:
                left[parent] -= 1
                if not left[parent] and not kept[parent]:
                    self._values[parent] = None

    def value(self, path: Path) -> Any:
        """Return the value at the end of a path, going there now where nobody has been.

        Raises:
            StageError: a recipe refuses the sample.
        """
        for index in path:
            if not self._done[index]:
                self._compute(index)
        return self._values[path[-1]]

    def aside(self, name: str) -> Any:
        """Return the value at the end of a chain beside the arms."""
        return self.value(self._opened.plan.asides[name])

    def answers(self) -> list[Any]:
        """Return the value at the end of every arm."""
        return [self._values[path[-1]] for path in self._opened.plan.paths]

    def times(self, path: Path) -> dict[str, int]:
        """Return the nanoseconds of every timed stage of a path."""
        times: dict[str, int] = {}
        for index in path:
            recipe = self._opened.plan.nodes[index].recipe
            if recipe.timed:
                times[recipe.stage] = times.get(recipe.stage, 0) + self._ns[index]
        return times

    def again(self) -> Walk:
        """Take the same sample down every arm once more."""
        return self._opened.walk(self.context)

    def _compute(self, index: int) -> None:
        node = self._opened.plan.nodes[index]
        parent = node.parent
        context = self.context if parent is None else self._contexts[parent]
        given = context.source if parent is None else self._values[parent]
        try:
            value, ns = self._once(index, node, given, context)
        except SampleError as error:
            raise StageError(node.recipe.stage, error) from error
        if node.recipe.gives is Boundary.SOURCE:
            context = replace(context, source=value)
        self._values[index], self._ns[index] = value, ns
        self._contexts[index], self._done[index] = context, True
        if self._say:
            self._say(node.recipe, value)

    def _once(self, index: int, node: Node, given: Any, context: Context) -> tuple[Any, int]:
        """A node's value and its time in ns; of twins with equal inputs the first one's."""
        apply = self._opened.apply(index)
        if node.twin is None or not isinstance(given, np.ndarray):
            return self._timed(apply, given, context)
        glance = node.twin, given.ravel()[::101].tobytes()
        known = self._twins.get(glance)
        if known is None or not np.array_equal(known.given, given):
            known = self._twins[glance] = _Twin(given, *self._timed(apply, given, context))
        return known.value, known.ns

    def _timed(self, apply: Apply, given: Any, context: Context) -> tuple[Any, int]:
        """A step's value, and its nanoseconds less what was excluded meanwhile."""
        excluded, start = clock.excluded(), time.perf_counter_ns()
        value = apply(given, context)
        ns = time.perf_counter_ns() - start - (clock.excluded() - excluded)
        self.spent += ns
        return value, ns


def _kept(plan: Plan) -> list[bool]:
    """Which values are kept until the sample is done: ends of arms, and what asides begin from."""
    main = {index for path in plan.paths for index in path}
    kept = [False] * len(plan.nodes)
    for path in plan.paths:
        kept[path[-1]] = True
    for path in plan.asides.values():
        shared = [index for index in path if index in main]
        if shared:
            kept[shared[-1]] = True
    return kept


Watch = Callable[[Walk, Sequence[Any]], Any]
"""Looks at a sample that has gone through every arm, with its outcomes; returns what it saw."""
