"""Honesty controls: a stack against itself, and every axis alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from simulator.contract import Array
from simulator.data.folder import Item
from simulator.errors import UserError
from simulator.execute import Done, run_sample, tensors
from simulator.model.artifact import pooling_change
from simulator.model.card import Card
from simulator.model.onnxfile import OnnxFile
from simulator.plan import Plan, plan, preprocessing
from simulator.profile.axes import PIXEL_AXES, swap
from simulator.profile.load import Profile
from simulator.stack import Stack

SELF_SAMPLES = 4
AXIS_SAMPLES = 8


def self_check(whole: Plan, done: Sequence[Done]) -> dict[str, Any]:
    """Run a few samples a second time: a side against itself must give the same bits.

    Returns:
        ``samples``, ``flips`` and ``bit_equal`` over both sides.
    """
    chosen = [d for d in done if d.skipped is None][:SELF_SAMPLES]
    flips, equal = 0, True
    for first in chosen:
        again = run_sample(whole, first.item)
        pairs = list(zip(first.outcomes, again.outcomes, strict=True))
        flips += sum(a.answer.prediction != b.answer.prediction for a, b in pairs)
        equal = equal and all(a.digest == b.digest for a, b in pairs)
    return {"samples": len(chosen), "flips": flips, "bit_equal": equal}


def axis_effects(
    axes: Sequence[str],
    train: Stack,
    deploy: Stack,
    card: Card,
    source: OnnxFile,
    items: Sequence[Item],
) -> dict[str, dict[str, Any]]:
    """Swap each pixel axis alone into the training stack and compare the input tensors.

    Args:
        axes: the axes that differ.
        train: the training stack.
        deploy: the deployment stack.
        card: the model card.
        source: the model.
        items: the samples; the first few that decode are used.

    Returns:
        Per axis: ``samples`` compared, ``changed`` of them, ``values_changed`` as a share,
        ``mean`` and ``max`` absolute difference in levels of 0-255, ``null`` true when
        nothing changed, or ``why`` it was not measured.
    """
    effects: dict[str, dict[str, Any]] = {}
    for axis in axes:
        if axis in PIXEL_AXES:
            effects[axis] = _pixels(axis, train.profile, deploy.profile, train, card, items)
        elif axis == "pooling":
            change = pooling_change(source, deploy.profile.spec.graph.ceil_mode)
            effects[axis] = {"null": change.effective == 0, "why": str(change)}
    return effects


def _pixels(
    axis: str, base: Profile, other: Profile, train: Stack, card: Card, items: Sequence[Item]
) -> dict[str, Any]:
    try:
        mixed, choices = swap(base, other, [axis])
        both = plan([preprocessing(base, train.choices, card), preprocessing(mixed, choices, card)])
    except UserError as error:
        return {"null": False, "why": f"cannot be swapped alone: {error}"}
    scale = np.float32(255 / card.spec.input.top * np.mean(card.spec.input.std))
    differences = []
    for item in items:
        pair = tensors(both, item)
        if pair is not None:
            differences.append(_difference(pair[0], pair[1], scale))
        if len(differences) == AXIS_SAMPLES:
            break
    if not differences:
        return {"null": False, "why": "no image could go through this axis alone"}
    shares, means, peaks = zip(*differences, strict=True)
    return {
        "samples": len(differences),
        "changed": sum(peak > 0 for peak in peaks),
        "values_changed": float(np.mean(shares)),
        "mean": float(np.mean(means)),
        "max": float(max(peaks)),
        "null": max(peaks) == 0,
    }


def _difference(a: Array, b: Array, scale: np.float32) -> tuple[float, float, float]:
    levels = np.abs(a - b) * scale
    return float(np.mean(levels > 0)), float(levels.mean()), float(levels.max())
