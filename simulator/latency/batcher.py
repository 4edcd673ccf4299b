"""Samples of a load that wait are answered in batches."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence

from simulator.contract.recipe import Chain, Context
from simulator.data.folder import Item
from simulator.errors import ModelError, SampleError
from simulator.pipeline.batched import Batched
from simulator.pipeline.batches import Given
from simulator.pipeline.executor import Executor
from simulator.pipeline.inference import inferred
from simulator.pipeline.plan import Arm, plan

DELAY = 0.01
"""Seconds that a batch waits for its next sample before it runs with those that it has."""
Waiting = tuple[int, Callable[[], None]]


class Batcher:
    """Collects samples, and answers as many at once as the stack's batch has.

    Each sample goes through the steps before the network, the batch through the network, and each
    answer through the steps after it, all in one thread.

    Args:
        executor: reads the samples.
        chain: of the stack.
        items: the samples.
        failed: the reasons of failed inferences; appended to.
    """

    def __init__(
        self, executor: Executor, chain: Chain, items: Sequence[Item], failed: list[str]
    ) -> None:
        at, step = next((n, r) for n, r in enumerate(chain.recipes) if isinstance(r, Batched))
        before, after = chain.recipes[:at], chain.recipes[at + 1 :]
        runtimes = executor.runtimes.here()
        self._executor, self._items, self._failed = executor, items, failed
        self._before = executor.open(plan({Arm("batch"): Chain(before)}), timed=True)
        self._network, self._size = step.runner(runtimes), step.size
        self._after = [recipe.open(runtimes) for recipe in after]
        self._waiting: deque[Waiting] = deque()
        self._arrived = threading.Condition()

    def add(self, index: int, finish: Callable[[], None]) -> None:
        """Add a sample; *finish* is called when it is answered, or failed."""
        with self._arrived:
            self._waiting.append((index, finish))
            self._arrived.notify_all()

    def serve(self) -> None:
        """Answer one batch of what waits; nothing where nothing waits."""
        batch = self._taken()
        try:
            self._answer([self._items[index] for index, _ in batch])
        finally:
            for _, finish in batch:
                finish()

    def _taken(self) -> list[Waiting]:
        with self._arrived:
            count = -1
            while count < len(self._waiting) < self._size:
                count = len(self._waiting)
                if count:
                    self._arrived.wait(DELAY)
            return [self._waiting.popleft() for _ in range(min(self._size, len(self._waiting)))]

    def _answer(self, items: Sequence[Item]) -> None:
        ready: list[tuple[Given, Context]] = []
        for item in items:
            try:
                context = self._executor.context(item)
                (value,) = self._before.walk(context).answers()
                ready.append((Given(item.name, value, 0), context))
            except SampleError as error:
                self._failed.append(f"{item.name}: {error}")
        if not ready:
            return
        try:
            answered = self._network([given for given, _ in ready])
        except (SampleError, ModelError) as error:
            self._failed += [f"{one.name}: {error}" for one, _ in ready]
            return
        for kept, (one, context) in zip(answered, ready, strict=True):
            try:
                found = inferred(kept.outputs)
                for step in self._after:
                    found = step(found, context)
            except SampleError as error:
                self._failed.append(f"{one.name}: {error}")
