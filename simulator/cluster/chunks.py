"""Which samples are to do, are on their way and are done, for one kind of worker."""

from __future__ import annotations

from collections import Counter, deque
from typing import Any

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
    """Cuts samples into chunks, and puts results in order.

    Args:
        workers: how many run chunks at once.
        count: how many samples there are.
        step: chunks are cut where batches of so many samples end.
        place: of the first sample in its batch.

    Attributes:
        workers: see above.
    """

    def __init__(self, workers: int, count: int, step: int = 1, place: int = 0) -> None:
        self.workers, self._count = workers, count
        self._step, self._place = step, place
        self._each: float | None = None
        self._again: deque[Chunk] = deque()
        self._results: dict[int, Any] = {}
        self._deaths: Counter[int] = Counter()
        self._next = 0
        self._begun = 0

    @property
    def size(self) -> int:
        """Samples in the next chunk, by the time that the last ones took."""
        if self._each is None:
            return self._step
        return max(self._step, min(LONGEST, round(SECONDS / max(self._each, 1e-6))))

    def take(self) -> Chunk | None:
        """Return what to do next; None if there is nothing, or too much ahead of the rest."""
        if self._again:
            return self._again.popleft()
        until = self._next + SPREAD * self.workers * self.size
        stop = min(self._begun + self.size, until)
        stop -= (self._place + stop) % self._step
        chunk = range(self._begun, min(stop, self._count))
        if not chunk:
            return None
        self._begun = chunk.stop
        return chunk

    def done(self, chunk: Chunk, results: list[Any], seconds: float) -> None:
        """Keep the results of a chunk, and learn from the time that it took."""
        self._results.update(zip(chunk, results, strict=True))
        each = seconds / len(chunk)
        self._each = each if self._each is None else 0.5 * (self._each + each)

    def again(self, chunk: Chunk) -> None:
        """Give back a chunk that was not begun."""
        self._again.appendleft(chunk)

    def died(self, chunk: Chunk) -> int | None:
        """Give back a chunk whose worker died: in halves, so that the sample is found.

        Returns:
            The sample that has killed its worker too often; it is not given again.
        """
        middle = len(chunk) // 2
        if middle:
            self._again.extendleft((chunk[middle:], chunk[:middle]))
            return None
        (sample,) = chunk
        self._deaths[sample] += 1
        if self._deaths[sample] >= DEATHS:
            return sample
        self._again.appendleft(chunk)
        return None

    def skip(self, sample: int, result: Any) -> None:
        """Give a sample a result without running it."""
        self._results[sample] = result

    @property
    def ready(self) -> bool:
        """Whether the next sample in order is done."""
        return self._next in self._results

    def pop(self) -> Any:
        """Return the result of the next sample in order."""
        self._next += 1
        return self._results.pop(self._next - 1)
