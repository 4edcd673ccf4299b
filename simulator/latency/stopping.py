"""How many rounds are measured; Algorithm 1: until every instance's latency density is stable."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from simulator.latency.times import Times
from simulator.statistics.density import RESOLUTION_NS, Fit, Floats, divergence, fit


@dataclass(frozen=True, slots=True)
class Rule:
    """When to fit, and when fits agree; the defaults are the paper's.

    Attributes:
        first: rounds before the first fit, at least 2.
        every: rounds from a fit to the next, at least 1.
        window: how many earlier fits a new one is compared with, at least 1.
        delta: the root Jensen-Shannon divergence in base 2 below which two fits agree, above 0
            and at most 1.
    """

    first: int = 30
    every: int = 5
    window: int = 5
    delta: float = 0.2

    def fits_at(self, rounds: int) -> bool:
        """Return whether a fit is due after this number of rounds."""
        return rounds >= self.first and (rounds - self.first) % self.every == 0


class Stopping:
    """Decides after every round whether every instance's density is stable.

    After ``first`` rounds, and then after every ``every`` rounds, each instance's density is fitted
    to all of its times. An instance is done when its new fit is within ``delta`` of each of the
    last ``window`` fits; it stays done. The state depends only on the times, so that a run is
    resumed by passing its recorded rounds.

    The rule is weak: of instances whose times are drawn from one normal distribution, more than
    98 % are done as early as possible, after 55 rounds. Only outliers delay it, as each widens the
    kernels of its instance. It says that a density no longer changes, not that its tail is known:
    55 times are too few for a p99 (which needs 662), so percentiles are computed for all instances
    together, never for one.

    It is Algorithm 1 of the source as its text describes it. The printed algorithm differs:

    * ``r ← r + l`` must be r + 1;
    * ``j`` in line 14 is outdated there and must be the round;
    * the window is over fits, not over rounds;
    * ``fit ← True`` is inside the loop over k, so that one fit that agrees would be enough;
    * the 1/(nh) of equation 4 must be 1/(rh): a density has r kernels, n counts instances;
    * Evaluate needs y, the labels.

    The source has no lower limit of the bandwidth; without one, constant times have no density.

    Args:
        rule: when to fit, and when fits agree.
        instances: how many there are, at least 1.
        floor: the least bandwidth in ns.

    Attributes:
        settled: (n,) the round after which each instance was done, 0 while it is not.
        fits: how many fits were made.

    Raises:
        ValueError: there are no instances.

    Source:
        Z. Yang et al., Quality at the Tail of Machine Learning Inference, arXiv 2212.13925.
    """

    def __init__(self, rule: Rule, instances: int, floor: float = RESOLUTION_NS) -> None:
        if instances < 1:
            raise ValueError(f"there must be an instance; got {instances}")
        self.settled: NDArray[np.int64] = np.zeros(instances, dtype=np.int64)
        self.fits = 0
        self._rule = rule
        self._floor = floor
        self._rounds = 0
        # A fit, stored as the number of its rounds and its bandwidths.
        self._window: deque[tuple[int, Floats]] = deque(maxlen=rule.window)

    @property
    def done(self) -> bool:
        """Whether every instance is done."""
        return bool(self.settled.all())

    def add(self, times: ArrayLike) -> bool:
        """Process the rounds that were added since the last call.

        Args:
            times: (R, n) all rounds so far in ns, beginning with those of the last call.

        Returns:
            Whether every instance is done; from then on no fits are made.

        Raises:
            ValueError: the times are not a finite table of these instances, or rounds are missing.
        """
        table = np.asarray(times)
        if table.ndim != 2 or table.shape[1] != len(self.settled) or len(table) < self._rounds:
            raise ValueError(
                f"times must be (at least {self._rounds}, {len(self.settled)}); got {table.shape}"
            )
        for rounds in range(self._rounds + 1, len(table) + 1):
            if self._rule.fits_at(rounds) and not self.done:
                self._refit(table[:rounds])
        self._rounds = len(table)
        return self.done

    def _refit(self, times: NDArray[np.generic]) -> None:
        new = fit(times, self._floor)
        rounds = len(new.times)
        if len(self._window) == self._rule.window:
            self.settled[self._agreeing(new)] = rounds
        self._window.append((rounds, new.bandwidth))
        self.fits += 1

    def _agreeing(self, new: Fit) -> NDArray[np.intp]:
        """Return the instances, of those not yet done, whose new fit agrees with the window."""
        left = np.flatnonzero(self.settled == 0)
        # The oldest fit differs most; instances that disagree with it need no further comparison.
        for rounds, bandwidth in self._window:
            old = Fit(new.times[:rounds], bandwidth).only(left)
            left = left[divergence(new.only(left), old) < self._rule.delta]
        return left


class Pace:
    """Measures so many rounds, or fewer where every sample's latency distribution has settled.

    Args:
        rounds: the largest number of rounds, at least 1.
        rule: of Algorithm 1, see :class:`Stopping`; None: exactly so
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
        settled = [
            stopping.add(own.finite()) for stopping, own in zip(self._stopping, times, strict=True)
        ]
        least = min(int((stopping.settled > 0).sum()) for stopping in self._stopping)
        self.progress = f" of at most {self.rounds}, {least} of {samples} settled"
        return all(settled) or used_up
