"""An executor of Acme's own: one sample after the other in this thread: ``acme_queue``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from simulator.data.folder import Item
from simulator.pipeline.executor import Executor, SampleResult, watched
from simulator.pipeline.plan import Plan
from simulator.pipeline.walk import StageError, Watch


class Queue(Executor):
    """No threads, so that a debugger can follow."""

    name = "acme_queue"

    def run(
        self, plan: Plan, items: Iterable[Item], watch: Watch | None = None
    ) -> Iterator[SampleResult]:
        """Take every sample down every arm."""
        opened = self.open(plan)
        for item in items:
            try:
                yield watched(opened, item, self.context(item), watch)
            except StageError as error:
                yield SampleResult(item, (), str(error))
