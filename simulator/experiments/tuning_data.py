"""The examples that a network is fine-tuned on: preprocessed once, kept in the output folder."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from simulator.contract import Array
from simulator.contract.recipe import Chain, generator
from simulator.data.folder import Item
from simulator.errors import DataError, ModelError, SampleError
from simulator.files import make_durable
from simulator.modalities.modality import Modality
from simulator.pipeline.local import LocalExecutor
from simulator.pipeline.plan import Arm, plan
from simulator.pipeline.runtimes import RuntimePool

Label = Callable[[Item, Any], int]
"""From a sample and its source to its class; raises SampleError."""
INPUTS, LABELS, EPOCH = "inputs.npy", "labels.npy", "epoch.npy"


@dataclass(frozen=True, slots=True)
class Examples:
    """Preprocessed samples with their classes, which are 0 where there are none.

    Attributes:
        inputs: (N, ...) float32, read from the disk as needed.
        labels: (N,) int64.
        items: the N samples.
    """

    inputs: Array
    labels: Array
    items: tuple[Item, ...]

    def of(self, epoch: int, rows: Array) -> tuple[Array, int]:
        """Return what an epoch learns from, (N, ...) float32, and how often it had to be replaced.

        Args:
            epoch: from 0.
            rows: those that are learned from, in this order; the others may hold anything.
        """
        return self.inputs, 0

    def split(self, held_out: float, seed: int) -> tuple[Array, Array]:
        """Return the indices of the examples to learn from and of those held out, at random.

        Raises:
            DataError: either would be empty.
        """
        order = generator("held out", seed).permutation(len(self.labels))
        count = round(held_out * len(order))
        if not 0 < count < len(order):
            raise DataError(
                f"{len(order)} samples cannot be divided with a share of {held_out} held out"
            )
        return np.sort(order[count:]), np.sort(order[:count])


def prepared(
    folder: Path,
    chain: Chain,
    modality: Modality,
    items: Sequence[Item],
    label: Label,
    advance: Callable[[int, int], None],
) -> Examples:
    """Send samples through a stack's preprocessing, or find those of an interrupted run.

    Args:
        folder: where they are kept.
        chain: the preprocessing.
        modality: of the samples.
        items: the samples.
        label: returns a sample's class, or refuses its truth.
        advance: called with the number of samples done and their total.

    Raises:
        ModelError: the network takes more than one input of one size.
        DataError: no sample could be read.
    """
    if not (folder / INPUTS).exists():
        draft = folder / f".{INPUTS}.part"
        whole: Array | None = None
        kept: list[tuple[int, int]] = []
        for number, value, own in _preprocessed(chain, modality, items, label):
            if whole is None:
                shape = (len(items), *value.shape[1:])
                whole = np.lib.format.open_memmap(draft, "w+", np.float32, shape)
            if value.shape[1:] != whole.shape[1:]:
                raise ModelError("fine-tuning takes networks whose input has one size")
            whole[len(kept)] = value[0]
            kept.append((number, own))
            advance(number + 1, len(items))
        if whole is None:
            raise DataError("no sample could be preprocessed")
        whole.flush()  # type: ignore[attr-defined]
        np.save(folder / LABELS, np.array(kept, np.int64).T)
        make_durable(folder / LABELS)
        os.replace(draft, folder / INPUTS)
        make_durable(folder)
    numbers, labels = np.load(folder / LABELS)
    inputs = np.load(folder / INPUTS, mmap_mode="r")[: len(labels)]
    return Examples(inputs, labels, tuple(items[number] for number in numbers))


def _preprocessed(
    chain: Chain, modality: Modality, items: Sequence[Item], label: Label
) -> Iterator[tuple[int, Array, int]]:
    """Yield the number of each sample that can be used, its input and its class."""
    with RuntimePool() as runtimes:
        executor = LocalExecutor(modality, runtimes, workers=1)
        opened = executor.open(plan({Arm("train"): chain}))
        for number, item in enumerate(items):
            try:
                context = executor.context(item)
                (value,) = opened.walk(context).answers()
                own = label(item, context.source)
            except SampleError:
                continue
            if not isinstance(value, np.ndarray) or value.dtype != np.float32 or len(value) != 1:
                raise ModelError("fine-tuning takes networks with one float32 input")
            yield number, value, own
