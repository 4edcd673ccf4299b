"""The latencies of a stack: nanoseconds of every sample in every round, measured or recorded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from simulator.contract.stage import timed_steps
from simulator.latency.single_stream import Round
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
    """

    total: Ints
    stages: Mapping[str, Ints]
    source: str = ""

    @property
    def rounds(self) -> int:
        """R, the number of rounds."""
        return len(self.total)

    @property
    def measured(self) -> bool:
        """Whether the rounds were measured here, and not recorded on a device."""
        return not self.source

    @property
    def failed(self) -> int:
        """How many inferences failed."""
        return int(np.count_nonzero(self.total == NEVER))

    def answered(self, stage: str = TOTAL) -> Ints:
        """Return (m,) the nanoseconds of all inferences that did not fail, in all rounds."""
        values = self.total if stage == TOTAL else self.stages[stage]
        answered: Ints = values[self.total != NEVER]
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
        return Times(self.total[part], stages, self.source)


def of_rounds(rounds: Sequence[Round], stacks: int) -> list[Times]:
    """Return the times of each stack from measured rounds.

    Args:
        rounds: those so far.
        stacks: how many stacks are measured.

    Returns:
        Nothing before the first round.
    """
    which = range(stacks) if rounds else ()
    return [of_stages(np.stack([one.ns[stack] for one in rounds])) for stack in which]


def of_stages(ns: Ints, source: str = "") -> Times:
    """Return the times of one stack, from (R, n, stages) nanoseconds or :data:`ABSENT`."""
    there = ns != ABSENT
    total = np.where(there.any(axis=2), np.where(there, ns, 0).sum(axis=2), NEVER)
    has = there.any(axis=(0, 1))
    stages = {stage: ns[..., at] for at, stage in enumerate(timed_steps()) if has[at]}
    return Times(total, stages, source)
