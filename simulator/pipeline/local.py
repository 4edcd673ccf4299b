"""The executor of this machine: threads of this process and, for short samples, other processes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, ClassVar

from simulator.data.folder import Item
from simulator.pipeline.executor import Executor, SampleResult, watched
from simulator.pipeline.plan import Plan
from simulator.pipeline.threads import Budget, in_order
from simulator.pipeline.walk import Opened, StageError, Watch
from simulator.spent import Work, phase, spending

TRIED, SHORT = 100, 0.002
"""So many samples are measured; those that take fewer seconds are mostly Python, which threads run
one after the other."""
EACH = 1500
"""Short samples that are worth the start of a process."""


class LocalExecutor(Executor):
    """Threads of this process; the libraries release Python's global lock while they compute."""

    name: ClassVar[str] = "local"

    def run(
        self, plan: Plan, items: Iterable[Item], watch: Watch | None = None
    ) -> Iterator[SampleResult]:
        """Run every arm on every sample.

        Where samples are short, and many are left after the first, other processes run some.
        """
        one = partial(self.sample, self.open(plan), Budget(self.memory), watch)
        if not isinstance(items, Sequence) or self.workers == 1 or len(items) < TRIED + EACH:
            return in_order(one, items, self.workers, "sample")
        return self._many(plan, items, watch, one)

    def _many(
        self,
        plan: Plan,
        items: Sequence[Item],
        watch: Watch | None,
        one: Callable[[Item], SampleResult],
    ) -> Iterator[SampleResult]:
        """Measure the first samples on threads, and choose where the others run."""
        with phase(self.workers):
            begun = time.perf_counter()
            for at, done in enumerate(in_order(one, items[:TRIED], self.workers, "sample")):
                if at == TRIED // 2:  # those before are looked at more closely
                    begun = time.perf_counter()
                yield done
            each, rest = (time.perf_counter() - begun) / (TRIED // 2), items[TRIED:]
            number = min(self.workers - 1, len(rest) // EACH)
            sent = self._sent(plan, watch, number) if each < SHORT else None
            if sent is None:
                yield from in_order(one, rest, self.workers, "sample")
                return
            from simulator.pipeline.processes import SampleProcesses

            with SampleProcesses(sent, number, one, each) as others:
                yield from others.run(rest)

    def _sent(self, plan: Plan, watch: Watch | None, number: int) -> bytes | None:
        """What other processes are sent; None where they cannot run the plan."""
        from simulator.pipeline.processes import sent

        when, memory = self.runtimes.isolation.when, self.memory // (1 + number)
        return sent(plan, self.modality, watch, when, memory)

    def sample(
        self, opened: Opened, budget: Budget, watch: Watch | None, item: Item
    ) -> SampleResult:
        """Run one sample; if a stage fails, the result says which stage and why."""
        try:
            with spending(Work.OWN):
                context = self.context(item)
                with budget.take(self.need(opened.plan, context.source)):
                    return watched(opened, item, context, watch)
        except StageError as error:
            return SampleResult(item, (), str(error))

    def need(self, plan: Plan, source: Any) -> int:
        """Return about how many bytes a sample needs at most."""
        return self.modality.memory(source) + plan.memory(source)
