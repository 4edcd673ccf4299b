"""Arms that need different hardware run on different workers; their answers meet here."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from simulator.cluster.connection import Needs
from simulator.cluster.messages import ArmAnswers
from simulator.cluster.pool import WorkerPool
from simulator.contract.recipe import Context, Recipe
from simulator.data.folder import Item
from simulator.pipeline.plan import Path, Plan
from simulator.pipeline.walk import StageError, Walk


@dataclass(frozen=True, slots=True)
class Group:
    """The arms of a plan that run on one kind of worker.

    Attributes:
        needs: the resources of these workers.
        arms: indices in the plan.
        plan: with only these arms, and every aside.
    """

    needs: Needs
    arms: tuple[int, ...]
    plan: Plan

    @property
    def who(self) -> str:
        """Its stacks, for messages."""
        return " and ".join(dict.fromkeys(arm.stack for arm in self.plan.arms))


def needs_of(recipes: Iterable[Recipe]) -> Needs:
    """Return the resources that steps need together."""
    found: dict[str, float] = {}
    for recipe in recipes:
        for name, amount in recipe.needs:
            found[name] = max(amount, found.get(name, 0.0))
    return tuple(sorted(found.items()))


def _needs(plan: Plan, path: Path) -> Needs:
    return needs_of(plan.nodes[index].recipe for index in path)


def groups_of(plan: Plan) -> list[Group]:
    """Return the arms of a plan by the resources that they need."""
    arms: dict[Needs, list[int]] = {}
    for at, path in enumerate(plan.paths):
        arms.setdefault(_needs(plan, path), []).append(at)
    return [
        Group(
            needs,
            tuple(own),
            replace(
                plan,
                arms=tuple(plan.arms[at] for at in own),
                paths=tuple(plan.paths[at] for at in own),
            ),
        )
        for needs, own in arms.items()
    ]


def home_of(plan: Plan, path: Path, groups: Sequence[Group]) -> int:
    """Return the group whose workers run an aside.

    It is the one with the resources that the path needs; where it needs none, the one that has
    most of its first steps.
    """
    needs = _needs(plan, path)
    for at, group in enumerate(groups):
        if group.needs == needs and needs:
            return at
    return max(range(len(groups)), key=lambda at: (_shared(path, groups[at].plan.paths), -at))


def _shared(path: Path, others: Sequence[Path]) -> int:
    lengths = (
        next((at for at, (a, b) in enumerate(zip(path, other, strict=False)) if a != b), len(path))
        for other in others
    )
    return max(lengths)


@dataclass(frozen=True, slots=True)
class Far:
    """A plan whose arms run on the workers of several pools."""

    plan: Plan
    groups: Sequence[Group]
    pools: Sequence[WorkerPool]
    context: Callable[[Item], Context]

    def walk(self, item: Item) -> Gathered:
        """Run every arm on a sample.

        Raises:
            StageError: no arm has an answer.
        """
        return Gathered(self, item, [_again(pool, item) for pool in self.pools])


def _again(pool: WorkerPool, item: Item) -> ArmAnswers | StageError:
    try:
        return pool.again(item)
    except StageError as error:
        return error


class Gathered(Walk):
    """A walk whose arms ran elsewhere; further values are asked for there.

    Args:
        far: the plan and its workers.
        item: the sample.
        found: of each group, in their order; :class:`StageError` where none of its arms answers.

    Raises:
        StageError: no arm has an answer, or the sample cannot be read in this process.
    """

    def __init__(self, far: Far, item: Item, found: Sequence[ArmAnswers | StageError]) -> None:
        self._far, self._item = far, item
        self._answers: list[Any] = [None] * len(far.plan.arms)
        self._times: dict[Path, Mapping[str, int]] = {}
        self._failed: dict[int, StageError] = {}
        for group, own in zip(far.groups, found, strict=True):
            if isinstance(own, StageError):
                self._failed |= dict.fromkeys(group.arms, own)
                continue
            for arm, answer in zip(group.arms, own.answers, strict=True):
                self._answers[arm] = answer
            self._times |= zip(group.plan.paths, own.times, strict=True)
            self._failed |= {group.arms[at]: error for at, error in own.failed.items()}
        if len(self._failed) == len(self._answers):
            raise self._failed[0]
        self.context = far.context(item)

    @property
    def plan(self) -> Plan:
        """The plan that is walked."""
        return self._far.plan

    @property
    def failed(self) -> Mapping[int, StageError]:
        """The arms without an answer, each with the stage that failed and why."""
        return dict(sorted(self._failed.items()))

    def answers(self) -> list[Any]:
        """Return the value at the end of every arm; None for those that failed."""
        return self._answers

    def times(self, path: Path) -> dict[str, int]:
        """Return the nanoseconds of every timed stage of an arm."""
        return dict(self._times[path])

    def aside(self, name: str) -> Any:
        """Return the value at the end of one of the plan's asides, from the workers that have it.

        Raises:
            StageError: a stage failed there.
        """
        far = self._far
        home = home_of(far.plan, far.plan.asides[name], far.groups)
        return far.pools[home].aside(self._item, name)

    def again(self) -> Walk:
        """Run every arm on the same sample once more."""
        return self._far.walk(self._item)
