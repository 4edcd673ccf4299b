"""Other processes that run short samples beside this one.

Threads take turns at Python's global lock, so where a sample is mostly Python, two of them are no
faster than one. A process has a lock of its own; :mod:`simulator.pipeline.sample_process` runs in
it. What it cannot do, for whatever reason, this process does itself, and raises what is to raise.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from multiprocessing.connection import Connection, Pipe, wait
from typing import TYPE_CHECKING

from simulator.closing import Closing
from simulator.data.folder import Item
from simulator.modalities.modality import Modality
from simulator.pipeline import watchdog
from simulator.pipeline.adapted import Adapted
from simulator.pipeline.batched import Batched
from simulator.pipeline.plan import Plan
from simulator.pipeline.walk import Watch
from simulator.profile.implementations import Choice
from simulator.spent import Row, Work, count, spending

if TYPE_CHECKING:
    from simulator.pipeline.executor import SampleResult

SECONDS, MOST = 0.02, 64
"""What a process is given at once: so much work, and so many samples at most."""
OWN = 4
"""This process does a quarter of that at once, since the others wait for it."""
QUEUED = 3
"""Chunks that a process has at once, so that it never waits for the next one."""
AHEAD = 8
"""Chunks for each process that may be finished before the one that is waited for."""
PATIENCE = 5.0
"""Seconds that a process has to end."""


@dataclass(frozen=True, slots=True)
class Task:
    """What a process is started with.

    Attributes:
        plan: it runs samples of.
        modality: reads them.
        watch: called for every sample that went through all arms.
        isolate: which files are decoded in workers, see :mod:`simulator.pipeline.isolation`.
        memory: bytes that a sample may need; a larger one is not run there.
        limit: seconds that a call of a library may take; 0: any time.
    """

    plan: Plan
    modality: Modality
    watch: Watch | None
    isolate: str
    memory: int
    limit: float


@dataclass(frozen=True, slots=True)
class Answer:
    """What a process says of a chunk.

    Attributes:
        results: of the samples.
        seconds: that they took.
        spent: nanoseconds of each kind of work in them.
    """

    results: list[SampleResult]
    seconds: float
    spent: dict[Row, int]


@dataclass(slots=True)
class Chunk:
    """Consecutive samples.

    Attributes:
        items: the samples.
        at: the process that has them; None: they are done, or to be done here.
        results: None until they are done.
    """

    items: Sequence[Item]
    at: SampleProcess | None = None
    results: list[SampleResult] | None = None


def sent(
    plan: Plan, modality: Modality, watch: Watch | None, isolate: str, memory: int
) -> bytes | None:
    """Return a pickled :class:`Task`; None where only this process can do it.

    Batches and adapting networks need the samples in one process, devices one process that uses
    them, and backends in workers would have workers in each.
    """
    recipes = [node.recipe for node in plan.nodes]
    if any(isinstance(recipe, Adapted | Batched) for recipe in recipes):
        return None
    found = (getattr(recipe, "choice", None) for recipe in recipes)
    choices = [one for one in found if isinstance(one, Choice)]
    if any(choice.options.get("device", "cpu") != "cpu" or choice.is_apart for choice in choices):
        return None
    try:
        return pickle.dumps(Task(plan, modality, watch, isolate, memory, watchdog.limit()))
    except Exception:  # what a package brings may raise anything
        return None


class SampleProcess:
    """One process.

    Args:
        task: a pickled :class:`Task`.

    Attributes:
        link: on which it answers.
        chunks: that it has, in the order in which it answers.
        ready: whether its plan is open.
    """

    def __init__(self, task: bytes) -> None:
        self.link, theirs = Pipe()
        self.chunks: deque[Chunk] = deque()
        self.ready = False
        path = os.pathsep.join(os.path.abspath(place) for place in sys.path)
        with theirs, tempfile.TemporaryFile() as file:
            file.write(task)
            file.seek(0)
            self._process = subprocess.Popen(
                [sys.executable, "-m", "simulator.pipeline.sample_process", str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=file,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
                env={**os.environ, "PYTHONPATH": path, "PYTHONSAFEPATH": "1"},
            )

    def give(self, chunk: Chunk) -> None:
        """Let it run samples."""
        chunk.at = self
        self.chunks.append(chunk)
        self.link.send(chunk.items)

    def answered(self) -> Answer | None:
        """Take its next answer; its chunk is then done, or to be done here.

        Raises:
            EOFError: it has died.
        """
        answer: Answer | None = self.link.recv()
        if not self.ready:
            self.ready = True
            return None
        chunk = self.chunks.popleft()
        chunk.at = None
        if answer is not None:
            count(answer.spent)
            chunk.results = answer.results
        return answer

    def end(self) -> None:
        """End it; its chunks are to be done here."""
        for chunk in self.chunks:
            chunk.at = None
        self.link.close()
        if not self.ready:
            self._process.kill()
        try:
            self._process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


class SampleProcesses(Closing):
    """Some processes with the same plan; a context manager.

    Args:
        task: what they are to do.
        number: how many there are.
        here: runs a sample in this process.
        each: seconds that a sample takes.
    """

    def __init__(
        self, task: bytes, number: int, here: Callable[[Item], SampleResult], each: float
    ) -> None:
        self._here, self._each = here, each
        self._pending: deque[Chunk] = deque()
        self._all = [SampleProcess(task) for _ in range(number)]

    def run(self, items: Sequence[Item]) -> Iterator[SampleResult]:
        """Yield the results of samples, in order; this process runs some of them, too."""
        left = iter(items)
        while True:
            self._take(0)
            self._give(left)
            first = self._pending[0] if self._pending else None
            if first and first.results is not None:
                yield from self._pending.popleft().results or ()
            elif first and first.at is None:  # a process could not do it
                self._take_all()
                first.results = [self._here(item) for item in first.items]
            elif len(self._pending) < AHEAD * (1 + len(self._all)) and (
                chunk := self._cut(left, OWN)
            ):
                self._pending.append(chunk)
                self._run(chunk)
            elif first:
                with spending(Work.WAITING):
                    self._take(None)
            else:
                return

    def close(self) -> None:
        """End all processes."""
        for process in self._all:
            process.link.close()
        for process in self._all:
            process.end()
        self._all.clear()

    def _run(self, chunk: Chunk) -> None:
        begun = time.perf_counter()
        chunk.results = [self._here(item) for item in chunk.items]
        self._learn(len(chunk.items), time.perf_counter() - begun)

    def _cut(self, left: Iterator[Item], parts: int = 1) -> Chunk | None:
        size = min(MOST, int(SECONDS / max(self._each, 1e-6))) // parts
        items = list(islice(left, max(1, size)))
        return Chunk(items) if items else None

    def _learn(self, samples: int, seconds: float) -> None:
        self._each = 0.5 * (self._each + seconds / samples)

    def _give(self, left: Iterator[Item]) -> None:
        """Give every process that is ready what it may have."""
        for process in list(self._all):
            while process.ready and len(process.chunks) < QUEUED and (chunk := self._cut(left)):
                self._pending.append(chunk)
                try:
                    process.give(chunk)
                except OSError:
                    self._lost(process)
                    break

    def _take(self, seconds: float | None) -> None:
        """Take what processes have answered, or wait for the first of them."""
        links = {process.link: process for process in self._all}
        for link in wait([*links], seconds):
            assert isinstance(link, Connection)
            process = links[link]
            samples = len(process.chunks[0].items) if process.chunks else 0
            try:
                if answer := process.answered():
                    self._learn(samples, answer.seconds)
            except (EOFError, OSError, pickle.UnpicklingError):
                self._lost(process)

    def _take_all(self) -> None:
        """Wait until no process has anything to do."""
        while any(process.chunks for process in self._all):
            self._take(None)

    def _lost(self, process: SampleProcess) -> None:
        """Go on without a process that has died."""
        self._all.remove(process)
        process.end()
