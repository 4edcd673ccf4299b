"""A campaign on one stack, in one round or, until an interval is narrow enough, in several."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any

import pyarrow as pa

from simulator.contract.injection import Injector, Target
from simulator.data.folder import Item
from simulator.experiments.session import Session
from simulator.faults.campaign import Campaign
from simulator.faults.draw import Population
from simulator.faults.inject import injection, row_of
from simulator.faults.parts import Hit, Hits, parts
from simulator.faults.rates import Rates, further, learnt, ran
from simulator.faults.table import FaultTable
from simulator.faults.verdict import Row, size_of
from simulator.pipeline.executor import DEFAULT_MEMORY
from simulator.pipeline.jobs import Job
from simulator.pipeline.stack import Stack
from simulator.pipeline.walk import StageError
from simulator.tasks.impact import Impact
from simulator.tasks.score import Record

DRAWN = 100_000
"""So many inferences are drawn and divided at once."""


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """What all stacks of a run have in common.

    Attributes:
        campaign: the campaign.
        session: the samples and the task.
        items: the samples that went through every stack.
        table: the rows are written to it.
        memory: MiB; None: the default.
    """

    campaign: Campaign
    session: Session
    items: Sequence[Item]
    table: FaultTable
    memory: int | None


class OnStack:
    """A campaign on one stack, and what it did.

    Attributes:
        stack: the stack.
        injector: puts faults into its artifact.
        population: what faults are drawn from.
        items: the samples.
        clean: their records without faults.
        options: of the task's verdicts.
        weights: of the strata, behind the pilot of Neyman's allocation.

    Args:
        number: of the stack.
        leader: whose pilot decides how faults are allocated; None for this stack's own.
        run: what it has in common with others.
    """

    def __init__(
        self,
        number: int,
        stack: Stack,
        injector: Injector,
        population: Population,
        leader: OnStack | None,
        clean: Sequence[Record],
        run: Run,
    ) -> None:
        session = run.session
        task, executor = session.card.task, session.executor
        self._number, self.stack, self.injector = number, stack, injector
        self._session, self._campaign, self._table = session, run.campaign, run.table
        self.items, self.clean, self.population = run.items, clean, population
        self._leader, self.weights = leader or self, list[float]()
        self._names: list[str] = []
        self._spent, self._new, self._ran = 0.0, 0, 0
        self.options = run.campaign.options(task)
        memory = (run.memory * 2**20 if run.memory else DEFAULT_MEMORY) // 2
        self._step = injection(stack, task, self.options, self.items, memory)
        self._here, self._read = self._step.open(executor.runtimes), executor.reader(self.items)

    @cached_property
    def rows(self) -> pa.Table:
        """The rows of all inferences, once the campaign is over."""
        return self._rows()

    @cached_property
    def sizes(self) -> list[tuple[int, int] | None]:
        """Rows and columns of each sample; None where it is no image."""
        return [size_of(self._read(item.name).source) for item in self.items]

    @property
    def per_second(self) -> float | None:
        """Inferences a second; None where some were done by an earlier attempt."""
        return self._new / self._spent if self._new == self._ran else None

    def canary(self) -> None:
        """Make sure that a changed weight of each layer changes an output.

        Raises:
            Unsupported: one does not.
        """
        sites = self.injector.sites
        stored = [
            at
            for at in self.population.chosen
            if sites[at].target in (Target.WEIGHTS, Target.BIASES)
        ]
        self._session.show.say(f"{self.stack.side}: does a flipped bit reach every layer?")
        self._here.canary(stored, [item.name for item in self.items], self._read)

    def run(self, numbers: range) -> None:
        """Put in the faults of these numbers; parts of an earlier attempt are kept."""
        started, session = time.perf_counter(), self._session
        each = len(self.items) if self._campaign.permanent else 1
        session.show.say(f"{self.stack.side}: {self._campaign.spec.name}")
        pilot = max(numbers.start, min(self.population.allocation.pilot, numbers.stop))
        total = self._ran + len(numbers) * each
        self._chunks(range(numbers.start, pilot), max(DRAWN // each, 1), total)
        if self.population.allocation.pilot and not self.weights:
            self.weights = self._leader.weights or learnt(self.population, self._rows())
        self._chunks(range(pilot, numbers.stop), max(DRAWN // each, 1), total)
        self._spent += time.perf_counter() - started

    def _chunks(self, numbers: range, size: int, total: int) -> None:
        for first in range(numbers.start, numbers.stop, size):
            self._chunk(numbers[first - numbers.start :][:size], total)

    def _chunk(self, numbers: range, total: int) -> None:
        session, items = self._session, self.items
        drawn = (
            self.population.draw(number, session.seed, len(items), self.weights)
            for number in numbers
        )
        every = {
            f"{numbers.start:09}-{part.name}": part
            for part in parts(drawn, items, self._here.block(self._read))
        }
        new = {name for name in every if not self._table.has(self._number, name)}
        jobs = [job for name in every if name in new for job in every[name].jobs]
        found_by_job = session.executor.map(self._step, jobs)
        with closing(found_by_job) as results:
            for name, part in every.items():
                if name in new:
                    found = [self._rows_of(job, next(results)) for job in part.jobs]
                    rows = sorted(chain(*found), key=lambda row: (row["fault"], row["at"]))
                    self._table.add(self._number, name, rows)
                    self._new += part.inferences
                self._names.append(name)
                self._ran += part.inferences
                session.show.advance(self._ran, total)

    def _rows_of(self, job: Job[Hits], found: list[Row] | StageError) -> list[Row]:
        """The rows of a job; of one that has ended every process that tried it, why."""
        if not isinstance(found, StageError):
            return found
        told = {"skipped": str(found)}
        return [row_of(self.stack.side, hit, self.injector) | told for hit in job.argument]

    def again(self, fault: int, at: int) -> tuple[Impact, Any] | None:
        """Run an inference again; see :meth:`simulator.faults.inject.OpenedInjection.again`."""
        items = self.items
        drawn = self.population.draw(fault, self._session.seed, len(items), self.weights)
        return self._here.again(Hit(drawn, at, items[at].name), self._read)

    def further(self, done: int, width: float) -> int:
        """Return how many more faults the interval of SDC needs to be no wider than asked.

        Args:
            done: how many there were.
            width: from the lower to the upper end.
        """
        rows = ran(self._rows())
        found = Rates(self._campaign, self.population, rows, done, 0, self._session.seed)
        return further(found, rows["sdc"], width)

    def _rows(self) -> pa.Table:
        return self._table.read(self._number, self._names)
