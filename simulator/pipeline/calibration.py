"""Calibration inputs for quantizers: samples after a stack's preprocessing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from simulator.contract import Array
from simulator.contract.recipe import Chain
from simulator.data.folder import Dataset, Files, Item, load_unlabelled, subset
from simulator.digests import sha256
from simulator.errors import DataError, SampleError
from simulator.modalities.modality import Modality
from simulator.model.artifact import Feeds
from simulator.pipeline.executor import LocalExecutor
from simulator.pipeline.plan import Arm, plan
from simulator.pipeline.runtimes import RuntimePool
from simulator.profile.precision import Calibration


def calibration(
    gives: str,
    wanted: Calibration,
    through: Chain,
    modality: Modality,
    only_input: str,
    dataset: Dataset,
    seed: int,
    runtimes: RuntimePool,
) -> tuple[Feeds, list[str]]:
    """Return the calibration inputs of a quantizer, and warnings about them.

    Args:
        gives: what the quantizer makes, in messages.
        wanted: the section ``calibration`` of the profile.
        through: the preprocessing steps of the stack that *wanted* names.
        modality: of the samples.
        only_input: the name of the network's first input; an array from *through* is fed to it.
        dataset: the evaluated samples.
        seed: of the random choice of calibration samples.
        runtimes: of the session.

    Raises:
        DataError: the calibration folder cannot be read.
    """
    shared = wanted.source == "data"
    images = dataset if shared else load_unlabelled(Path(wanted.source), Files.of(modality))
    chosen = subset(images, wanted.samples, seed).items
    warnings = []
    if len(chosen) < wanted.samples:
        warnings.append(
            f"{gives} is calibrated on {len(chosen)} images; the profile asks for "
            f"{wanted.samples}; set calibration.source to a folder with more images"
        )
    if shared:
        warnings.append(f"{gives} is calibrated on images that are also evaluated")
    elif {item.path.resolve() for item in chosen} & {item.path.resolve() for item in dataset.items}:
        warnings.append(f"some of the images that {gives} is calibrated on are also evaluated")
    identity = [
        [sha256(item.path) for item in chosen],
        [recipe.identity() for recipe in through.recipes],
    ]
    return Feeds(
        identity, lambda: _tensors(through, modality, only_input, chosen, runtimes)
    ), warnings


def _tensors(
    through: Chain,
    modality: Modality,
    only_input: str,
    items: Sequence[Item],
    runtimes: RuntimePool,
) -> Iterator[Mapping[str, Array]]:
    """Preprocess samples and yield the network's inputs; samples that fail are left out."""
    made = 0
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
        raise DataError("calibration: the stack could not preprocess any calibration image")


def _feeds(value: Any, only_input: str) -> Iterator[Mapping[str, Array]]:
    """The inputs of every inference that a sample needs."""
    for one in value if isinstance(value, tuple) else (value,):
        yield {only_input: one} if isinstance(one, np.ndarray) else one
