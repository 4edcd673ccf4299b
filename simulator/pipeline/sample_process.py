"""A process that runs samples for another one: ``python -m simulator.pipeline.sample_process FD``.

It reads a pickled :class:`simulator.pipeline.processes.Task` from its standard input, opens the
plan, and says so on the connection FD. From then on it answers each chunk of samples, with None
where the other process is to run them. It ends when that process closes the connection or dies.
"""

from __future__ import annotations

import gc
import os
import pickle
import signal
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from multiprocessing.connection import Connection
from queue import SimpleQueue

from simulator.data.folder import Item
from simulator.pipeline import watchdog
from simulator.pipeline.local import LocalExecutor
from simulator.pipeline.processes import PATIENCE, Answer, Task
from simulator.pipeline.runtimes import RuntimePool
from simulator.pipeline.threads import Budget
from simulator.spent import gathering

Chunks = SimpleQueue[Sequence[Item] | None]


class TooLarge(Exception):
    """A sample needs more memory than this process has a share of."""


class Server:
    """Answers chunks of samples.

    Args:
        task: what there is to do.
        runtimes: of this process; the caller closes them.
    """

    def __init__(self, task: Task, runtimes: RuntimePool) -> None:
        executor = LocalExecutor(task.modality, runtimes, 1, task.memory)
        opened = executor.open(task.plan)
        self._run = partial(executor.sample, opened, Share(task.memory), task.watch)

    def answer(self, items: Sequence[Item]) -> Answer | None:
        """Run samples; None where one of them is to be run elsewhere, or raises what is no skip."""
        begun = time.perf_counter()
        try:
            with gathering() as spent:
                results = [self._run(item) for item in items]
        except Exception:  # it is raised again where the samples are run again
            return None
        return Answer(results, time.perf_counter() - begun, dict(spent))


class Share(Budget):
    """The memory that one sample may need here."""

    @contextmanager
    def take(self, amount: int) -> Iterator[None]:
        """Refuse a larger one."""
        if amount > self.total:
            raise TooLarge
        yield


def main() -> None:
    """Answer chunks until the other process closes the connection."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the other one is told, and ends this one
    link, chunks = Connection(int(sys.argv[1])), Chunks()
    task: Task = pickle.load(sys.stdin.buffer)
    with (
        watchdog.armed(task.limit, lambda what: os._exit(1)),
        RuntimePool(isolate=task.isolate) as runtimes,
    ):
        server = Server(task, runtimes)
        threading.Thread(target=_read, args=(link, chunks), daemon=True).start()
        gc.freeze()
        answer: Answer | None = None
        with suppress(OSError):  # the other one has gone
            link.send(answer)
            while items := chunks.get():
                link.send(server.answer(items))
    os._exit(0)  # do not wait for what libraries have begun


def _read(link: Connection, chunks: Chunks) -> None:
    """Take chunks while others run, so that who sends them never waits; then see to the end."""
    with suppress(EOFError, OSError):
        while True:
            chunks.put(link.recv())
    chunks.put(None)
    time.sleep(PATIENCE)  # longer than a sample takes
    os._exit(1)


if __name__ == "__main__":
    main()
