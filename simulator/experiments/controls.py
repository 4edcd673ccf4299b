"""Honesty controls: a stack against itself, and every axis alone."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np

from simulator.contract import Array
from simulator.data.folder import Item
from simulator.errors import UserError
from simulator.modalities.image.front_end import deviations, preprocessing
from simulator.model.artifact import graph_difference
from simulator.model.card import Card
from simulator.model.onnxfile import OnnxFile
from simulator.pipeline.executor import Done, ends, execute
from simulator.pipeline.inference import answering
from simulator.pipeline.plan import Plan, plan
from simulator.pipeline.stack import Stack
from simulator.profile.axes import GRAPH_AXES, POST_AXES, is_of_front_end, swap
from simulator.profile.load import Profile

SELF_SAMPLES = 4
AXIS_SAMPLES = 8


def self_check(whole: Plan, done: Sequence[Done], workers: int) -> dict[str, Any]:
    """Run a few samples a second time: a side against itself must give the same bits.

    Returns:
        ``samples``, ``flips`` and ``bit_equal`` over both sides.
    """
    chosen = [d for d in done if d.skipped is None][:SELF_SAMPLES]
    flips, equal = 0, True
    again = execute(whole, [first.item for first in chosen], workers)
    for first, second in zip(chosen, again, strict=True):
        pairs = list(zip(first.outcomes, second.outcomes, strict=False))
        equal = equal and second.skipped is None
        equal = equal and all(a.digest == b.digest for a, b in pairs)
        flips += sum(a.record != b.record for a, b in pairs)
    return {"samples": len(chosen), "flips": flips, "bit_equal": equal}


def axis_effects(
    axes: Sequence[str],
    train: Stack,
    deploy: Stack,
    card: Card,
    source: OnnxFile,
    done: Sequence[Done],
    workers: int,
) -> dict[str, dict[str, Any]]:
    """Compare each axis alone: pixels by the input tensors, graphs by nodes, boxes by answers.

    A pixel or postprocessing axis is swapped alone into the training stack.

    Args:
        axes: the axes that differ.
        train: the training stack.
        deploy: the deployment stack.
        card: the model card.
        source: the model.
        done: the run; its first few samples that were not skipped are used.
        workers: samples in flight.

    Returns:
        Per axis: ``samples`` compared, ``changed`` of them, ``values_changed`` as a share,
        ``mean`` and ``max`` absolute difference in levels of 0-255, ``null`` true when
        nothing changed, or ``why`` it was not measured.
    """
    effects: dict[str, dict[str, Any]] = {}
    chains = {}
    items = [d.item for d in done if d.skipped is None][:AXIS_SAMPLES]
    for axis in axes:
        try:
            if axis in GRAPH_AXES:
                graphs = (stack.profile.spec.graph for stack in (train, deploy))
                changed, words = graph_difference(card, source, axis, *graphs)
                effects[axis] = {"null": changed == 0, "why": words}
            elif is_of_front_end(axis, train.profile):
                mixed, choices = swap(train.profile, deploy.profile, [axis])
                chains[axis] = preprocessing(mixed, choices, card)
            elif axis in POST_AXES:
                mixed, _ = swap(train.profile, deploy.profile, [axis])
                effects[axis] = _answers(train, mixed, card, items, workers)
        except UserError as error:
            effects[axis] = {"null": False, "why": f"cannot be swapped alone: {error}"}
    if not chains:
        return {axis: effects[axis] for axis in axes if axis in effects}
    base = preprocessing(train.profile, train.choices, card)
    levels = deviations(train.profile, card)
    for axis, chain in chains.items():
        both = plan([base, chain])
        with ThreadPoolExecutor(workers) as pool:
            found = list(pool.map(partial(ends, both), items))
        effects[axis] = _effect([pair for pair in found if pair is not None], levels)
    return {axis: effects[axis] for axis in axes if axis in effects}


def _answers(
    train: Stack, mixed: Profile, card: Card, items: Sequence[Item], workers: int
) -> dict[str, Any]:
    """What another postprocessing makes of the same outputs of the training stack."""
    other, own = answering(mixed, card), train.steps[-1]
    if other.identity == own.identity:
        return {"null": True, "why": f"null: no part of this model's {card.task.name}"}
    both = plan([train.steps, [*train.steps[:-1], other]], card.task.records)
    ran = [d.outcomes for d in execute(both, items, workers) if not d.skipped]
    after = [outcome.record for _, outcome in ran]
    changed, units = (sum(record[name] for record in after) for name in ("changed", "units"))
    differ = sum(a.record != b.record for a, b in ran)
    words = (
        f"answers differ in {differ} of {len(ran)} images; {changed:,} of {units:,} "
        f"{card.task.unit}s changed"
    )
    return {"null": not differ, "why": words}


def _effect(pairs: Sequence[Sequence[Array]], scale: Array) -> dict[str, Any]:
    if not pairs:
        return {"null": False, "why": "no image could go through this axis alone"}
    shares, means, peaks = zip(*(difference(a, b, scale) for a, b in pairs), strict=True)
    return {
        "samples": len(pairs),
        "changed": sum(peak > 0 for peak in peaks),
        "values_changed": float(np.mean(shares)),
        "mean": float(np.mean(means)),
        "max": float(max(peaks)),
        "null": max(peaks) == 0,
    }


def difference(a: Array, b: Array, scale: Array) -> tuple[float, float, float]:
    """Compare two inputs of a network: the share of values that differ, mean and max in levels.

    Args:
        a: the input of one stack.
        b: that of the other, of the same shape.
        scale: levels of 0-255 for one of their units.
    """
    levels = np.abs(a - b) * scale
    return float(np.mean(levels > 0)), float(levels.mean()), float(levels.max())
