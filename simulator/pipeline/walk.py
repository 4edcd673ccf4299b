"""The one interpreter of plans: a walk computes the nodes of a plan for one sample.

Pictures, controls, latency and calibration all use a walk; no other module applies a recipe.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import numpy as np

from simulator.contract import Array, Frame, clock
from simulator.contract.recipe import Apply, Boundary, Context, Recipe, Runtimes
from simulator.contract.stage import timed_steps
from simulator.data.folder import Item
from simulator.errors import SampleError
from simulator.modalities.modality import Modality
from simulator.pipeline.plan import Node, Path, Plan
from simulator.pipeline.watchdog import limited, of_sample
from simulator.places import Sealed, Where
from simulator.spent import Row, Work, spending

Say = Callable[[Recipe, Any], None]
"""Called with each recipe and its value, in the order of computation."""


class Opened:
    """A plan whose recipes were opened in this process.

    Args:
        plan: its recipes are opened.
        runtimes: opened runtimes; the caller closes them.
    """

    def __init__(self, plan: Plan, runtimes: Runtimes) -> None:
        self.plan = plan
        self._runtimes = runtimes
        self._applied: dict[int, Apply] = {}
        runtimes.make_room(sum(node.recipe.gives is Boundary.OUTPUTS for node in plan.nodes))
        self._kept = _kept(plan)
        self.rows = _rows(plan)
        self.limited = _limited(plan)
        self.twins = Counter(node.twin for node in plan.nodes)
        for index in plan.order:
            self.apply(index)

    def apply(self, index: int) -> Apply:
        """Return a node's function; nodes outside the arms are opened on first use."""
        if index not in self._applied:
            with spending(Work.OPENING):
                self._applied[index] = self.plan.nodes[index].recipe.open(self._runtimes)
        return self._applied[index]

    def walk(self, context: Context, say: Say | None = None) -> Walk:
        """Run every arm on a sample; where a stage fails, the arms without it go on.

        Args:
            context: the sample.
            say: called with each recipe and its value.

        Raises:
            StageError: no arm has an answer.
        """
        walk = Walk(self, context, say)
        walk.through(self.plan.order, self._kept)
        if len(walk.failed) == len(self.plan.arms) > 0:
            raise walk.failed[0]
        return walk


class StageError(SampleError):
    """A stage failed on a sample.

    Attributes:
        stage: of the recipe that failed.
        reason: why.
    """

    def __init__(self, stage: str, reason: object) -> None:
        super().__init__(f"{stage}: {reason}")
        self.stage, self.reason = stage, str(reason)

    def __reduce__(self) -> tuple[type[StageError], tuple[str, str]]:
        return StageError, (self.stage, self.reason)


def context_of(modality: Modality, item: Item, where: Where | None = None) -> Context:
    """Read a sample.

    Args:
        modality: reads it.
        item: the sample.
        where: read it there; None: where the item is.

    Raises:
        StageError: it cannot be read, or has others than the bytes that were hashed.
    """
    place = item.path if where is None else where
    if item.sha256 is not None:
        place = Sealed(place, item.sha256)
    try:
        with spending(Work.READING):
            source = modality.read(item.name, place)
    except SampleError as error:
        raise StageError("read", error) from error
    return Context(item.name, source, item.truth, item)


TWINS = 2**26
"""Bytes of inputs and values that are kept in case another node gets an equal input; the oldest
are dropped."""
SHORT = 4096
"""Elements of an array below which all of it tells inputs apart."""


@dataclass(frozen=True, slots=True)
class _Twin:
    """A recipe's input and value, kept in case another node gets an equal input."""

    given: Any
    value: Any
    ns: int
    size: int


class Walk:
    """The values and times of a plan's nodes for one sample.

    Args:
        opened: the plan.
        context: the sample.
        say: called with each recipe and its value.

    Attributes:
        spent: nanoseconds of all nodes that were computed, each counted once.
    """

    def __init__(self, opened: Opened, context: Context, say: Say | None = None) -> None:
        self._opened, self.context, self._say = opened, context, say
        count = len(opened.plan.nodes)
        self._values: list[Any] = [None] * count
        self._contexts: list[Context] = [context] * count
        self._done = [False] * count
        self._errors: dict[int, StageError] = {}
        self._ns = [0] * count
        self._moved: list[dict[str, int]] = [{}] * count
        self.spent = 0
        self._twins: dict[tuple[str, bytes], _Twin] = {}
        self._twins_left = opened.twins.copy()

    def through(self, nodes: Iterable[int], kept: Sequence[bool]) -> None:
        """Compute nodes in order, and drop values that no later node takes.

        Where a node fails, those behind it fail alike, and the others go on.

        Args:
            nodes: indices, parents first.
            kept: for every node of the plan, whether its value is kept to the end.
        """
        plan = self._opened.plan
        left = [node.children for node in plan.nodes]
        for index in nodes:
            parent = plan.nodes[index].parent
            try:
                self._compute(index)
            except StageError as error:
                self._errors[index] = error
            if parent is not None:
                left[parent] -= 1
                if not left[parent] and not kept[parent]:
                    self._values[parent] = None

    def value(self, path: Path) -> Any:
        """Return the value at the end of a path; nodes without a value are computed now.

        Raises:
            StageError: a stage failed.
        """
        for index in path:
            if not self._done[index]:
                self._compute(index)
        return self._values[path[-1]]

    def aside(self, name: str) -> Any:
        """Return the value at the end of one of the plan's ``asides``."""
        return self.value(self._opened.plan.asides[name])

    @property
    def failed(self) -> Mapping[int, StageError]:
        """The arms without an answer, each with the stage that failed and why."""
        if not self._errors:
            return {}
        ends = enumerate(path[-1] for path in self.plan.paths)
        return {arm: self._errors[end] for arm, end in ends if end in self._errors}

    def answers(self) -> list[Any]:
        """Return the value at the end of every arm; None for those that failed."""
        return [self._values[path[-1]] for path in self.plan.paths]

    def times(self, path: Path) -> dict[str, int]:
        """Return the nanoseconds of every timed stage of a path."""
        times: dict[str, int] = {}
        for index in path:
            recipe = self._opened.plan.nodes[index].recipe
            own = {recipe.stage: self._ns[index]} if recipe.timed else {}
            for stage, ns in (*own.items(), *self._moved[index].items()):
                times[stage] = times.get(stage, 0) + ns
        return times

    @property
    def plan(self) -> Plan:
        """The plan that is walked."""
        return self._opened.plan

    def again(self) -> Walk:
        """Run every arm on the same sample once more, from the start."""
        with spending(Work.REPEATS, whole=True):
            return self._opened.walk(self.context)

    def _compute(self, index: int) -> None:
        node = self._opened.plan.nodes[index]
        parent = node.parent
        if parent in self._errors:
            raise self._errors[parent]
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
        """A node's value and its time in ns; twins with equal inputs are computed once."""
        apply = self._opened.apply(index)
        arrays = _arrays(given) if node.twin is not None else ()
        if node.twin is None or not arrays:
            return self._timed(index, apply, given, context)
        key = node.twin, _sample(arrays)  # cheap; all is compared below
        known = self._twins.get(key)
        if known is None or not _equal(known.given, given):
            value, ns = self._timed(index, apply, given, context)
            held = (*arrays, *_arrays(getattr(value, "outputs", value)))
            known = _Twin(given, value, ns, sum(array.nbytes for array in held))
            self._twins[key] = known
            self._drop_old_twins()
        self._twins_left[node.twin] -= 1
        if not self._twins_left[node.twin]:
            self._twins = {at: twin for at, twin in self._twins.items() if at[0] != node.twin}
        return known.value, known.ns

    def _drop_old_twins(self) -> None:
        """Keep the last one, and those before it that :data:`TWINS` has room for."""
        held = sum(twin.size for twin in self._twins.values())
        while held > TWINS and len(self._twins) > 1:
            held -= self._twins.pop(next(iter(self._twins))).size

    def _timed(self, index: int, apply: Apply, given: Any, context: Context) -> tuple[Any, int]:
        """A step's value, and its nanoseconds without the time that the step excluded."""
        row = self._opened.rows[index]
        with spending(row) as step:
            clock.moved()
            excluded, start = clock.excluded(), time.perf_counter_ns()
            of_sample(self.context.sample, row.stage, row.stacks)
            if self._opened.limited[index]:
                with limited():
                    value = apply(given, context)
            else:
                value = apply(given, context)
            step.left_out = clock.excluded() - excluded
            ns = time.perf_counter_ns() - start - step.left_out
        self.spent += ns
        self._moved[index] = clock.moved()
        return value, ns - sum(self._moved[index].values())


def _arrays(value: Any) -> tuple[Array, ...]:
    """The arrays in a value: a frame, an array, a mapping or a tuple of these; else none."""
    if isinstance(value, Frame):
        return value.planes
    if isinstance(value, np.ndarray):
        return (value,)
    if isinstance(value, Mapping):
        value = tuple(value.values())
    return tuple(chain.from_iterable(map(_arrays, value))) if isinstance(value, tuple) else ()


def _sample(arrays: Sequence[Array]) -> bytes:
    """Some of the bytes of arrays; all of short ones, such as those of a text."""
    steps = (1 if array.size < SHORT else 101 for array in arrays)
    return b"".join(a.ravel()[::step].tobytes() for a, step in zip(arrays, steps, strict=True))


def _equal(one: Any, other: Any) -> bool:
    """Whether two values are of one kind, with equal elements."""
    if _kind(one) != _kind(other):
        return False
    pairs = zip(_arrays(one), _arrays(other), strict=True)
    return all(np.array_equal(a, b) for a, b in pairs)


def _kind(value: Any) -> Any:
    """What a value is besides the elements of its arrays."""
    if isinstance(value, Frame):
        return value.format, value.matrix, value.range
    if isinstance(value, Mapping):
        return [(name, _kind(one)) for name, one in value.items()]
    return tuple(map(_kind, value)) if isinstance(value, tuple) else None


def _kept(plan: Plan) -> list[bool]:
    """Which values are kept until the sample is done: ends of arms, and where asides branch off."""
    main = {index for path in plan.paths for index in path}
    kept = [False] * len(plan.nodes)
    for path in plan.paths:
        kept[path[-1]] = True
    for path in plan.asides.values():
        shared = [index for index in path if index in main]
        if shared:
            kept[shared[-1]] = True
    return kept


def _limited(plan: Plan) -> list[bool]:
    """Which nodes have a time limit as a whole: steps of stacks, but for those with inferences."""
    steps = frozenset(timed_steps())
    return [
        node.recipe.stage in steps and node.recipe.gives is not Boundary.OUTPUTS
        for node in plan.nodes
    ]


def _rows(plan: Plan) -> list[Row]:
    """For every node what its time is told as: its stage, and the stacks that it belongs to."""
    stacks: list[set[str]] = [set() for _ in plan.nodes]
    for arm, path in zip(plan.arms, plan.paths, strict=True):
        for index in path:
            stacks[index].add(arm.stack)
    every = len({arm.stack for arm in plan.arms})

    def of(names: set[str]) -> str:
        if len(names) == 1:
            return next(iter(names))
        return ("all" if len(names) == every else f"{len(names)} stacks") if names else "aside"

    return [
        Row(Work.STEPS, node.recipe.stage, of(names))
        for node, names in zip(plan.nodes, stacks, strict=True)
    ]


Watch = Callable[[Walk, Mapping[int, Any]], Any]
"""Called with a sample's walk after every arm has run, and its outcomes by the arm; may return any
value. An arm that failed, or whose reference did, has no outcome.

It can be pickled: an executor may send it to another process, and what it returns comes back."""


def spent(walk: Walk, outcomes: Mapping[int, Any]) -> int:
    """Return the nanoseconds of a sample's unique steps; a :data:`Watch`."""
    return walk.spent
