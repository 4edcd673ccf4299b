"""What stacks took: nanoseconds of every sample in every round, measured here or recorded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from simulator.contract.stage import timed_steps
from simulator.latency.single_stream import Round
from simulator.results.times import ABSENT, Ints

NEVER = int(np.iinfo(np.int64).max)
"""Nanoseconds of a sample that failed: no answer came, so it is late for every deadline."""
TOTAL = "total"


@dataclass(frozen=True, slots=True, eq=False)
class Times:
    """What one stack took: R rounds over n samples.

    Attributes:
        total: (R, n) int64 nanoseconds; :data:`NEVER` where a sample failed.
        stages: of each stage that it has, (R, n) int64; :data:`ABSENT` where a sample failed.
        source: where a device's log came from; empty where the rounds were measured here.
    """

    total: Ints
    stages: Mapping[str, Ints]
    source: str = ""

    @property
    def rounds(self) -> int:
        """R."""
        return len(self.total)

    @property
    def measured(self) -> bool:
        """Whether the rounds were measured here, and not recorded on a device."""
        return not self.source

    @property
    def failed(self) -> int:
        """How many answers never came."""
        return int(np.count_nonzero(self.total == NEVER))

    def answered(self, stage: str = TOTAL) -> Ints:
        """Return the nanoseconds of all answers that came, of all rounds, (m,)."""
        values = self.total if stage == TOTAL else self.stages[stage]
        came: Ints = values[self.total != NEVER]
        return came

    def finite(self) -> Ints:
        """Return the total; the longest answer until then stands in for one that never came."""
        never = self.total == NEVER
        longest = np.where(never, 0, self.total).max(axis=1, keepdims=True)
        return np.where(never, np.maximum.accumulate(longest), self.total)

    def late(self, deadline: float) -> NDArray[np.bool_]:
        """Return (R, n) whether an answer came later than *deadline* nanoseconds, or never."""
        return self.total > deadline

    def split(self, at: int, length: int) -> Times:
        """Return *length* rounds from round *at* on."""
        part = slice(at, at + length)
        stages = {name: values[part] for name, values in self.stages.items()}
        return Times(self.total[part], stages, self.source)


def of_rounds(rounds: Sequence[Round], stacks: int) -> list[Times]:
    """Put measured rounds together, stack by stack; there are none where nothing is measured."""
    return [of_stages(np.stack([one.ns[which] for one in rounds])) for which in range(stacks)]


def of_stages(ns: Ints, source: str = "") -> Times:
    """Return the times of one stack, from (R, n, stages) nanoseconds or :data:`ABSENT`."""
    there = ns != ABSENT
    total = np.where(there.any(axis=2), np.where(there, ns, 0).sum(axis=2), NEVER)
    has = there.any(axis=(0, 1))
    stages = {stage: ns[..., at] for at, stage in enumerate(timed_steps()) if has[at]}
    return Times(total, stages, source)
