"""The records of a run as one table: written once, a chunk of samples at a time, read by column.

While samples run each chunk is a part (:mod:`simulator.results.parts`) in ``parts/``; when all are
through, the parts become ``records.parquet``. Without a folder the chunks stay in memory.
"""

from __future__ import annotations

import os
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import groupby, pairwise
from operator import itemgetter
from pathlib import Path
from time import monotonic
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from simulator.errors import RunError, one_line
from simulator.files import make_durable
from simulator.results.layout import PARTS, RECORDS
from simulator.results.parts import AGAIN, ROWS_PER_GROUP, read_part, write_part
from simulator.results.record_file import RecordFile
from simulator.results.run_folder import cannot_be_written
from simulator.results.times import MAP
from simulator.spent import Work, spending

CHUNK = 32
"""Samples whose records are made durable together; more where they take less than :data:`PAUSE`."""
PAUSE = 0.5
"""Seconds of work that are lost at most when the power goes, where samples are short."""
MOST = 4096
"""Rows that wait for being written at most, but for those of one more sample."""
SLICE = 1024
"""Rows that are in memory as Python objects."""
Row = dict[str, Any]
"""A record by column: of one sample, one stack, one condition and one trial."""
Reader = Callable[[Sequence[str]], pa.Table]
"""Reads some columns of a chunk."""


def schema(columns: Sequence[pa.Field]) -> pa.Schema:
    """Return the schema of the records: one row per cell: a sample, a stack, a condition, a trial.

    ``condition`` is as it was asked for, null where there was none, and ``trial`` is which draw of
    it. ``skipped`` holds the reason why the sample was left out, else null; ``failed`` is then
    whether this stack failed on it, else null: where all have failed, no stack could answer. ``ns``
    has the wall-clock nanoseconds of every timed stage that the stack has, null where the run was
    not timed.

    Args:
        columns: those of the task.
    """
    return pa.schema(
        [
            pa.field("sample", pa.string(), nullable=False),
            pa.field("side", pa.string(), nullable=False),
            pa.field("condition", pa.string()),
            pa.field("trial", pa.int32(), nullable=False),
            *columns,
            pa.field("digest", pa.string()),
            pa.field("skipped", pa.string()),
            pa.field("failed", pa.bool_()),
            pa.field("ns", MAP),
        ]
    )


class RecordTable:
    """Records of samples, in the order in which they were added.

    Args:
        columns: of the task's records; see :func:`schema`.
        folder: of the run; None: the chunks stay in memory.
        run: by which its parts are named; None: those of an earlier version, without a name.
        inner: the folder of the parts; only those in ``parts/`` become ``records.parquet``.

    Attributes:
        folder: of the run; None: the chunks are in memory.
        schema: of all columns.
        written: how many samples are in chunks, and so on the disk where there is a folder.
    """

    def __init__(
        self,
        columns: Sequence[pa.Field],
        folder: Path | None = None,
        run: str | None = None,
        inner: str = PARTS,
    ) -> None:
        self.schema = schema(columns)
        self.written = 0
        self.folder, self._inner = folder, inner
        self._prefix = "" if run is None else f"{run}-"
        self._waiting: list[list[Row]] = []
        self._rows, self._written_at = 0, -PAUSE
        self._forget_chunks()

    def add(self, rows: list[Row]) -> None:
        """Append the rows of one sample; they are written together with those of others.

        Raises:
            RunError: they cannot be written.
        """
        self._waiting.append(rows)
        self._rows += len(rows)
        in_time = len(self._waiting) < CHUNK or monotonic() - self._written_at < PAUSE
        if not in_time or self._rows >= MOST:
            self.flush()

    def flush(self) -> None:
        """Write what waits as one chunk.

        Raises:
            RunError: it cannot be written.
        """
        if not self._waiting:
            return
        rows = [row for sample in self._waiting for row in sample]
        with self._writing():
            chunk = pa.Table.from_pylist(rows, self.schema)
            self._append(self._kept(chunk), len(rows))
        self.written += len(self._waiting)
        self._waiting, self._rows, self._written_at = [], 0, monotonic()

    def earlier(self) -> Iterator[list[Row]]:
        """Yield the rows of every sample that an earlier attempt finished, in order.

        Take them all before the first :meth:`add`.

        Raises:
            RunError: a part is damaged or of another version, or one is missing before another.
        """
        for _, rows in groupby(self._earlier_rows(), itemgetter("sample")):
            self.written += 1
            yield list(rows)

    def join(self) -> None:
        """Write ``records.parquet`` now that every sample was added; columns are read from it.

        Raises:
            RunError: it cannot be written, or see :meth:`earlier`.
        """
        self.flush()
        if self.folder is None:
            return
        place = self.folder / RECORDS
        if not place.is_file():
            with self._writing():
                write_tables(self._parts(), self.schema, place)
        self._read_file(RecordFile(self.folder))

    def table(self) -> pa.Table:
        """Return the records of all samples."""
        self.flush()
        whole = [self.schema.empty_table(), *(read(self.schema.names) for read in self._readers)]
        return pa.concat_tables(whole).combine_chunks()

    def columns(self, names: Sequence[str], rows: NDArray[np.int64]) -> Iterator[pa.Table]:
        """Yield some columns of some rows, in their order; best of rows that ascend.

        Args:
            names: of the columns.
            rows: by their number, from 0.
        """
        self.flush()
        chunks = np.searchsorted(np.array(self._ends, np.int64), rows, side="right")
        borders = np.flatnonzero(np.diff(chunks, prepend=-1, append=-1)).tolist()
        for low, high in pairwise(borders):
            chunk = int(chunks[low])
            start = self._ends[chunk - 1] if chunk else 0
            yield self._readers[chunk](names).take(pa.array(rows[low:high] - start))

    def column(self, name: str, rows: NDArray[np.int64]) -> pa.ChunkedArray:
        """Return (rows,) of one column."""
        chunks = [chunk for column in self.columns([name], rows) for chunk in column[name].chunks]
        return pa.chunked_array(chunks, self.schema.field(name).type)

    def _kept(self, chunk: pa.Table) -> Reader:
        """Keep a chunk, as a part where there is a folder; return what reads its columns."""
        if self.folder is None:
            return cast(Reader, chunk.select)
        place = self._part(self.written)
        if not place.parent.is_dir():
            place.parent.mkdir()
            make_durable(self.folder)
        write_part(chunk, place)
        return partial(_columns_of_part, place)

    @contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            with spending(Work.WRITING):
                yield
        except OSError as error:
            assert self.folder is not None
            raise cannot_be_written(self.folder, error, self.written) from error

    def _forget_chunks(self) -> None:
        self._readers: list[Reader] = []
        self._ends = array("q")

    def _append(self, read: Reader, rows: int) -> None:
        self._readers.append(read)
        self._ends.append((self._ends[-1] if self._ends else 0) + rows)

    def _read_file(self, file: RecordFile) -> None:
        """Read from ``records.parquet`` henceforth, a group of rows at a time."""
        self._forget_chunks()
        for number, rows in enumerate(file.groups):
            self._append(partial(file.group, number), rows)

    def _earlier_rows(self) -> Iterator[Row]:
        if self.folder is None:
            return
        if self._inner == PARTS and (self.folder / RECORDS).is_file():
            file = RecordFile(self.folder)
            self._refuse_other(self.folder / RECORDS, file.schema)
            self._read_file(file)
            tables = file.batches(SLICE)
        else:
            tables = self._parts(self._append)
        for table in tables:
            for batch in table.to_batches(max_chunksize=SLICE):
                yield from batch.to_pylist()

    def _parts(
        self, found: Callable[[Reader, int], None] = lambda read, rows: None
    ) -> Iterator[pa.Table]:
        """The records of each part, in order.

        Args:
            found: told what reads columns of a part, and its rows.
        """
        before, pattern = 0, f"{self._prefix}{'[0-9]' * 9}.parquet"
        for place in sorted(self._part(0).parent.glob(pattern)):
            expected = self._part(before)
            if place != expected:
                raise RunError(f"{place}: {expected.name} is missing before it; {AGAIN}")
            try:
                data = read_part(place)
                kept = pq.read_schema(pa.BufferReader(data))
                table = pq.read_table(pa.BufferReader(data), schema=self.schema)
            except (OSError, ValueError, pa.ArrowException) as error:
                raise RunError(f"{place}: damaged: {one_line(error)}; {AGAIN}") from error
            self._refuse_other(place, kept)
            before += pc.count_distinct(table["sample"]).as_py()
            found(partial(_columns_of_part, place), table.num_rows)
            yield table

    def _refuse_other(self, place: Path, kept: pa.Schema) -> None:
        if kept.names != self.schema.names:
            raise RunError(f"{place}: records of another version; start a new run")

    def _part(self, before: int) -> Path:
        """Where the part is that has so many samples before it."""
        assert self.folder is not None
        return self.folder / self._inner / f"{self._prefix}{before:09}.parquet"


def _columns_of_part(place: Path, names: Sequence[str]) -> pa.Table:
    with pa.OSFile(str(place)) as file:
        return pq.ParquetFile(file).read(list(names), use_threads=False)


def write_tables(tables: Iterable[pa.Table], columns: pa.Schema, place: Path) -> None:
    """Write tables as one file, whole or not at all, with no more than a group of rows in memory.

    Raises:
        OSError: it cannot be written.
    """
    draft = place.with_name(f".{place.name}.part")
    with draft.open("wb") as file:
        with pq.ParquetWriter(file, columns, write_page_checksum=True) as writer:
            for group in _groups(tables):
                writer.write_table(group.combine_chunks(), row_group_size=ROWS_PER_GROUP)
                pa.default_memory_pool().release_unused()
        file.flush()
        os.fsync(file.fileno())
    os.replace(draft, place)
    make_durable(place.parent)


def _groups(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """Put tables together that have :data:`ROWS_PER_GROUP` rows, but for the last one."""
    waiting: list[pa.Table] = []
    count = 0
    for table in tables:
        waiting.append(table)
        count += table.num_rows
        while count >= ROWS_PER_GROUP:
            whole = pa.concat_tables(waiting)
            yield whole.slice(0, ROWS_PER_GROUP)
            waiting = [whole.slice(ROWS_PER_GROUP)]
            count -= ROWS_PER_GROUP
    if count:
        yield pa.concat_tables(waiting)
