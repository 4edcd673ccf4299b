"""The samples that are through, and their records: which ran on which stacks, and which failed.

The records themselves are in a :class:`simulator.results.record_table.RecordTable` and are read by
column; a sample costs the memory of a few numbers.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Mapping, Sequence, Sized

import numpy as np

from simulator.data.folder import Item
from simulator.errors import RunError
from simulator.experiments.answers import Answers, StackRecords
from simulator.experiments.failures import Tally, Tried, tallied
from simulator.pipeline.executor import Outcome, SampleResult
from simulator.pipeline.plan import Arm
from simulator.results.record_table import RecordTable, Row
from simulator.tasks.score import each
from simulator.tasks.task import Task


class RecordStore(Sized):
    """Samples in the order in which they were added, with their records.

    :meth:`records` gives those of a stack without making more of them than are looked at. A sample
    need not have run on every stack.

    Args:
        task: what the records are of.
        table: where they are written; None: in memory.

    Attributes:
        items: the samples.
        why: of those that did not go through every stack the first reason, by their number.
        failed: of those that some stacks have answered, which failed and why, by their number.
    """

    def __init__(self, task: Task, table: RecordTable | None = None) -> None:
        self.task = task
        self.table = RecordTable(task.columns) if table is None else table
        self.items: list[Item] = []
        self.why: dict[int, str] = {}
        self.failed: dict[int, Mapping[int, str]] = {}
        self._groups: dict[tuple[str, ...], int] = {}
        self._of = array("q")
        self._starts, self._rows = array("q"), 0

    def add(
        self,
        done: SampleResult,
        arms: Sequence[Arm],
        timed: bool = False,
        stacks: tuple[str, ...] | None = None,
    ) -> None:
        """Write the records of one more sample; not what a watch function returned.

        Args:
            done: the sample.
            arms: as records call them, in the order of its outcomes.
            timed: whether latencies are recorded; they differ from run to run.
            stacks: what :meth:`records` and others call the arms; None: as records do.

        Raises:
            RunError: the records cannot be written.
        """
        self.table.add(_rows_of(done, arms, timed))
        self._append(done, stacks or tuple(arm.stack for arm in arms))

    def restore(
        self,
        item: Item,
        rows: Sequence[Row],
        arms: Sequence[Arm],
        stacks: tuple[str, ...] | None = None,
    ) -> SampleResult:
        """Take a sample whose records an earlier attempt has written, and return its result.

        Args:
            item: the sample.
            rows: its records, see :meth:`simulator.results.record_table.RecordTable.earlier`.
            arms: see :meth:`add`.
            stacks: see :meth:`add`.

        Raises:
            RunError: they are of other arms.
        """
        found = [(row["side"], row["condition"] or "") for row in rows]
        if found != [(arm.stack, arm.condition) for arm in arms]:
            raise RunError(
                f"{self.table.folder}: its records are of other options; start a new run"
            )
        done = _result_of(self.task, item, rows)
        self._append(done, stacks or tuple(arm.stack for arm in arms))
        return done

    def _append(self, done: SampleResult, stacks: tuple[str, ...]) -> None:
        self._of.append(self._groups.setdefault(stacks, len(self._groups)))
        if done.skipped is not None:
            self.why[len(self.items)] = done.skipped
        if done.failed:
            self.failed[len(self.items)] = done.failed
        self.items.append(done.item)
        self._starts.append(self._rows)
        self._rows += len(stacks)

    def __len__(self) -> int:
        return len(self.items)

    @property
    def ran(self) -> list[Item]:
        """The samples that went through every stack."""
        return [item for at, item in enumerate(self.items) if at not in self.why]

    @property
    def skipped(self) -> list[tuple[Item, str]]:
        """The samples that no stack has answered, each with the reason."""
        return [(self.items[at], why) for at, why in self.why.items() if at not in self.failed]

    @property
    def stacks(self) -> list[tuple[str, ...]]:
        """For each sample the stacks that it ran on."""
        known = [*self._groups]
        return [known[group] for group in self._of]

    def ran_on(self, *stacks: str) -> list[int]:
        """Return the samples, skipped ones too, that all of some stacks were run on."""
        known = [{*stacks} <= {*own} for own in self._groups]
        return [at for at, group in enumerate(self._of) if known[group]]

    def of(self, stack: str, samples: Sequence[int]) -> StackRecords:
        """Return the records of one stack for some samples that went through it."""
        arms = np.array([own.index(stack) if stack in own else 0 for own in self._groups], np.int64)
        which = np.array(samples, np.int64)
        groups = np.array(self._of, np.int64)[which]
        rows = np.array(self._starts, np.int64)[which] + arms[groups]
        return StackRecords(self.table, [column.name for column in self.task.columns], rows)

    def records(self, stack: str) -> StackRecords:
        """Return the records of one stack, of the samples that were not skipped."""
        return self.of(stack, [at for at in self.ran_on(stack) if at not in self.why])

    def answers(self, *stacks: str) -> Answers:
        """Return the records of stacks, on the samples that all of them were run on."""
        taken = self.ran_on(*stacks)
        ran = [at for at in taken if at not in self.why]
        broken = [tried for tried in self.partly(*stacks) if len(tried.failed) < len(stacks)]
        records = tuple(self.of(name, ran) for name in stacks)
        return Answers(
            self.task,
            stacks,
            tuple(self.items[at] for at in ran),
            records,
            np.array([list(each(record, "digest")) for record in records], np.bytes_),
            len(taken) - len(ran) - len(broken),
            tuple(broken),
        )

    def partly(self, *stacks: str) -> list[Tried]:
        """Return the samples that some of the stacks that ran have answered, and others not.

        Args:
            stacks: those that are told of, of samples that all of them were run on; by default all
                that a sample was run on.
        """
        every, wanted = self.stacks, {*stacks}
        return [
            Tried(
                self.items[at].name,
                stacks or own,
                {own[arm]: why for arm, why in failed.items() if not stacks or own[arm] in wanted},
            )
            for at, failed in self.failed.items()
            for own in (every[at],)
            if wanted <= {*own}
        ]

    def failures(
        self, stacks: Sequence[str], reference: str | None, of: Mapping[str, str] | None = None
    ) -> Tally:
        """Return ``failed`` and ``failures`` of a summary.

        Args:
            stacks: their names.
            reference: the one that the others are compared with; None: there is none.
            of: the stack of each name that samples ran on, where that is not the name itself.
        """
        called = of or {name: name for name in stacks}
        whole = Counter(
            name
            for at, own in enumerate(self.stacks)
            if at not in self.why
            for name in {called[one] for one in own}
        )
        broken = [
            Tried(
                tried.sample,
                list(dict.fromkeys(called[name] for name in tried.stacks)),
                {called[name]: why for name, why in tried.failed.items()},
            )
            for tried in self.partly()
        ]
        return tallied(broken, stacks, reference, whole)


def _rows_of(done: SampleResult, arms: Sequence[Arm], timed: bool) -> list[Row]:
    """A sample's records, one per arm."""
    shared = {"sample": done.item.name}
    cells = [
        {**shared, "side": arm.stack, "condition": arm.condition or None, "trial": arm.trial}
        for arm in arms
    ]
    if done.skipped is not None:
        return [
            {
                **cell,
                "skipped": done.failed.get(at, done.skipped),
                "failed": at in done.failed or not done.failed,
            }
            for at, cell in enumerate(cells)
        ]
    return [
        {
            **cell,
            **outcome.record,
            "digest": outcome.digest,
            "ns": list(outcome.ns.items()) if timed else None,
        }
        for cell, outcome in zip(cells, done.outcomes, strict=True)
    ]


def _result_of(task: Task, item: Item, rows: Sequence[Row]) -> SampleResult:
    """A sample's result from its records, one per arm; inverse of :func:`_rows_of`."""
    if rows[0]["skipped"] is not None:
        failed = {at: row["skipped"] for at, row in enumerate(rows) if row["failed"]}
        why = next(iter(failed.values()))
        return SampleResult(item, (), why, failed=failed if len(failed) < len(rows) else {})
    outcomes = [
        Outcome(
            {column.name: row[column.name] for column in task.columns},
            row["digest"],
            dict(row["ns"] or ()),
        )
        for row in rows
    ]
    return SampleResult(item, tuple(outcomes))
