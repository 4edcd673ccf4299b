"""Executors run a plan on samples. The local one uses threads of this process."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from array import array
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
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
"""Bytes."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of one arm for one sample: the content of a cell's record.

    Attributes:
        record: what the task stores of the prediction; see :mod:`simulator.tasks.task`.
        digest: BLAKE2b of the bytes of the network's outputs, in hexadecimal.
        ns: wall-clock time of each stage in nanoseconds, by stage. The time of a shared stage is
            given to each stack that uses it.
    """

    record: Mapping[str, Any]
    digest: str
    ns: Mapping[str, int]


class Times(Mapping[str, int]):
    """Times by stage in a third of a dict's memory: a run of 50,000 samples keeps 100,000 of them.

    Args:
        ns: nanoseconds by stage.
    """

    __slots__ = ("_ns", "_stages")

    def __init__(self, ns: Mapping[str, int]) -> None:
        self._stages, self._ns = _one(tuple(ns)), array("q", ns.values())

    def __getitem__(self, stage: str) -> int:
        if stage not in self._stages:
            raise KeyError(stage)
        return self._ns[self._stages.index(stage)]

    def __iter__(self) -> Iterator[str]:
        return iter(self._stages)

    def __len__(self) -> int:
        return len(self._stages)


@cache
def _one(stages: tuple[str, ...]) -> tuple[str, ...]:
    """The same tuple for equal ones."""
    return stages


@dataclass(frozen=True, slots=True)
class Done:
    """A sample that is finished: it went through every arm, or it was skipped.

    Attributes:
        item: the sample.
        outcomes: one per arm, in the plan's order; empty if the sample was skipped.
        skipped: the stage that failed and why; None if the sample was not skipped.
        seen: what the watch function returned for this sample; None without one.
    """

    item: Item
    outcomes: tuple[Outcome, ...]
    skipped: str | None = None
    seen: Any = None

    def kept(self) -> Done:
        """Return what a run keeps of it in memory: not what a watch function returned."""
        own = tuple(replace(one, ns=Times(one.ns)) for one in self.outcomes)
        return replace(self, outcomes=own, seen=None)


class Executor(ABC):
    """Runs a plan on samples. Classes are found by entry point, group ``simulator.executors``.

    Args:
        modality: reads the samples.
        runtimes: opened runtimes of this process; the caller closes them.
        workers: how many samples are processed at once.
        memory: bytes that these samples may need together, see :meth:`Plan.memory`.
    """

    def __init__(
        self, modality: Modality, runtimes: RuntimePool, workers: int, memory: int = DEFAULT_MEMORY
    ) -> None:
        self.modality, self.runtimes = modality, runtimes
        self.workers, self.memory = workers, memory

    @abstractmethod
    def run(self, plan: Plan, items: Iterable[Item], watch: Watch | None = None) -> Iterator[Done]:
        """Run every arm on every sample.

        Args:
            plan: the DAG.
            items: the samples.
            watch: called for every sample that went through all arms, in the process that ran it.

        Yields:
            One result per sample, in the order of *items*, whatever the number of workers.
        """

    def open(self, plan: Plan, timed: bool = False) -> Opened:
        """Open a plan's recipes in this process.

        Args:
            plan: the DAG.
            timed: its latency counts, so that no file is decoded in another process.
        """
        return Opened(plan, self.runtimes.here() if timed else self.runtimes)

    def context(self, item: Item) -> Context:
        """Read a sample.

        Raises:
            StageError: it cannot be read; the run goes on without it.
        """
        try:
            source = self.modality.read(item.name, item.path)
        except SampleError as error:
            raise StageError("read", error) from error
        return Context(item.name, source, item.truth, item)


class LocalExecutor(Executor):
    """Threads of this process; the libraries release Python's global lock while they compute."""

    name = "local"

    def run(self, plan: Plan, items: Iterable[Item], watch: Watch | None = None) -> Iterator[Done]:
        """Run every arm on every sample; at most twice as many samples as workers are queued."""
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
            except BaseException:
                for future in pending:
                    future.cancel()
                with registry.interrupted():  # a sample may be waiting for a worker process
                    pool.shutdown()
                raise

    def _sample(self, opened: Opened, item: Item, budget: Budget, watch: Watch | None) -> Done:
        """Run one sample; if a stage fails, the result says which stage and why."""
        try:
            context = self.context(item)
            with budget.take(self.need(opened.plan, context.source)):
                return watched(opened, item, context, watch)
        except StageError as error:
            return Done(item, (), str(error))

    def need(self, plan: Plan, source: Any) -> int:
        """Return about how many bytes a sample needs at most."""
        return self.modality.memory(source) + plan.memory(source)


def watched(opened: Opened, item: Item, context: Context, watch: Watch | None) -> Done:
    """Run every arm on one sample, and call *watch* with the result.

    Raises:
        StageError: a stage failed on it.
    """
    walk = opened.walk(context)
    outcomes = outcomes_of(opened.plan, walk)
    return Done(item, outcomes, None, watch(walk, outcomes) if watch else None)


def outcomes_of(plan: Plan, walk: Walk) -> tuple[Outcome, ...]:
    """Return the result of every arm for a sample.

    Raises:
        StageError: the sample's ground truth cannot be used.
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
    """Limits the memory of the samples that are processed at once.

    Args:
        total: bytes; a sample that needs more runs alone.
    """

    def __init__(self, total: int) -> None:
        self._total = total
        self._used = 0
        self._changed = threading.Condition()

    @contextmanager
    def take(self, amount: int) -> Iterator[None]:
        """Wait until *amount* bytes are free, and reserve them while the context is open."""
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
