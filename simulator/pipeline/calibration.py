"""Calibration inputs for INT8 quantizers: samples taken through a stack's front end."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from simulator.contract import Array
from simulator.contract.recipe import Chain
from simulator.data.folder import Dataset, Files, Item, load_unlabelled, subset
from simulator.errors import DataError, SampleError
from simulator.machine import sha256
from simulator.modalities.modality import Modality
from simulator.model.artifact import Feeds
from simulator.pipeline.executor import LocalExecutor
from simulator.pipeline.plan import Arm, plan
from simulator.pipeline.runtimes import RuntimePool
from simulator.profile.precision import Calibration


def calibration(
    wanted: Calibration,
    through: Chain,
    modality: Modality,
    only_input: str,
    dataset: Dataset,
    seed: int,
) -> tuple[Feeds, list[str]]:
    """Return the calibration inputs of a quantizer, and what the person should know of them.

    Args:
        wanted: what the profile says.
        through: the steps up to the network's input of the stack that it names.
        modality: of the samples.
        only_input: the name of the network's input, where it has one.
        dataset: the evaluated samples.
        seed: draws the calibration samples.
    """
    shared = wanted.source == "data"
    images = dataset if shared else load_unlabelled(Path(wanted.source), Files.of(modality))
    chosen = subset(images, wanted.samples, seed).items
    warnings = []
    if len(chosen) < wanted.samples:
        warnings.append(
            f"INT8 is calibrated on {len(chosen)} images; the profile asks for "
            f"{wanted.samples}; calibration.source: FOLDER names others"
        )
    if shared:
        warnings.append("INT8 is calibrated on images that are also evaluated")
    elif {item.path.resolve() for item in chosen} & {item.path.resolve() for item in dataset.items}:
        warnings.append("INT8 is calibrated on images some of which are also evaluated")
    identity = [
        [sha256(item.path) for item in chosen],
        [recipe.identity() for recipe in through.recipes],
    ]
    return Feeds(identity, lambda: _tensors(through, modality, only_input, chosen)), warnings


def _tensors(
    through: Chain, modality: Modality, only_input: str, items: Sequence[Item]
) -> Iterator[Mapping[str, Array]]:
    """Take samples through the front end; those that cannot go through are left out."""
    made = 0
    with RuntimePool() as runtimes:
        executor = LocalExecutor(modality, runtimes, workers=1)
        opened = executor.open(plan({Arm("calibration"): through}))
        for item in items:
            try:
                (value,) = opened.walk(executor.context(item)).answers()
            except SampleError:
                continue
            made += 1
            yield from _feeds(value, only_input)
    if not made:
        raise DataError("INT8 calibration: no calibration image got through the stack")


def _feeds(value: Any, only_input: str) -> Iterator[Mapping[str, Array]]:
    """The inputs of every inference that a sample needs."""
    for one in value if isinstance(value, tuple) else (value,):
        yield {only_input: one} if isinstance(one, np.ndarray) else one
