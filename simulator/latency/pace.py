"""Decides after every round whether another one is measured."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence

from simulator.latency.stopping import Rule, Stopping
from simulator.latency.times import Times


class Pace:
    """Measures so many rounds, or fewer where every sample's latency distribution has settled.

    Args:
        rounds: the largest number of rounds, at least 1.
        rule: of Algorithm 1, see :class:`simulator.latency.stopping.Stopping`; None: exactly so
            many rounds are measured.
        seconds: no round begins later than this.

    Attributes:
        rounds: as given.
        progress: what a progress bar shows after the number of the round.
    """

    def __init__(self, rounds: int, rule: Rule | None = None, seconds: float = math.inf) -> None:
        self.rounds, self._rule = rounds, rule
        self.progress = f" of {'at most ' if rule else ''}{rounds}"
        self._deadline = time.monotonic() + seconds
        self._stopping: list[Stopping] = []

    def enough(self, times: Sequence[Times]) -> bool:
        """Return whether the rounds so far are enough.

        Args:
            times: of every measured stack; empty before the first round.
        """
        if not times:
            return False
        used_up = times[0].rounds >= self.rounds or time.monotonic() > self._deadline
        if self._rule is None:
            return used_up
        samples = times[0].total.shape[1]
        self._stopping = self._stopping or [Stopping(self._rule, samples) for _ in times]
        settled = [one.add(own.finite()) for one, own in zip(self._stopping, times, strict=True)]
        least = min(int((one.settled > 0).sum()) for one in self._stopping)
        self.progress = f" of at most {self.rounds}, {least} of {samples} settled"
        return all(settled) or used_up
