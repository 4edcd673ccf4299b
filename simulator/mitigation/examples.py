"""Examples that are made anew for each epoch: mixed, mirrored and shifted."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from simulator.contract import Array
from simulator.contract.recipe import generator
from simulator.errors import SampleError
from simulator.experiments.tuning_data import EPOCH, Examples
from simulator.mitigation.augment import Augmentation
from simulator.mitigation.preprocessing import MixedPreprocessing


@dataclass(frozen=True, slots=True)
class DrawnExamples(Examples):
    """Preprocessed by the training stack, to be measured; an epoch learns from what it draws.

    Attributes:
        home: the folder of the epoch's inputs.
        mixed: draws the stacks; None takes the training stack's inputs.
        batch: how many images, one after the other, share a draw; None draws for each image.
        augmentation: of what is learned from.
        seed: of the augmentation.
        rows: the axis of rows of one input.
        threads: that decode and resize at once.
        advance: called with the number of samples done and their total.
    """

    home: Path
    mixed: MixedPreprocessing | None
    batch: int | None
    augmentation: Augmentation
    seed: int
    rows: int
    threads: int
    advance: Callable[[int, int], None]

    def of(self, epoch: int, rows: Array) -> tuple[Array, int]:
        """Return what an epoch learns from; the training stack's input where a drawn one fails."""
        if self.mixed is None and not self.augmentation:
            return self.inputs, 0
        whole = np.lib.format.open_memmap(self.home / EPOCH, "w+", np.float32, self.inputs.shape)
        if self.mixed is not None:
            self.mixed.opened()

        def one(place: int) -> bool:
            row = int(rows[place])
            value, failed = self._drawn(row, epoch, place)
            random = generator("augment", self.seed, epoch, self.items[row].name)
            whole[row] = self.augmentation.apply(value, self.rows, random)
            return failed

        failures = 0
        with ThreadPoolExecutor(self.threads, thread_name_prefix="example") as pool:
            for number, failed in enumerate(pool.map(one, range(len(rows)))):
                failures += failed
                self.advance(number + 1, len(rows))
        return whole, failures

    def _drawn(self, row: int, epoch: int, place: int) -> tuple[Array, bool]:
        if self.mixed is None:
            return self.inputs[row], False
        step = None if self.batch is None else place // self.batch
        try:
            return self.mixed(self.items[row].path, epoch, step), False
        except SampleError:
            return self.inputs[row], True
