"""Which flips are the worst so far."""

from __future__ import annotations

import threading
from bisect import bisect_left, insort

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
