"""What a run keeps of the samples that are through: their names in memory, the rest in a file.

A sample costs the memory of a few numbers. The file is temporary, without a name, and gone with the
process; what outlives it are the records that a run writes.
"""

from __future__ import annotations

import tempfile
from array import array
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any, overload

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from simulator.data.folder import Item
from simulator.errors import RunError
from simulator.experiments.answers import Answers, StackRecords
from simulator.experiments.failures import Tried, tallied
from simulator.pipeline.executor import Outcome, SampleResult
from simulator.results.times import MAP
from simulator.tasks.score import each
from simulator.tasks.task import Task

BLOCK = 256
"""Samples that are written together; fewer where they have :data:`ROWS`."""
ROWS = 4096
"""Outcomes that are held in memory at most, but for those of one more sample."""
IN_MEMORY = 2**20
"""Bytes that are held in memory before there is a file."""


class RecordStore(Sequence[SampleResult]):
    """The results of samples, in the order in which they were appended.

    Read one after the other they are made again, a block at a time; :meth:`records` gives a stack's
    without making more of them than are looked at. A sample need not have run on every stack.

    Args:
        task: what the records are of.
        folder: where the file is; None: where the system keeps temporary ones.

    Attributes:
        items: the samples.
        why: of those that did not go through every stack the first reason, by their number.
        failed: of those that some stacks have answered, which failed and why, by their number.
    """

    def __init__(self, task: Task, folder: Path | None = None) -> None:
        self.task, self._fields = task, task.columns
        self.names = tuple(field.name for field in task.columns)
        own = (pa.field("digest", pa.string()), pa.field("ns", MAP))
        self.schema = pa.schema([*task.columns, *own])
        self.items: list[Item] = []
        self.why: dict[int, str] = {}
        self.failed: dict[int, Mapping[int, str]] = {}
        self._groups: dict[tuple[str, ...], int] = {}
        self._of = array("q")
        self._folder = folder
        place = None if folder is None else str(folder)
        self._file = tempfile.SpooledTemporaryFile(IN_MEMORY, dir=place)  # noqa: SIM115
        self._ends, self._starts, self._places = array("q", [0]), array("q"), array("q", [0])
        self._waiting: list[Outcome] = []
        self._made: tuple[int, list[dict[str, Any]]] = (-1, [])

    def append(self, done: SampleResult, stacks: tuple[str, ...]) -> None:
        """Keep one more; not what a watch function returned.

        Args:
            done: the sample.
            stacks: what it ran on, in the order of its outcomes.

        Raises:
            RunError: the file cannot be written.
        """
        self._of.append(self._groups.setdefault(stacks, len(self._groups)))
        if done.skipped is not None:
            self.why[len(self.items)] = done.skipped
        if done.failed:
            self.failed[len(self.items)] = done.failed
        self.items.append(done.item)
        self._waiting += done.outcomes
        self._ends.append(self._ends[-1] + len(done.outcomes))
        if len(self.items) % BLOCK == 0 or len(self._waiting) >= ROWS:
            self._write()

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
        return StackRecords(self, np.array(self._ends, np.int64)[which] + arms[groups])

    def records(self, stack: str) -> StackRecords:
        """Return the records of one stack, of the samples that were not skipped."""
        return self.of(stack, [at for at in self.ran_on(stack) if at not in self.why])

    def answers(self, *stacks: str) -> Answers:
        """Return the records of stacks, on the samples that all of them were run on."""
        taken = self.ran_on(*stacks)
        ran = [at for at in taken if at not in self.why]
        broken = [one for one in self.partly(*stacks) if len(one.failed) < len(stacks)]
        records = tuple(self.of(name, ran) for name in stacks)
        return Answers(
            self.task,
            stacks,
            tuple(self.items[at] for at in ran),
            records,
            np.array([list(each(one, "digest")) for one in records], np.bytes_),
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
    ) -> dict[str, Any]:
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
                one.sample,
                list(dict.fromkeys(called[name] for name in one.stacks)),
                {called[name]: why for name, why in one.failed.items()},
            )
            for one in self.partly()
        ]
        return tallied(broken, stacks, reference, whole)

    def column(self, name: str, rows: NDArray[np.int64]) -> pa.ChunkedArray:
        """Return (rows,) of one column: of a record, ``digest`` or ``ns``."""
        chunks = [table[name] for table in self.tables([name], rows)]
        kind = self.schema.field(name).type
        return pa.chunked_array([one for each in chunks for one in each.chunks], kind)

    def tables(self, names: Sequence[str], rows: NDArray[np.int64]) -> Iterator[pa.Table]:
        """Yield some columns of some rows, in their order; a block is read where it changes."""
        self._write()
        blocks = np.searchsorted(np.array(self._starts, np.int64), rows, side="right") - 1
        borders = np.flatnonzero(np.diff(blocks, prepend=-1, append=-1)).tolist()
        for low, high in pairwise(borders):
            block = int(blocks[low])
            own = pa.array(rows[low:high] - self._starts[block])
            yield self._read(block, names).take(own)

    @overload
    def __getitem__(self, at: int) -> SampleResult: ...
    @overload
    def __getitem__(self, at: slice) -> list[SampleResult]: ...
    def __getitem__(self, at: int | slice) -> SampleResult | list[SampleResult]:
        """Make the result of a sample again."""
        if isinstance(at, slice):
            return [self[one] for one in range(*at.indices(len(self)))]
        at = range(len(self))[at]
        if at in self.why:
            return SampleResult(self.items[at], (), self.why[at], failed=self.failed.get(at, {}))
        low, high = self._ends[at], self._ends[at + 1]
        return SampleResult(self.items[at], tuple(self._outcome(row) for row in range(low, high)))

    def __len__(self) -> int:
        return len(self.items)

    def row(self, number: int) -> Mapping[str, Any]:
        """Return all columns of one row."""
        self._write()
        block = int(np.searchsorted(self._starts, number, side="right")) - 1
        if self._made[0] != block:
            self._made = block, self._read(block, self.schema.names).to_pylist()
        return self._made[1][number - self._starts[block]]

    def _outcome(self, number: int) -> Outcome:
        row = self.row(number)
        record = {name: row[name] for name in self.names}
        return Outcome(record, row["digest"], dict(row["ns"] or ()))

    def _write(self) -> None:
        """Write what waits as a block."""
        waiting, self._waiting = self._waiting, []
        if not waiting:
            return
        records = [one.record for one in waiting]
        columns = [
            *(pa.array([one.get(f.name) for one in records], f.type) for f in self._fields),
            pa.array([one.digest for one in waiting], pa.string()),
            pa.array([list(one.ns.items()) for one in waiting], MAP),
        ]
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, self.schema) as stream:
            stream.write_batch(pa.record_batch(columns, schema=self.schema))
        data = sink.getvalue()
        try:
            self._file.seek(self._places[-1])
            self._file.write(data)
            self._file.flush()
        except OSError as error:
            with suppress(OSError):  # of what the file still has in memory
                self._file.close()
            where = self._folder or tempfile.gettempdir()
            raise RunError(
                f"{where}: the records cannot be kept there: {error.strerror or error}; make room, "
                "then: simulate resume RUN"
            ) from error
        self._starts.append(self._ends[-1] - len(waiting))
        self._places.append(self._places[-1] + len(data))

    def _read(self, block: int, names: Sequence[str]) -> pa.Table:
        place = self._places[block]
        self._file.seek(place)
        data = self._file.read(self._places[block + 1] - place)
        fields = sorted(self.schema.get_field_index(name) for name in names)
        options = pa.ipc.IpcReadOptions(included_fields=fields)
        return pa.ipc.open_stream(pa.BufferReader(data), options=options).read_all()
