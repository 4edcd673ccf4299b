"""Samples of a load that wait are answered, as many at once as the stack takes."""

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
    answer through the steps after it, all in one thread. A stack without batches answers each
    sample by itself. Predictions are not used: they were recorded in the untimed pass.

    Args:
        executor: reads the samples.
        chain: of the stack.
        items: the samples.

    Attributes:
        failed: the reasons of failed inferences.
    """

    def __init__(self, executor: Executor, chain: Chain, items: Sequence[Item]) -> None:
        steps, runtimes = chain.recipes, executor.runtimes.here()
        at = next((n for n, step in enumerate(steps) if isinstance(step, Batched)), len(steps))
        batched = [step for step in steps if isinstance(step, Batched)]
        self._executor, self._items = executor, items
        self._before = executor.open(plan({Arm("before"): Chain(steps[:at])}), timed=True)
        self._networks = [step.runner(runtimes) for step in batched]
        self._size = batched[0].size if batched else 1
        self._after = [step.open(runtimes) for step in steps[at + 1 :]]
        self._waiting: deque[Waiting] = deque()
        self._arrived = threading.Condition()
        self.failed: list[str] = []

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
            except (SampleError, ModelError) as error:
                self.failed.append(f"{item.name}: {error}")
        for network in self._networks if ready else ():
            try:
                answered = network([given for given, _ in ready])
            except (SampleError, ModelError) as error:
                self.failed += [f"{one.name}: {error}" for one, _ in ready]
                return
            for kept, (one, context) in zip(answered, ready, strict=True):
                try:
                    found = inferred(kept.outputs)
                    for step in self._after:
                        found = step(found, context)
                except SampleError as error:
                    self.failed.append(f"{one.name}: {error}")
