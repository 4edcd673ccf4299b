"""What a run keeps of the samples that are through: their names in memory, the rest in a file.

A sample costs the memory of a few numbers. The file is temporary, without a name, and gone with the
process; what outlives it are the records that a run writes.
"""

from __future__ import annotations

import tempfile
from array import array
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
from simulator.pipeline.executor import Done, Outcome
from simulator.results.times import MAP, Ints, from_map
from simulator.tasks.score import Columns, Record
from simulator.tasks.task import Task

BLOCK = 256
"""Samples that are written together; fewer where they have :data:`ROWS`."""
ROWS = 4096
"""Outcomes that are held in memory at most, but for those of one more sample."""
IN_MEMORY = 2**20
"""Bytes that are held in memory before there is a file."""


class Kept(Sequence[Done]):
    """The results of samples, in the order in which they were appended.

    Read one after the other they are made again, a block at a time; :meth:`records` gives a stack's
    without making more of them than are looked at.

    Args:
        task: what the records are of.
        folder: where the file is; None: where the system keeps temporary ones.

    Attributes:
        items: the samples.
        why: of those that did not go through every stack the first reason, by their number.
        failed: of those that some stacks have answered, which failed and why, by their number.
    """

    def __init__(self, task: Task, folder: Path | None = None) -> None:
        self._fields = task.columns
        self.names = tuple(field.name for field in task.columns)
        own = (pa.field("digest", pa.string()), pa.field("ns", MAP))
        self.schema = pa.schema([*task.columns, *own])
        self.items: list[Item] = []
        self.why: dict[int, str] = {}
        self.failed: dict[int, Mapping[int, str]] = {}
        self._folder = folder
        place = None if folder is None else str(folder)
        self._file = tempfile.SpooledTemporaryFile(IN_MEMORY, dir=place)  # noqa: SIM115
        self._ends, self._starts, self._places = array("q", [0]), array("q"), array("q", [0])
        self._waiting: list[Outcome] = []
        self._made: tuple[int, list[dict[str, Any]]] = (-1, [])

    def append(self, done: Done) -> None:
        """Keep one more; not what a watch function returned.

        Raises:
            RunError: the file cannot be written.
        """
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

    def rows(self, arms: Sequence[int | None]) -> NDArray[np.int64]:
        """Return the rows of one outcome of each sample, but for skipped ones.

        Args:
            arms: which outcome, for each sample; None leaves it out.
        """
        taken = [at for at, arm in enumerate(arms) if arm is not None and at not in self.why]
        return self.every_row(arms)[taken]

    def every_row(self, arms: Sequence[int | None]) -> NDArray[np.int64]:
        """Return (samples,) the rows of one outcome of each sample.

        Args:
            arms: which outcome, for each sample; where it is None, or the sample was skipped, the
                row is not one of it.
        """
        return np.array(self._ends, np.int64)[:-1] + np.array([arm or 0 for arm in arms], np.int64)

    def records(self, arm: int) -> Answered:
        """Return the records of one stack, of the samples that were not skipped."""
        return Answered(self, self.rows([arm] * len(self.items)))

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
    def __getitem__(self, at: int) -> Done: ...
    @overload
    def __getitem__(self, at: slice) -> list[Done]: ...
    def __getitem__(self, at: int | slice) -> Done | list[Done]:
        """Make the result of a sample again."""
        if isinstance(at, slice):
            return [self[one] for one in range(*at.indices(len(self)))]
        at = range(len(self))[at]
        if at in self.why:
            return Done(self.items[at], (), self.why[at], failed=self.failed.get(at, {}))
        low, high = self._ends[at], self._ends[at + 1]
        return Done(self.items[at], tuple(self._outcome(row) for row in range(low, high)))

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


class Answered(Columns):
    """Records of one stack.

    Args:
        kept: where they are.
        rows: which ones; those of a block are best together.
    """

    def __init__(self, kept: Kept, rows: NDArray[np.int64]) -> None:
        self._kept, self._rows = kept, rows

    def column(self, name: str) -> pa.ChunkedArray:
        """Return (records,) of one column; ``digest`` and ``ns`` are beside the records."""
        return self._kept.column(name, self._rows)

    def ns(self) -> dict[str, Ints]:
        """Return (records,) nanoseconds of each stage; see :mod:`simulator.results.times`."""
        return from_map(self.column("ns"))

    def chosen(self, which: NDArray[np.intp]) -> Answered:
        """Return some of them, by their numbers."""
        return Answered(self._kept, self._rows[which])

    @overload
    def __getitem__(self, at: int) -> Record: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[Record]: ...
    def __getitem__(self, at: int | slice) -> Record | Sequence[Record]:
        """Return one record, or some of them."""
        if isinstance(at, slice):
            return Answered(self._kept, self._rows[at])
        row = self._kept.row(int(self._rows[at]))
        return {name: row[name] for name in self._kept.names}

    def __iter__(self) -> Iterator[Record]:
        for table in self._kept.tables(self._kept.names, self._rows):
            yield from table.to_pylist()

    def __len__(self) -> int:
        return len(self._rows)
