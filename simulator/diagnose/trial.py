"""Runs chains beside the plan of a diagnosis, on its first samples, and compares their values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from pydantic import JsonValue

from simulator.contract.recipe import Chain
from simulator.data.folder import Item
from simulator.diagnose.gap import Apart
from simulator.experiments.session import Session
from simulator.pipeline.plan import plan
from simulator.pipeline.stack import ResolvedProfile
from simulator.profile.implementations import choose
from simulator.profile.modality import schema_of
from simulator.profile.profile import Profile
from simulator.tasks.score import Record


def values_of(
    session: Session, chains: Mapping[str, Chain], items: Sequence[Item]
) -> dict[str, list[Any]]:
    """Return what each chain gives for every sample: an input, outputs, or a prediction.

    Raises:
        SampleError: a chain fails on a sample.
    """
    asides = {name: session.disturbed(chain) for name, chain in chains.items()}
    walked = session.executor.walks(plan({}, asides=asides))
    found: dict[str, list[Any]] = {name: [] for name in chains}
    for item in items:
        walk = walked(item)
        for name in chains:
            value = walk.aside(name)
            value = getattr(value, "outputs", value)
            found[name].append(getattr(value, "prediction", value))
    return found


def records_of(session: Session, item: Item, predictions: Sequence[Any]) -> list[Record]:
    """Return the records of predictions for one sample, compared with the first."""
    context = session.executor.context(item)
    return [*session.card.task.records(predictions, context.truth, context.source)]


def apart(train: Sequence[Any], deploy: Sequence[Any], rounding: float) -> Apart:
    """Return how far values are apart, sample by sample."""
    found = Apart(rounding)
    for one, two in zip(train, deploy, strict=True):
        found.add(one, two, np.ones(1))
    return found


def changed(stack: ResolvedProfile, change: Mapping[str, JsonValue]) -> ResolvedProfile:
    """Return a stack with other values in its profile.

    Args:
        stack: as it was.
        change: by dotted key; None: the field is left out.

    Raises:
        ProfileError: there is no such stack, or it does not run here.
    """
    profile = stack[0]
    values: dict[str, Any] = profile.spec.model_dump(by_alias=True, exclude_none=True)
    for key, value in change.items():
        *outer, last = key.split(".")
        inside = values
        for name in outer:
            inside = inside.setdefault(name, {})
        if value is None:
            inside.pop(last, None)
        else:
            inside[last] = value
    spec = schema_of(profile.spec.modality).model_validate(values)
    mixed = Profile(f"{profile.name}+changes", spec, profile.origins, profile.overrides)
    return mixed, choose(mixed)
