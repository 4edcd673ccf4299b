"""The latencies of a stack: nanoseconds of every sample in every round, measured or recorded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simulator.contract.stage import timed_steps
from simulator.latency.stream import Round
from simulator.results.times import ABSENT, Ints

NEVER = int(np.iinfo(np.int64).max)
"""Stands for the nanoseconds of a failed inference, which is late for every deadline."""
TOTAL = "total"


@dataclass(frozen=True, slots=True, eq=False)
class Times:
    """The latencies of one stack in R rounds over n samples.

    Attributes:
        total: (R, n) int64 nanoseconds; :data:`NEVER` where the inference failed.
        stages: (R, n) int64 nanoseconds of each stage that the stack has; :data:`ABSENT` where
            the inference failed.
        source: the device's log; empty where the rounds were measured here.
        together: how many samples in a row have one latency, that of their query or batch.
    """

    total: Ints
    stages: Mapping[str, Ints]
    source: str = ""
    together: int = 1

    @property
    def rounds(self) -> int:
        """R, the number of rounds."""
        return len(self.total)

    @property
    def inferences(self) -> int:
        """How many latencies a round has: one for all samples that are answered together."""
        return len(self._starts)

    @property
    def _starts(self) -> Ints:
        return np.arange(0, self.total.shape[1], self.together)

    @property
    def measured(self) -> bool:
        """Whether the rounds were measured here, and not recorded on a device."""
        return not self.source

    @property
    def failed(self) -> int:
        """How many inferences failed."""
        return int(np.count_nonzero(self.total == NEVER))

    def of_queries(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return the sums of (n,) values of samples over those that are answered together."""
        return np.add.reduceat(values, self._starts)

    def latencies(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return one of (n,) latencies for all samples that are answered together."""
        return np.fmin.reduceat(values, self._starts)

    def answered(self, stage: str = TOTAL) -> Ints:
        """Return (m,) the nanoseconds of all inferences that did not fail, in all rounds.

        Samples that are answered together count once.
        """
        total, values = self.total, self.total if stage == TOTAL else self.stages[stage]
        if self.together > 1:
            total = np.minimum.reduceat(total, self._starts, axis=1)
            any_of = np.minimum if stage == TOTAL else np.maximum
            values = any_of.reduceat(values, self._starts, axis=1)
        answered: Ints = values[total != NEVER]
        return answered

    def finite(self) -> Ints:
        """Return (R, n) the total; a failed inference gets the longest latency so far."""
        never = self.total == NEVER
        longest = np.where(never, 0, self.total).max(axis=1, keepdims=True)
        return np.where(never, np.maximum.accumulate(longest), self.total)

    def late(self, deadline: float) -> NDArray[np.bool_]:
        """Return (R, n) whether an inference took more than *deadline* nanoseconds, or failed."""
        return self.total > deadline

    def split(self, at: int, length: int) -> Times:
        """Return *length* rounds, beginning with round *at*."""
        part = slice(at, at + length)
        stages = {name: values[part] for name, values in self.stages.items()}
        return replace(self, total=self.total[part], stages=stages)


def of_rounds(rounds: Sequence[Round], together: Sequence[int]) -> list[Times]:
    """Return the times of each stack from measured rounds.

    Args:
        rounds: those so far.
        together: of each stack that is measured, see :class:`Times`.

    Returns:
        Nothing before the first round.
    """
    return [
        replace(of_stages(np.stack([one.ns[stack] for one in rounds])), together=size)
        for stack, size in enumerate(together if rounds else ())
    ]


def of_stages(ns: Ints, source: str = "") -> Times:
    """Return the times of one stack, from (R, n, stages) nanoseconds or :data:`ABSENT`."""
    there = ns != ABSENT
    total = np.where(there.any(axis=2), np.where(there, ns, 0).sum(axis=2), NEVER)
    has = there.any(axis=(0, 1))
    stages = {stage: ns[..., at] for at, stage in enumerate(timed_steps()) if has[at]}
    return Times(total, stages, source)
