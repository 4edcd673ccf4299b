"""The DAG of unique computations that a set of stacks needs.

Each stack is a chain of steps; chains that begin alike share their nodes, so what two stacks
have in common is computed once per image. The set may have any number of stacks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from simulator.contract import Encoded
from simulator.data.folder import Item
from simulator.model.artifact import digest


@dataclass(frozen=True, slots=True)
class Sample:
    """What every step may know besides the value that it takes.

    Attributes:
        item: where the image is, and what people have annotated.
        image: the file, and what its header says.
    """

    item: Item
    image: Encoded


Apply = Callable[[Any, Sample], Any]
Judge = Callable[[Sequence[Any], Any, Encoded], list[dict[str, Any]]]
"""From the stacks' predictions for an image, its truth and its file to a record per stack."""


@dataclass(frozen=True, slots=True)
class Step:
    """One stage of one stack.

    Attributes:
        stage: the name that latency and messages use.
        identity: everything that its result depends on, besides its input; JSON.
        apply: the computation, from the previous step's value and the sample.
        same_input: whether equal inputs are worth looking for: identical tensors from
            different steps are then computed once per sample.
        resized: for a resize, the rows and columns that it makes of an image.
        timed: whether its time means anything; a look-up's does not.
    """

    stage: str
    identity: Any
    apply: Apply
    same_input: bool = False
    resized: Callable[[int, int], tuple[int, int]] | None = None
    timed: bool = True


@dataclass(frozen=True, slots=True)
class Node:
    """A step at its place in the DAG.

    Attributes:
        key: the digest of the step and of all steps before it.
        step: what is computed.
        parent: the index of the node whose value it takes; None: the encoded image.
        children: how many nodes take its value.
        twin: the digest of the step alone, where other nodes run the same step on inputs that
            may turn out to be equal; else None.
    """

    key: str
    step: Step
    parent: int | None
    children: int
    twin: str | None


@dataclass(frozen=True, slots=True)
class Plan:
    """Nodes in an order in which every parent comes first, and each stack's path through them.

    Attributes:
        nodes: the unique computations.
        paths: for each stack the indices of its nodes, first to last.
        judge: holds the predictions against the truth and the first stack's.
    """

    nodes: tuple[Node, ...]
    paths: tuple[tuple[int, ...], ...]
    judge: Judge

    def shared(self) -> list[str]:
        """Return the stages that all stacks share, computed once per image."""
        together = set(self.paths[0]).intersection(*self.paths[1:])
        stages = [self.nodes[i].step.stage for i in self.paths[0] if i in together]
        return list(dict.fromkeys(stages)) if len(self.paths) > 1 else []


def no_judge(predictions: Sequence[Any], truth: Any, image: Encoded) -> list[dict[str, Any]]:
    """Return empty records, for chains that end before a prediction."""
    return [{} for _ in predictions]


def plan(chains: Sequence[Sequence[Step]], judge: Judge = no_judge) -> Plan:
    """Merge chains of steps into one DAG."""
    index: dict[str, int] = {}
    steps: list[tuple[str, Step, int | None]] = []
    paths = []
    for chain in chains:
        parent: int | None = None
        path = []
        for step in chain:
            key = digest([steps[parent][0] if parent is not None else None, step.identity])
            if key not in index:
                index[key] = len(steps)
                steps.append((key, step, parent))
            parent = index[key]
            path.append(parent)
        paths.append(tuple(path))
    uses = [sum(p == i for _, _, p in steps) for i in range(len(steps))]
    alone = [digest(step.identity) if step.same_input else None for _, step, _ in steps]
    nodes = tuple(
        Node(key, step, parent, uses[i], alone[i] if alone.count(alone[i]) > 1 else None)
        for i, (key, step, parent) in enumerate(steps)
    )
    return Plan(nodes, tuple(paths), judge)
