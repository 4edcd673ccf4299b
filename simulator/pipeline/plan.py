"""The DAG of unique computations that a set of chains needs; plain data.

Chains that begin with the same steps share these nodes, so that what two stacks have in common is
computed once per sample. A plan can be pickled, sent to another process and run there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from simulator.contract.recipe import Boundary, Chain, Recipe
from simulator.model.artifact import digest

IN_A_ROW = 8
"""Inferences of one network that come one after another; their inputs are held until then."""


@dataclass(frozen=True, slots=True)
class Arm:
    """One stack under one condition and trial; an arm and a sample make a cell.

    Attributes:
        stack: its name in records.
        condition: as written for ``--under``, for example ``jpeg:40``; empty without one.
        trial: which random draw of the condition, from 0.
    """

    stack: str
    condition: str = ""
    trial: int = 0


class Judge(Protocol):
    """Makes records of predictions; plain data, so that a plan can be pickled."""

    def __call__(
        self, predictions: Mapping[int, Any], truth: Any, source: Any
    ) -> dict[int, dict[str, Any]]:
        """Return a record for each prediction of one sample, both by the arm.

        A prediction whose reference is missing has none.

        Raises:
            SampleError: the sample's ground truth cannot be used.
        """


@dataclass(frozen=True, slots=True)
class NoJudge:
    """Gives empty records, for chains that end before a prediction."""

    def __call__(
        self, predictions: Mapping[int, Any], truth: Any, source: Any
    ) -> dict[int, dict[str, Any]]:
        """Return an empty record for each."""
        return {arm: {} for arm in predictions}


@dataclass(frozen=True, slots=True)
class Node:
    """A recipe in the DAG.

    Attributes:
        key: the digest of the recipe and of all recipes before it.
        recipe: what is computed.
        parent: the index of the node whose value it takes; None for the source.
        children: how many nodes take its value.
        twin: the digest of the recipe alone and of the conditions that it is under, where other
            nodes have the same and may get equal inputs; else None.
    """

    key: str
    recipe: Recipe
    parent: int | None
    children: int
    twin: str | None


Path = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """Nodes in topological order (parents first), and the path of each arm through them.

    Attributes:
        nodes: the unique computations.
        arms: what is run on every sample.
        paths: for each arm the indices of its nodes, first to last.
        order: the arms' nodes as they are computed, parents first. Under several conditions up to
            :data:`IN_A_ROW` inferences of one network come one after another, which changes no bit
            and is faster (docs/batches.md); else it is the order of the indices, so that a stack's
            latency is that of the stack alone.
        asides: further paths by name, which are computed only when a watch function asks for them.
        judge: makes records of the arms' predictions.
    """

    nodes: tuple[Node, ...]
    arms: tuple[Arm, ...]
    paths: tuple[Path, ...]
    order: Path
    asides: Mapping[str, Path] = field(default_factory=dict)
    judge: Judge = NoJudge()

    def shared(self) -> list[str]:
        """Return the stages that all arms share, computed once per sample."""
        together = set(self.paths[0]).intersection(*self.paths[1:])
        stages = [self.nodes[i].recipe.stage for i in self.paths[0] if i in together]
        return list(dict.fromkeys(stages)) if len(self.paths) > 1 else []

    def memory(self, source: Any) -> int:
        """Return about how many bytes the arms need at most for a sample.

        A value is dropped when all nodes that take it are done, as a walk does it.
        """
        left = {index: self.nodes[index].children for index in self.order}
        sizes: dict[int, int] = {}
        most = now = 0
        for index in self.order:
            sizes[index] = self.nodes[index].recipe.memory(source)
            now += sizes[index]
            most = max(most, now)
            parent = self.nodes[index].parent
            if parent is not None:
                left[parent] -= 1
                now -= 0 if left[parent] else sizes[parent]
        return most


def plan(
    arms: Mapping[Arm, Chain], judge: Judge | None = None, asides: Mapping[str, Chain] | None = None
) -> Plan:
    """Merge chains into one DAG.

    Args:
        arms: the chain of every arm.
        judge: makes records of their predictions; None for chains that end before one.
        asides: further chains, see :class:`Plan`.
    """
    index: dict[str, int] = {}
    steps: list[tuple[str, Recipe, int | None]] = []

    def path(chain: Chain) -> Path:
        parent: int | None = None
        found = []
        for at, each in enumerate(chain.recipes):
            recipe = each.behind(chain.recipes[:at])
            key = digest([steps[parent][0] if parent is not None else None, recipe.identity()])
            if key not in index:
                index[key] = len(steps)
                steps.append((key, recipe, parent))
            parent = index[key]
            found.append(parent)
        return tuple(found)

    paths = tuple(path(chain) for chain in arms.values())
    beside = {name: path(chain) for name, chain in (asides or {}).items()}
    children = Counter(parent for _, _, parent in steps)
    under: list[list[tuple[str, int]]] = [[] for _ in steps]
    for arm, indices in zip(arms, paths, strict=True):
        for at in indices:
            if (arm.condition, arm.trial) not in under[at]:
                under[at].append((arm.condition, arm.trial))
    alone = [
        digest([recipe.identity(), under[at]]) if recipe.shares_equal_inputs else None
        for at, (_, recipe, _) in enumerate(steps)
    ]
    equal = Counter(alone)
    nodes = tuple(
        Node(key, recipe, parent, children[at], alone[at] if equal[alone[at]] > 1 else None)
        for at, (key, recipe, parent) in enumerate(steps)
    )
    several = len({(arm.condition, arm.trial) for arm in arms}) > 1
    order = _in_rows(nodes, paths) if several else _once(paths)
    return Plan(nodes, tuple(arms), paths, order, beside, judge or NoJudge())


def _in_rows(nodes: Sequence[Node], paths: Sequence[Path]) -> Path:
    """The nodes of paths, parents first, with inferences of one network in rows."""
    networks: dict[str, list[int]] = {}
    found = {_network(nodes, path) for path in paths}
    for index in sorted(one for one in found if one is not None):
        networks.setdefault(digest(nodes[index].recipe.identity()), []).append(index)
    rows = {
        index: same[at : at + IN_A_ROW]
        for same in networks.values()
        for at in range(0, len(same), IN_A_ROW)
        for index in same[at : at + IN_A_ROW]
    }
    order: dict[int, None] = {}
    for index in _once(paths):
        row = rows.get(index, [index])
        for each in row:
            order.update(dict.fromkeys(_before(nodes, each)))
        order.update(dict.fromkeys(row))
    return tuple(order)


def _once(paths: Sequence[Path]) -> Path:
    """Every node of paths once, in the order of the indices."""
    return tuple(sorted({index for path in paths for index in path}))


def _network(nodes: Sequence[Node], path: Path) -> int | None:
    """The first inference on a path."""
    return next((i for i in path if nodes[i].recipe.gives is Boundary.OUTPUTS), None)


def _before(nodes: Sequence[Node], index: int) -> list[int]:
    """The nodes that come before one, first to last."""
    found: list[int] = []
    parent = nodes[index].parent
    while parent is not None:
        found.append(parent)
        parent = nodes[parent].parent
    return found[::-1]
