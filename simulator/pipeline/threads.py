"""Threads of this process: many things are done at once, and come in order."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from itertools import islice
from typing import TypeVar

from simulator import registry
from simulator.spent import Work, phase, spending

T = TypeVar("T")
R = TypeVar("R")
TOGETHER, MOST = 0.01, 16
"""Seconds of the work, and how many pieces of it, that a thread is given at once."""


def in_order(
    do: Callable[[T], R], every: Iterable[T], workers: int, name: str
) -> Generator[R, None, None]:
    """Do something with everything, in threads; yield what comes of it, in order.

    At most twice as many things as workers are queued; of short ones, as many times as
    :data:`TOGETHER` says, since each change of the thread costs time.

    Args:
        do: called in a thread.
        every: what it is called with.
        workers: how many threads there are.
        name: of the threads.
    """
    left, size = iter(every), 1

    def several(some: Sequence[T]) -> tuple[list[R], float]:
        start = time.perf_counter()
        done = [do(one) for one in some]
        return done, time.perf_counter() - start

    with phase(workers), ThreadPoolExecutor(workers, thread_name_prefix=name) as pool:
        pending: deque[Future[tuple[list[R], float]]] = deque()
        try:
            while batch := list(islice(left, size)):
                pending.append(pool.submit(several, batch))
                if len(pending) >= 2 * workers:
                    done, seconds = pending.popleft().result()
                    each = seconds / len(done)
                    size = max(1, min(2 * len(done), MOST, int(TOGETHER / max(each, 1e-6))))
                    yield from done
            while pending:
                yield from pending.popleft().result()[0]
        except BaseException:
            for future in pending:
                future.cancel()
            with registry.interrupted():  # a thread may be waiting for a worker process
                pool.shutdown()
            raise


class Budget:
    """Limits the memory of the samples that are processed at once.

    Args:
        total: bytes; a sample that needs more runs alone.

    Attributes:
        total: see above.
    """

    def __init__(self, total: int) -> None:
        self.total = total
        self._used = 0
        self._changed = threading.Condition()

    @contextmanager
    def take(self, amount: int) -> Iterator[None]:
        """Wait until *amount* bytes are free, and reserve them while the context is open."""
        amount = min(amount, self.total)
        with self._changed:
            if self._used + amount > self.total:
                with spending(Work.WAITING):
                    self._changed.wait_for(lambda: self._used + amount <= self.total)
            self._used += amount
        try:
            yield
        finally:
            with self._changed:
                self._used -= amount
                self._changed.notify_all()
