"""Controls: a stack against itself, and the effect of every axis alone.

They are part of the plan and are computed together with the samples; see
:mod:`simulator.experiments.watch`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from simulator.contract import Array
from simulator.contract.recipe import Boundary, Chain
from simulator.data.tally import counted
from simulator.errors import SampleError, UserError
from simulator.experiments.session import Session
from simulator.model.card import Card
from simulator.model.rewritten import graph_difference
from simulator.pipeline.executor import outcomes_of, pick
from simulator.pipeline.inference import answered, answering
from simulator.pipeline.stack import Stack
from simulator.pipeline.walk import Walk
from simulator.profile.axes import POST_AXES, is_of_front_end, swap
from simulator.profile.modality import graph_axes
from simulator.results.pair import AxisEffect, SelfCheck
from simulator.tasks.task import Task

SELF_SAMPLES = 4
"""How many samples are run twice."""
AXIS_SAMPLES = 8
"""On how many samples every axis is tried alone."""


@dataclass(frozen=True, slots=True)
class Repeat:
    """The result of running a sample twice.

    Attributes:
        equal: whether all outputs of both runs have the same bits.
        flips: how many answers differ.
    """

    equal: bool
    flips: int


def repeat(task: Task, arms: Sequence[int], walk: Walk) -> Repeat | None:
    """Run a sample a second time; a deterministic stack gives the same bits.

    Args:
        task: says which answers differ, whatever time they took.
        arms: indices of the arms that are compared.
        walk: of the first run, on which they all have an answer.
    """
    once = pick(outcomes_of(walk), arms)
    try:
        again = pick(outcomes_of(walk.again()), arms)
    except SampleError:
        again = None
    if once is None or again is None:
        return Repeat(False, 0)
    pairs = list(zip(once, again, strict=True))
    return Repeat(
        all(a.digest == b.digest for a, b in pairs),
        sum(not task.same(a.record, b.record) for a, b in pairs),
    )


def self_check(repeats: Iterable[Repeat]) -> SelfCheck:
    """Return what came of running samples twice, of both stacks together."""
    found = list(repeats)
    return SelfCheck(
        samples=len(found),
        flips=sum(repeat.flips for repeat in found),
        bit_equal=all(repeat.equal for repeat in found),
    )


Moved = tuple[float, float, float]
"""How far an axis moves a sample: of the network's input the share of values that differ, the mean
and the largest difference; of an answer the units that changed, all units, and whether any did."""


@dataclass(slots=True)
class AxisEffects:
    """The effect of each axis alone, swapped into the training stack.

    Axes of the preprocessing are compared by the network's input, axes of the graph by the nodes
    that they change, and axes of the postprocessing by the predictions.

    Attributes:
        axes: those that differ.
        card: the model card.
        train: the training stack's own chain.
        scale: see :meth:`simulator.modalities.modality.Modality.scale`.
        prefix: of the names of its chains in the plan.
        known: effects that need no sample, by axis.
        pixels: for each preprocessing axis the chain to the network's input.
        answers: for each postprocessing axis the chain to the prediction.
    """

    axes: Sequence[str]
    card: Card
    train: Chain
    scale: Array
    prefix: str
    known: dict[str, AxisEffect] = field(default_factory=dict)
    pixels: dict[str, Chain] = field(default_factory=dict)
    answers: dict[str, Chain] = field(default_factory=dict)

    def asides(self) -> dict[str, Chain]:
        """Return the chains that :meth:`see` needs, by their names in the plan."""
        chains = self.pixels | self.answers
        if self.pixels:
            chains["train"] = self.train.until(Boundary.INPUT)
        if self.answers:
            chains["train answer"] = self.train
        return {self._name(name): chain for name, chain in chains.items()}

    def see(self, walk: Walk) -> dict[str, Moved]:
        """Return the effect of each axis on one sample; an axis that fails is left out."""
        seen: dict[str, Moved] = {}
        for axis in self.pixels:
            with suppress(SampleError):
                base, other = (walk.aside(self._name(name)) for name in ("train", axis))
                seen[axis] = difference(base, other, self.scale)
        for axis in self.answers:
            with suppress(SampleError):
                seen[axis] = self._answers(walk, axis)
        return seen

    def _name(self, chain: str) -> str:
        return f"{self.prefix}axis {chain}"

    def _answers(self, walk: Walk, axis: str) -> Moved:
        """How many units changed, how many there are, and whether the records differ."""
        task, names = self.card.task, ("train answer", axis)
        before, after = (walk.aside(self._name(name)).prediction for name in names)
        one, two = task.records([before, after], walk.context.truth, walk.context.source)
        return two["changed"], two["units"], one != two

    def effects(self, seen: Sequence[Mapping[str, Moved]]) -> dict[str, AxisEffect]:
        """Return the effect of each axis over several samples.

        Args:
            seen: what :meth:`see` returned for each sample.
        """
        found = dict(self.known)
        for axis in self.pixels:
            found[axis] = _effect([one[axis] for one in seen if axis in one], self.card)
        for axis in self.answers:
            found[axis] = self._in_words([one[axis] for one in seen if axis in one])
        return {axis: found[axis] for axis in self.axes if axis in found}

    def _in_words(self, found: Sequence[Moved]) -> AxisEffect:
        changed, units, differ = (int(sum(one[at] for one in found)) for at in range(3))
        unit = self.card.modality.unit
        words = (
            f"answers differ in {differ} of {counted(len(found), unit)}; {changed:,} of {units:,} "
            f"{self.card.unit}s changed"
        )
        return AxisEffect(null=not differ, why=words)


def axis_effects(
    session: Session,
    axes: Sequence[str],
    train: Stack,
    deploy: Stack,
    scale: Array,
    prefix: str,
) -> AxisEffects:
    """Plan the comparison of each axis alone.

    Args:
        session: the model and the samples.
        axes: the axes that differ.
        train: the training stack.
        deploy: the deployment stack.
        scale: see :meth:`simulator.modalities.modality.Modality.scale`.
        prefix: of the names of the chains in the plan.
    """
    card, found = session.card, AxisEffects(axes, session.card, train.chain, scale, prefix)
    for axis in axes:
        try:
            if axis in graph_axes():
                graphs = (stack.profile.spec.graph for stack in (train, deploy))
                changed, words = graph_difference(card, session.source, axis, *graphs)
                found.known[axis] = AxisEffect(null=changed == 0, why=words)
            elif is_of_front_end(axis, train.profile):
                mixed = swap(train.profile, deploy.profile, [axis])
                alone = session.builder.front_end(*mixed)
                found.pixels[axis] = replace(alone, into=train.chain.network)
            elif axis in POST_AXES:
                other = answering(swap(train.profile, deploy.profile, [axis])[0], card)
                if other.identity() == train.chain.last.identity():
                    why = f"null: this model's {card.task.name} does not use it"
                    found.known[axis] = AxisEffect(null=True, why=why)
                else:
                    found.answers[axis] = answered(train.chain, other)
        except UserError as error:
            found.known[axis] = AxisEffect(null=False, why=f"cannot be swapped alone: {error}")
    return found


def _effect(found: Sequence[Moved], card: Card) -> AxisEffect:
    if not found:
        why = f"every {card.modality.unit} failed with this axis alone"
        return AxisEffect(null=False, why=why)
    shares, means, peaks = zip(*found, strict=True)
    compared = bool(np.isfinite(means).all())
    return AxisEffect(
        samples=len(found),
        changed=sum(peak > 0 for peak in peaks),
        values_changed=float(np.mean(shares)),
        mean=float(np.mean(means)) if compared else None,
        max=float(max(peaks)) if compared else None,
        null=max(peaks) == 0,
        unit=card.modality.levels_of(card.spec),
    )


def difference(a: Any, b: Any, scale: Array) -> Moved:
    """Compare the network's inputs of two stacks.

    Args:
        a: the input of one stack: an array, a mapping of names to arrays, or a tuple of these.
        b: the input of the other stack.
        scale: differences are multiplied by it; it broadcasts against the arrays.

    Returns:
        The share of values that differ (0 to 1), and the mean and the largest absolute difference.
        For arrays of different shapes, and for other structures, these are 1 and infinities.
    """
    if type(a) is not type(b) or (isinstance(a, Mapping) and set(a) != set(b)):
        return 1.0, np.inf, np.inf
    if isinstance(a, np.ndarray) and a.shape == b.shape:
        numbers = a.dtype.kind == "f"
        if not a.size:
            return 0.0, 0.0, 0.0
        levels = np.abs((a - b) if numbers else np.subtract(a, b, dtype=np.float64)) * scale
        return float(np.mean(levels > 0)), float(levels.mean()), float(levels.max())
    if isinstance(a, np.ndarray):
        return 1.0, np.inf, np.inf
    parts = range(min(len(a), len(b))) if isinstance(a, tuple) else a
    found = [difference(a[part], b[part], scale) for part in parts]
    shares, means, peaks = zip(*found, strict=True)
    same = len(a) == len(b)
    return float(np.mean(shares)) if same else 1.0, float(np.mean(means)), float(max(peaks))
