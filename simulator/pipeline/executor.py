"""Executors: who takes the samples down a plan. The local one uses threads of this process."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from simulator import registry
from simulator.contract.recipe import Context
from simulator.data.folder import Item
from simulator.entry_points import Table
from simulator.errors import SampleError
from simulator.modalities.modality import Modality
from simulator.pipeline.plan import Plan
from simulator.pipeline.runtimes import RuntimePool
from simulator.pipeline.walk import Opened, StageError, Walk, Watch

DEFAULT_MEMORY = 2**31


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one arm made of one sample: the content of a cell's record.

    Attributes:
        record: what the task keeps of the prediction; see :mod:`simulator.tasks.task`.
        digest: BLAKE2b of the bytes of the network's outputs.
        ns: wall-clock time of each stage, in nanoseconds; a shared stage counts for each
            stack that uses it.
    """

    record: Mapping[str, Any]
    digest: str
    ns: dict[str, int]


@dataclass(frozen=True, slots=True)
class Done:
    """A sample that went through every arm, or did not.

    Attributes:
        item: the sample.
        outcomes: one per arm, in the plan's order; empty if it was skipped.
        skipped: why it was skipped, stage first; None if it was not.
        seen: what the watch returned of it; None where nobody watched.
    """

    item: Item
    outcomes: tuple[Outcome, ...]
    skipped: str | None = None
    seen: Any = None


class Executor(ABC):
    """Takes samples down a plan. A class is found by entry point, group ``simulator.executors``.

    Args:
        modality: reads the samples.
        runtimes: opened runtimes of this process; the caller closes them.
        workers: samples in flight.
        memory: bytes that the samples in flight may need together, see :meth:`Plan.memory`.
    """

    def __init__(
        self, modality: Modality, runtimes: RuntimePool, workers: int, memory: int = DEFAULT_MEMORY
    ) -> None:
        self.modality, self.runtimes = modality, runtimes
        self.workers, self.memory = workers, memory

    @abstractmethod
    def run(self, plan: Plan, items: Iterable[Item], watch: Watch | None = None) -> Iterator[Done]:
        """Take every sample down every arm.

        Args:
            plan: the DAG.
            items: the samples.
            watch: looks at every sample that went through all arms, where it was walked.

        Yields:
            One result per sample, in the order of *items*, whatever the number of workers.
        """

    def open(self, plan: Plan) -> Opened:
        """Open a plan's recipes in this process."""
        return Opened(plan, self.runtimes)

    def context(self, item: Item) -> Context:
        """Read a sample.

        Raises:
            StageError: it cannot be read; the run carries on without it.
        """
        try:
            source = self.modality.read(item.name, item.path)
        except SampleError as error:
            raise StageError("read", error) from error
        return Context(item.name, source, item.truth, item)


class LocalExecutor(Executor):
    """Threads of this process; the libraries release the interpreter while they work."""

    name = "local"

    def run(self, plan: Plan, items: Iterable[Item], watch: Watch | None = None) -> Iterator[Done]:
        """Take every sample down every arm; at most twice as many samples as workers are held."""
        budget, opened = Budget(self.memory), self.open(plan)
        with ThreadPoolExecutor(self.workers, thread_name_prefix="sample") as pool:
            pending: deque[Future[Done]] = deque()
            try:
                for item in items:
                    pending.append(pool.submit(self._sample, opened, item, budget, watch))
                    if len(pending) >= 2 * self.workers:
                        yield pending.popleft().result()
                while pending:
                    yield pending.popleft().result()
            except KeyboardInterrupt:
                registry.interrupt()  # a sample may be waiting for a worker
                raise
            finally:
                for future in pending:
                    future.cancel()

    def _sample(self, opened: Opened, item: Item, budget: Budget, watch: Watch | None) -> Done:
        """Take one sample down; if it cannot go through, say at which stage and why."""
        try:
            context = self.context(item)
            with budget.take(self.need(opened.plan, context.source)):
                return watched(opened, item, context, watch)
        except StageError as error:
            return Done(item, (), str(error))

    def need(self, plan: Plan, source: Any) -> int:
        """Return about how many bytes a sample holds at most."""
        return self.modality.memory(source) + plan.memory(source)


def watched(opened: Opened, item: Item, context: Context, watch: Watch | None) -> Done:
    """Take one sample down every arm and let somebody look.

    Raises:
        StageError: it cannot go through.
    """
    walk = opened.walk(context)
    outcomes = outcomes_of(opened.plan, walk)
    return Done(item, outcomes, None, watch(walk, outcomes) if watch else None)


def outcomes_of(plan: Plan, walk: Walk) -> tuple[Outcome, ...]:
    """Return what every arm made of a sample.

    Raises:
        StageError: the sample's truth cannot be used.
    """
    answers = walk.answers()
    try:
        records = plan.judge(
            [answer.prediction for answer in answers], walk.context.truth, walk.context.source
        )
    except SampleError as error:
        raise StageError("truth", error) from error
    return tuple(
        Outcome(record, answer.digest, walk.times(path))
        for record, answer, path in zip(records, answers, plan.paths, strict=True)
    )


class Budget:
    """Lets samples start while the memory that they may need is free.

    Args:
        total: bytes; a sample that needs more runs alone.
    """

    def __init__(self, total: int) -> None:
        self._total = total
        self._used = 0
        self._changed = threading.Condition()

    @contextmanager
    def take(self, amount: int) -> Iterator[None]:
        """Wait until *amount* bytes are free, and hold them."""
        amount = min(amount, self._total)
        with self._changed:
            self._changed.wait_for(lambda: self._used + amount <= self._total)
            self._used += amount
        try:
            yield
        finally:
            with self._changed:
                self._used -= amount
                self._changed.notify_all()


EXECUTORS: Table[type[Executor]] = Table(
    "simulator.executors",
    "executor",
    lambda found: isinstance(found, type) and issubclass(found, Executor),
)
