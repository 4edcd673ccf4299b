"""When enough rounds have been measured."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Protocol

from simulator.latency.stopping import Rule, Stopping
from simulator.latency.times import Times


class Pace(Protocol):
    """Says when to stop.

    Attributes:
        most: rounds that there may be.
        words: what a progress bar says behind the number of the round.
    """

    most: int
    words: str

    def enough(self, times: Sequence[Times]) -> bool:
        """Return whether the rounds so far are enough; *times* has every measured stack's."""


class Fixed:
    """A number of rounds.

    Args:
        rounds: at least 1.
    """

    def __init__(self, rounds: int) -> None:
        self.most, self.words = rounds, f" of {rounds}"

    def enough(self, times: Sequence[Times]) -> bool:
        """Return whether so many rounds are there."""
        return bool(times) and times[0].rounds >= self.most


class Settling:
    """Rounds until every instance's distribution stands still, up to a number or a time.

    Args:
        rule: of Algorithm 1; see :class:`simulator.latency.stopping.Stopping`.
        most: rounds.
        seconds: after which no further round is begun.
        instances: of each stack.
    """

    def __init__(self, rule: Rule, most: int, seconds: float, instances: int) -> None:
        self.most, self.words = most, f" of at most {most}"
        self._rule, self._instances = rule, instances
        self._until = time.monotonic() + seconds
        self._stopping: list[Stopping] = []

    def enough(self, times: Sequence[Times]) -> bool:
        """Return whether all stacks have settled, or the rounds or the time are used up."""
        if not times:
            return False
        self._stopping = self._stopping or [Stopping(self._rule, self._instances) for _ in times]
        settled = [one.add(own.finite()) for one, own in zip(self._stopping, times, strict=True)]
        least = min(int((one.settled > 0).sum()) for one in self._stopping)
        self.words = f" of at most {self.most}, {least} of {self._instances} instances settled"
        return all(settled) or times[0].rounds >= self.most or time.monotonic() > self._until
