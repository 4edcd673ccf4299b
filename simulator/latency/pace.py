"""Policies that decide how many rounds are measured."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Protocol

from simulator.latency.stopping import Rule, Stopping
from simulator.latency.times import Times


class RoundPolicy(Protocol):
    """Decides after every round whether another one is measured.

    Attributes:
        max_rounds: the largest number of rounds.
        progress: what a progress bar shows after the number of the round.
    """

    max_rounds: int
    progress: str

    def enough(self, times: Sequence[Times]) -> bool:
        """Return whether the rounds so far are enough.

        Args:
            times: of every measured stack; empty before the first round.
        """


class FixedRounds:
    """Measures a fixed number of rounds.

    Args:
        rounds: at least 1.
    """

    def __init__(self, rounds: int) -> None:
        self.max_rounds, self.progress = rounds, f" of {rounds}"

    def enough(self, times: Sequence[Times]) -> bool:
        """Return whether that number of rounds was measured."""
        return bool(times) and times[0].rounds >= self.max_rounds


class UntilSettled:
    """Measures until every sample's latency distribution has settled, or a limit is reached.

    Args:
        rule: of Algorithm 1; see :class:`simulator.latency.stopping.Stopping`.
        max_rounds: the largest number of rounds.
        seconds: no round begins later than this.
        samples: how many there are.
    """

    def __init__(self, rule: Rule, max_rounds: int, seconds: float, samples: int) -> None:
        self.max_rounds, self.progress = max_rounds, f" of at most {max_rounds}"
        self._rule, self._samples = rule, samples
        self._deadline = time.monotonic() + seconds
        self._stopping: list[Stopping] = []

    def enough(self, times: Sequence[Times]) -> bool:
        """Return whether all stacks have settled, or the rounds or the time are used up."""
        if not times:
            return False
        self._stopping = self._stopping or [Stopping(self._rule, self._samples) for _ in times]
        settled = [one.add(own.finite()) for one, own in zip(self._stopping, times, strict=True)]
        least = min(int((one.settled > 0).sum()) for one in self._stopping)
        self.progress = f" of at most {self.max_rounds}, {least} of {self._samples} settled"
        used_up = times[0].rounds >= self.max_rounds or time.monotonic() > self._deadline
        return all(settled) or used_up
