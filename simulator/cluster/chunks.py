"""Which samples are to do, are on their way and are done, for one kind of worker."""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Sequence
from typing import Any

from simulator.data.folder import Item
from simulator.pipeline.batched import Batched
from simulator.pipeline.plan import Plan

SECONDS = 0.5
"""What a chunk of samples should take."""
LONGEST = 256
"""Samples in a chunk at most."""
DEATHS = 3
"""A sample that is alone when its worker dies, so many times, is skipped."""
SPREAD = 4
"""Chunks for each worker that may be finished before the sample that is waited for."""

Chunk = range
"""Consecutive samples, by their index."""


class Chunks:
    """Cuts samples into chunks for the threads that serve workers, and puts results in order.

    Args:
        workers: how many run chunks at once.
        count: how many samples there are.
        step: chunks are cut where batches of so many samples end.
        place: of the first sample in its batch.
    """

    def __init__(self, workers: int, count: int, step: int = 1, place: int = 0) -> None:
        self.workers, self._count = workers, count
        self._step, self._place = step, place
        self._seconds: float | None = None
        self._returned: deque[Chunk] = deque()
        self._results: dict[int, Any] = {}
        self._deaths: Counter[int] = Counter()
        self._next = self._begun = 0
        self._open = True
        self._error: BaseException | None = None
        self._changed = threading.Condition(threading.RLock())

    @property
    def size(self) -> int:
        """Samples in the next chunk, by the time that the last ones took."""
        if self._seconds is None:
            return self._step
        return max(self._step, min(LONGEST, round(SECONDS / max(self._seconds, 1e-6))))

    def take(self, wait: bool = False) -> Chunk | None:
        """Return what to do next.

        Args:
            wait: for what comes later: samples further on, or those of a worker that dies.

        Returns:
            None if there is nothing, or too much ahead of the rest.
        """
        with self._changed:
            while self._open:
                chunk = self._returned.popleft() if self._returned else self._cut()
                if chunk or not wait or self._next == self._count:
                    return chunk or None
                self._changed.wait()
        return None

    def done(self, chunk: Chunk, results: Sequence[Any], seconds: float) -> None:
        """Keep the results of a chunk, and learn from the time that it took."""
        with self._changed:
            self._results.update(zip(chunk, results, strict=True))
            each = seconds / len(chunk)
            self._seconds = each if self._seconds is None else 0.5 * (self._seconds + each)
            self._changed.notify_all()

    def give_back(self, *chunks: Chunk) -> None:
        """Give back chunks that were not begun, in their order."""
        with self._changed:
            self._returned.extendleft(reversed(chunks))
            self._changed.notify_all()

    def died(self, chunk: Chunk, skipped: Any) -> None:
        """Requeue a chunk whose worker died, in halves to isolate the crashing sample.

        Args:
            chunk: what the worker was at.
            skipped: the result of a sample that has killed its worker too often.
        """
        middle = len(chunk) // 2
        with self._changed:
            self._deaths[chunk[0]] += not middle
            if self._deaths[chunk[0]] < DEATHS:
                self.give_back(*filter(None, (chunk[:middle], chunk[middle:])))
            else:
                self._results[chunk[0]] = skipped
                self._changed.notify_all()

    def pop(self) -> Any:
        """Wait for the result of the next sample in order, and return it.

        Raises:
            UserError: what has ended the run.
        """
        with self._changed:
            while self._next not in self._results:
                if self._error is not None:
                    raise self._error
                self._changed.wait()
            self._next += 1
            self._changed.notify_all()
            return self._results.pop(self._next - 1)

    def close(self, error: BaseException | None = None) -> None:
        """Give out no more chunks.

        Args:
            error: ends the run; :meth:`pop` raises it.
        """
        with self._changed:
            self._open, self._error = False, self._error or error
            self._changed.notify_all()

    def _cut(self) -> Chunk:
        until = self._next + SPREAD * self.workers * self.size
        stop = min(self._begun + self.size, until)
        stop -= (self._place + stop) % self._step
        chunk = range(self._begun, min(stop, self._count))
        self._begun = max(self._begun, chunk.stop)
        return chunk


class BatchMembers:
    """Finds the samples that are in batches with others: a worker that runs one needs all of them.

    Args:
        plan: its arms may have batches of several sizes.

    Attributes:
        step: samples of the largest batch; 1 without batches.
    """

    def __init__(self, plan: Plan) -> None:
        self._batched = [node.recipe for node in plan.nodes if isinstance(node.recipe, Batched)]
        self._batched.sort(key=lambda batched: -batched.size)
        self._places = {
            item.name: at for batched in self._batched[:1] for at, item in enumerate(batched.items)
        }
        self.step = max((batched.size for batched in self._batched), default=1)

    def place(self, items: Sequence[Item]) -> int:
        """Return the place of the first sample in its largest batch."""
        return self._places.get(items[0].name, 0) % self.step if items else 0

    def of(self, samples: Sequence[Item]) -> list[Item]:
        """Return the other samples that are in batches with some samples."""
        found: dict[str, Item] = {}
        for batched in self._batched:
            for sample in samples:
                start = self._places.get(sample.name, 0) // batched.size * batched.size
                found |= {item.name: item for item in batched.items[start : start + batched.size]}
        for sample in samples:
            found.pop(sample.name, None)
        return list(found.values())
