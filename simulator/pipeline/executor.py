"""Runs a plan over samples: a stream, in order, with bounded memory."""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from simulator import registry
from simulator.contract import Array, Encoded, clock
from simulator.data.folder import Item, read
from simulator.errors import SampleError
from simulator.pipeline.plan import Node, Plan, Sample, Step

DEFAULT_MEMORY = 2**31


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one stack made of one sample.

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
    """A sample that went through every stack, or did not.

    Attributes:
        item: the sample.
        outcomes: one per stack, in the plan's order; empty if it was skipped.
        skipped: why it was skipped, stage first; None if it was not.
    """

    item: Item
    outcomes: tuple[Outcome, ...]
    skipped: str | None = None


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


def need(plan: Plan, image: Encoded) -> int:
    """Return about how many bytes a sample holds at most: three per pixel of every frame.

    Decoded frames and their YUV forms have the file's size, resized ones the geometry's; one
    more of the file's size is for what a library needs at work.
    """
    pixels = image.width * image.height
    for node in plan.nodes:
        if node.step.stage in ("decode", "color"):
            pixels += image.width * image.height
        elif node.step.resized is not None:
            with suppress(SampleError):  # too large: the step itself will refuse it
                pixels += math.prod(node.step.resized(image.height, image.width))
    return 3 * pixels


def execute(
    plan: Plan, items: Iterable[Item], workers: int, memory: int = DEFAULT_MEMORY
) -> Iterator[Done]:
    """Run every sample through every stack.

    Args:
        plan: the DAG.
        items: the samples.
        workers: samples in flight; each runs in a thread of its own, and the libraries
            release the interpreter while they work. At most twice as many samples are held.
        memory: bytes that the samples in flight may need together, see :func:`need`.

    Yields:
        One result per sample, in the order of *items*, whatever the number of workers.
    """
    budget = Budget(memory)
    with ThreadPoolExecutor(workers, thread_name_prefix="sample") as pool:
        pending: deque[Future[Done]] = deque()
        try:
            for item in items:
                pending.append(pool.submit(run_sample, plan, item, budget))
                if len(pending) >= 2 * workers:
                    yield pending.popleft().result()
            while pending:
                yield pending.popleft().result()
        except KeyboardInterrupt:
            registry.interrupt()  # a sample may be waiting for a worker
            raise
        finally:
            for future in pending:
                future.cancel()


def run_sample(plan: Plan, item: Item, budget: Budget | None = None) -> Done:
    """Run one sample; if it cannot go through, say at which stage and why."""
    try:
        image = read(item)
    except SampleError as error:
        return Done(item, (), f"read: {error}")
    with budget.take(need(plan, image)) if budget else nullcontext():
        return _run(plan, Sample(item, image))


def _run(plan: Plan, sample: Sample) -> Done:
    stage = ""
    try:
        values: list[Any] = [None] * len(plan.nodes)
        left = [node.children for node in plan.nodes]
        ns = [0] * len(plan.nodes)
        twins: dict[tuple[str, bytes], _Twin] = {}
        for index, node in enumerate(plan.nodes):
            stage = node.step.stage
            given = sample.image if node.parent is None else values[node.parent]
            values[index], ns[index] = _computed(node, given, sample, twins)
            if node.parent is not None:
                left[node.parent] -= 1
                if not left[node.parent]:
                    values[node.parent] = None
        stage = "truth"
        predictions = [values[path[-1]][1] for path in plan.paths]
        records = plan.judge(predictions, sample.item.truth, sample.image)
    except SampleError as error:
        return Done(sample.item, (), f"{stage}: {error}")
    outcomes = (
        Outcome(record, values[path[-1]][0], _times(plan, path, ns))
        for path, record in zip(plan.paths, records, strict=True)
    )
    return Done(sample.item, tuple(outcomes))


@dataclass(frozen=True, slots=True)
class _Twin:
    """What a step made of one input, kept in case another node has an equal one."""

    given: Array
    value: Any
    ns: int


def _computed(
    node: Node, given: Any, sample: Sample, twins: dict[tuple[str, bytes], _Twin]
) -> tuple[Any, int]:
    """A node's value and its time in ns; of twins with equal inputs the first one's."""
    if node.twin is None:
        return timed(node.step, given, sample)
    glance = node.twin, given.ravel()[::101].tobytes()
    known = twins.get(glance)
    if known is None or not np.array_equal(known.given, given):
        known = twins[glance] = _Twin(given, *timed(node.step, given, sample))
    return known.value, known.ns


def timed(step: Step, given: Any, sample: Sample) -> tuple[Any, int]:
    """Return a step's value, and its nanoseconds less what was excluded meanwhile."""
    excluded, start = clock.excluded(), time.perf_counter_ns()
    value = step.apply(given, sample)
    return value, time.perf_counter_ns() - start - (clock.excluded() - excluded)


def ends(plan: Plan, item: Item) -> list[Any] | None:
    """Return the value at the end of each path, or None if the sample must be skipped."""
    try:
        sample = Sample(item, read(item))
        values: list[Any] = []
        for node in plan.nodes:
            given = sample.image if node.parent is None else values[node.parent]
            values.append(node.step.apply(given, sample))
    except SampleError:
        return None
    return [values[path[-1]] for path in plan.paths]


def _times(plan: Plan, path: Sequence[int], ns: Sequence[int]) -> dict[str, int]:
    times: dict[str, int] = {}
    for index in path:
        step = plan.nodes[index].step
        if step.timed:
            times[step.stage] = times.get(step.stage, 0) + ns[index]
    return times
