"""What observes samples while they run, in whatever process; and which flips are the worst."""

from __future__ import annotations

import threading
from bisect import bisect_left, insort
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from simulator.pipeline.executor import Outcome, pick
from simulator.pipeline.walk import Walk

Seen = dict[str, Any]
"""What was observed of one sample, by the names of the observers."""


@dataclass(frozen=True, slots=True)
class Observer:
    """Observes some of the samples; plain data, so that it can be pickled.

    Attributes:
        see: what it makes of a sample; None: nothing.
        first: how many first samples it is for.
        worst: how many of the worst flips it is for.
        strips: whether of clips it is for the frames around them, too.
    """

    see: Callable[[Walk], Any]
    first: int = 0
    worst: int = 0
    strips: bool = False

    def wants(self, index: int, rank: int | None) -> bool:
        """Whether it is for a sample, given its number and its rank among the flips so far."""
        return index < self.first or (rank is not None and rank < self.worst)


@dataclass(frozen=True, slots=True)
class Observers:
    """The observers of one pair, which do their work in any process.

    Attributes:
        arms: indices of train and deploy in the plan.
        by_name: the observers.
        first: the names of the first samples, in order.
    """

    arms: tuple[int, int]
    by_name: Mapping[str, Observer]
    first: tuple[str, ...]

    def __call__(self, walk: Walk, outcomes: Mapping[int, Outcome]) -> Seen | None:
        """Observe what can be known to be needed without the other samples' answers."""
        if pick(outcomes, self.arms) is None:
            return None
        name = walk.context.sample
        index = self.first.index(name) if name in self.first else len(self.first)
        return self.observe(walk, self.wanting(index, None))

    def wanting(self, index: int, rank: int | None) -> list[str]:
        """Return the observers that are for a sample; see :meth:`Observer.wants`."""
        return [name for name, observer in self.by_name.items() if observer.wants(index, rank)]

    def observe(self, walk: Walk, names: Sequence[str]) -> Seen:
        """Return what some observers make of a sample."""
        found = {name: self.by_name[name].see(walk) for name in names}
        return {name: one for name, one in found.items() if one is not None}


MOST = 1024
"""Flips that are ranked; more than are shown, and than samples in flight that may be left out."""


class Ranking:
    """Ranks the worst flips so far, the worst first; of equally bad ones the earlier sample."""

    def __init__(self) -> None:
        self._order: list[tuple[float, int]] = []
        self._known: dict[int, tuple[float, int]] = {}
        self._lock = threading.Lock()

    def add(self, severity: float, index: int) -> int:
        """Add a flip, if it is not there yet, and return its rank so far, from 0.

        Behind :data:`MOST` others it is forgotten, and its rank is that number.
        """
        with self._lock:
            if index not in self._known:
                self._known[index] = (-severity, index)
                insort(self._order, self._known[index])
            rank = bisect_left(self._order, self._known[index])
            if len(self._order) > MOST:
                del self._known[self._order.pop()[1]]
            return rank

    def forget(self, index: int) -> None:
        """Remove a sample that is left out of the run after all."""
        with self._lock:
            if (entry := self._known.pop(index, None)) is not None:
                self._order.remove(entry)

    def top(self, count: int) -> set[int]:
        """Return the samples of the worst flips so far."""
        with self._lock:
            return {index for _, index in self._order[:count]}
