"""Honesty controls: a stack against itself, and every axis alone. Planned with the rest.

What has to be seen of a sample is seen while it is walked; see :mod:`simulator.experiments.watch`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from simulator.contract import Array
from simulator.contract.recipe import Boundary, Chain
from simulator.data.tally import counted
from simulator.errors import SampleError, UserError
from simulator.experiments.session import Session
from simulator.modalities.modality import Modality
from simulator.model.artifact import graph_difference
from simulator.model.card import Card
from simulator.pipeline.executor import Outcome
from simulator.pipeline.inference import answering
from simulator.pipeline.stack import Stack
from simulator.pipeline.walk import Walk
from simulator.profile.axes import POST_AXES, is_of_front_end, swap
from simulator.profile.modality import graph_axes

SELF_SAMPLES = 4
AXIS_SAMPLES = 8


@dataclass(frozen=True, slots=True)
class Repeat:
    """A sample that was walked twice.

    Attributes:
        equal: whether all outputs had the same bits.
        flips: how many records differ.
    """

    equal: bool
    flips: int


def repeat(walk: Walk, outcomes: Sequence[Outcome], arms: Sequence[int], judge: Any) -> Repeat:
    """Walk a sample a second time: a stack against itself must give the same bits.

    Args:
        walk: the first time.
        outcomes: of the first time, of these arms.
        arms: indices of the arms that are compared.
        judge: from a walk to the outcomes of all arms.
    """
    try:
        again = judge(walk.again())
    except SampleError:
        return Repeat(False, 0)
    pairs = list(zip(outcomes, [again[arm] for arm in arms], strict=True))
    return Repeat(
        all(a.digest == b.digest for a, b in pairs), sum(a.record != b.record for a, b in pairs)
    )


def self_check(repeats: Iterable[Repeat]) -> dict[str, Any]:
    """Return ``samples``, ``flips`` and ``bit_equal`` over both sides."""
    found = list(repeats)
    return {
        "samples": len(found),
        "flips": sum(one.flips for one in found),
        "bit_equal": all(one.equal for one in found),
    }


@dataclass(slots=True)
class AxisEffects:
    """Every axis alone: pixels by the input tensors, graphs by nodes, boxes by answers.

    A pixel or postprocessing axis is swapped alone into the training stack.

    Attributes:
        axes: those that differ.
        known: effects that need no sample.
        pixels: the chain to the network's input of each pixel axis, and of ``train``.
        answers: the chain to the answer of each postprocessing axis.
        scale: see :meth:`simulator.modalities.modality.Modality.scale`.
    """

    axes: Sequence[str]
    card: Card
    scale: Array
    known: dict[str, dict[str, Any]] = field(default_factory=dict)
    pixels: dict[str, Chain] = field(default_factory=dict)
    answers: dict[str, Chain] = field(default_factory=dict)

    def see(self, walk: Walk, prefix: str) -> dict[str, Any]:
        """Return what each axis does to one sample; an axis that cannot go through is left out."""
        seen: dict[str, Any] = {}
        for axis in self.pixels:
            try:
                base, other = walk.aside(f"{prefix}train"), walk.aside(f"{prefix}{axis}")
            except SampleError:
                continue
            seen[axis] = difference(base, other, self.scale)
        for axis in self.answers:
            try:
                seen[axis] = self._answers(walk, f"{prefix}train answer", f"{prefix}{axis}")
            except SampleError:
                continue
        return seen

    def _answers(self, walk: Walk, base: str, other: str) -> tuple[int, int, bool]:
        """Changed units, units, and whether the records differ."""
        task = self.card.task
        before, after = (walk.aside(name).prediction for name in (base, other))
        one, two = task.records([before, after], walk.context.truth, walk.context.source)
        return two["changed"], two["units"], one != two

    def effects(self, seen: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
        """Return the effect of each axis over the samples that were seen.

        Returns:
            Per axis: ``samples`` compared, ``changed`` of them, ``values_changed`` as a share,
            ``mean`` and ``max`` absolute difference with their ``unit``, ``null`` true when
            nothing changed, or ``why`` it was not measured.
        """
        found = dict(self.known)
        for axis in self.pixels:
            found[axis] = _effect([one[axis] for one in seen if axis in one], self.card.modality)
        for axis in self.answers:
            found[axis] = self._words([one[axis] for one in seen if axis in one])
        return {axis: found[axis] for axis in self.axes if axis in found}

    def _words(self, found: Sequence[tuple[int, int, bool]]) -> dict[str, Any]:
        changed, units, differ = (sum(one[at] for one in found) for at in range(3))
        unit = self.card.modality.unit
        words = (
            f"answers differ in {differ} of {counted(len(found), unit)}; {changed:,} of {units:,} "
            f"{self.card.task.unit}s changed"
        )
        return {"null": not differ, "why": words}


def axis_effects(
    session: Session, axes: Sequence[str], train: Stack, deploy: Stack, scale: Array
) -> AxisEffects:
    """Plan the comparison of each axis alone.

    Args:
        session: the model and the samples.
        axes: the axes that differ.
        train: the training stack.
        deploy: the deployment stack.
        scale: see :meth:`simulator.modalities.modality.Modality.scale`.
    """
    card, found = session.card, AxisEffects(axes, session.card, scale)
    for axis in axes:
        try:
            if axis in graph_axes():
                graphs = (stack.profile.spec.graph for stack in (train, deploy))
                changed, words = graph_difference(card, session.source, axis, *graphs)
                found.known[axis] = {"null": changed == 0, "why": words}
            elif is_of_front_end(axis, train.profile):
                mixed = swap(train.profile, deploy.profile, [axis])
                found.pixels[axis] = session.builder.front_end(*mixed)
            elif axis in POST_AXES:
                other = answering(swap(train.profile, deploy.profile, [axis])[0], card)
                if other.identity() == train.chain.last.identity():
                    why = f"null: no part of this model's {card.task.name}"
                    found.known[axis] = {"null": True, "why": why}
                else:
                    found.answers[axis] = train.chain.with_last(other)
        except UserError as error:
            found.known[axis] = {"null": False, "why": f"cannot be swapped alone: {error}"}
    return found


def asides(effects: AxisEffects, train: Stack, prefix: str) -> dict[str, Chain]:
    """Return the chains that :meth:`AxisEffects.see` looks at, by their names in the plan."""
    chains = {f"{prefix}{axis}": chain for axis, chain in effects.pixels.items()}
    chains |= {f"{prefix}{axis}": chain for axis, chain in effects.answers.items()}
    if effects.pixels:
        chains[f"{prefix}train"] = train.chain.until(Boundary.INPUT)
    if effects.answers:
        chains[f"{prefix}train answer"] = train.chain
    return chains


def _effect(found: Sequence[tuple[float, float, float]], modality: Modality) -> dict[str, Any]:
    if not found:
        return {"null": False, "why": f"no {modality.unit} could go through this axis alone"}
    shares, means, peaks = zip(*found, strict=True)
    return {
        "samples": len(found),
        "changed": sum(peak > 0 for peak in peaks),
        "values_changed": float(np.mean(shares)),
        "mean": float(np.mean(means)),
        "max": float(max(peaks)),
        "null": max(peaks) == 0,
        "unit": modality.levels,
    }


def difference(a: Any, b: Any, scale: Array) -> tuple[float, float, float]:
    """Compare two inputs of a network: the share of values that differ, mean and max difference.

    Args:
        a: the input of one stack: an array, a mapping of names to arrays, or a tuple of these.
        b: that of the other. Where an array has another shape there, all of it differs, and how
            much is not known.
        scale: what differences are multiplied by.
    """
    if isinstance(a, np.ndarray) and a.shape == b.shape:
        numbers = a.dtype.kind == "f"
        levels = np.abs((a - b) if numbers else np.subtract(a, b, dtype=np.float64)) * scale
        return float(np.mean(levels > 0)), float(levels.mean()), float(levels.max())
    if isinstance(a, np.ndarray):
        return 1.0, np.inf, np.inf
    parts = range(min(len(a), len(b))) if isinstance(a, tuple) else a
    found = [difference(a[part], b[part], scale) for part in parts]
    shares, means, peaks = zip(*found, strict=True)
    same = len(a) == len(b)
    return float(np.mean(shares)) if same else 1.0, float(np.mean(means)), float(max(peaks))
