"""Runs on disk: ``manifest.json``, ``records.parquet``, ``summary.json``.

A folder is a finished run if and only if its manifest says ``"status": "complete"``, which is
written last; ``"reporting"`` says that the report alone is lacking. Until the records are whole
they lie in ``parts/`` (:mod:`simulator.results.parts`), and a run can be resumed after them.
"""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from time import monotonic
from types import TracebackType
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from simulator.errors import RunError
from simulator.files import make_durable
from simulator.results.json_text import write_json
from simulator.results.layout import MANIFEST, PARTS, RECORDS, ROUNDS, SUMMARY
from simulator.results.lock import Lock, tell_resume
from simulator.results.manifest import RunManifest, Status, TimeSpent
from simulator.results.parts import ROWS_PER_GROUP, Parts, Rows, write_part
from simulator.results.read import read_manifest, read_table
from simulator.results.run_folder import check_empty, check_free, check_same, clear
from simulator.results.shared import Summary
from simulator.results.times import MAP
from simulator.spent import Work, spending
from simulator.typed import plain

CHUNK = 32
"""Samples whose records are made durable together; more where they take less than :data:`PAUSE`."""
PAUSE = 0.5
"""Seconds of work that are lost at most when the power goes, where samples are short."""
SLICE = 1024
"""Rows of an earlier attempt that are in memory as Python objects."""


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


Report = Callable[[Path], object]
"""Writes the report of the run in a folder."""


class RunWriter:
    """A run that is being written; use it as a context manager.

    Args:
        folder: where the run goes; made if it is not there.
        manifest: what is known before the first sample, as :class:`RunManifest` has it.
        columns: of the task's records.
        overwrite: replace a run that is already there.
        resume: go on after what is already there; the manifest must be that of the same run.
        report: writes the report before the run is marked complete; None: there is none.
        note: told what the user should know, for example that a dead process was replaced.
        time: tells at the end where the time went; None: it is told elsewhere.

    Raises:
        RunError: another process writes into the folder, or it holds a run already, or another
            one, or cannot be written.
    """

    def __init__(
        self,
        folder: Path,
        manifest: Mapping[str, Any],
        columns: Sequence[pa.Field],
        overwrite: bool,
        resume: bool = False,
        report: Report | None = None,
        note: Callable[[str], None] = lambda what: None,
        time: Callable[[], TimeSpent] | None = None,
    ) -> None:
        self.folder = folder
        self._report, self._time = report, time
        self._status: Status = "running"
        self._schema = schema(columns)
        self._manifest = {**manifest, "run": uuid.uuid4().hex[:12]}
        self._buffer: list[Rows] = []
        self._written, self._durable = 0, -PAUSE
        if not resume:
            check_free(folder, overwrite)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._lock = Lock(folder, note)
            try:
                self._begin(overwrite, resume)
            except BaseException:
                self._lock.close()
                raise
        except OSError as error:
            raise self._cannot(error) from error

    def _begin(self, overwrite: bool, resume: bool) -> None:
        """Make the folder ready, which is ours alone."""
        if resume and (self.folder / MANIFEST).is_file():
            self._manifest["run"] = check_same(self.folder, self._manifest)
        else:
            check_empty(self.folder, overwrite)
            (self.folder / RECORDS).unlink(missing_ok=True)  # else taken for the new run's
            self._write_manifest("running")
            clear(self.folder)
        (self.folder / PARTS).mkdir(exist_ok=True)
        self._write_manifest("running")

    def kept(self) -> Iterator[Rows]:
        """Yield the records of the samples that an earlier attempt finished, in order.

        Take them all before the first :meth:`add`.

        Raises:
            RunError: they are damaged.
        """
        try:
            for _, rows in groupby(_rows(self._tables()), itemgetter("sample")):
                self._written += 1
                yield list(rows)
        except (OSError, pa.ArrowException) as error:
            raise RunError(f"{self.folder}: its records are damaged: {error}") from error

    def add(self, rows: Rows) -> None:
        """Append one sample's rows of :func:`schema`; a chunk at a time is made durable."""
        self._buffer.append(rows)
        if len(self._buffer) >= CHUNK and monotonic() - self._durable >= PAUSE:
            self._flush()

    def finish(self, summary: Summary, manifest: Mapping[str, Any]) -> None:
        """Write what is left, then the report, and mark the run complete.

        Args:
            summary: the content of ``summary.json``.
            manifest: what became known during the run, added to the manifest.
        """
        self._flush()
        self._manifest |= manifest
        try:
            with spending(Work.WRITING):
                if not (self.folder / RECORDS).is_file():
                    _write_tables(self._tables(), self._schema, self.folder / RECORDS)
                write_json(self.folder / SUMMARY, summary)
            if self._report:
                self._write_manifest("reporting")
                with spending(Work.REPORT):
                    self._report(self.folder)
            if self._time:
                self._manifest["time"] = plain(self._time())
            self._write_manifest("complete")
            _clean(self.folder)
            self._lock.close()
        except OSError as error:
            raise self._cannot(error) from error

    def write_table(self, name: str, table: pa.Table) -> None:
        """Write another table of the run, whole or not at all; *name* may name a folder of it.

        A round gets a checksum, as the parts of the records do.
        """
        place = self.folder / name
        try:
            place.parent.mkdir(exist_ok=True)
            (write_part if place.parent.name == ROUNDS else _write_table)(table, place)
        except OSError as error:
            raise self._cannot(error) from error

    def write_file(self, name: str, content: bytes) -> None:
        """Write another file of the run; *name* may name folders of it."""
        place = self.folder / name
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content)
        except OSError as error:
            raise self._cannot(error) from error

    def records(self) -> pa.Table:
        """Return the records of all samples so far, in order."""
        self._flush()
        return pa.concat_tables([self._schema.empty_table(), *self._tables()]).combine_chunks()

    def _tables(self) -> Iterator[pa.Table]:
        if (self.folder / RECORDS).is_file():
            yield read_table(self.folder / RECORDS, self._schema)
        else:
            yield from self._parts().tables()

    def _parts(self) -> Parts:
        return Parts(self.folder, self._manifest["run"], self._schema)

    def _flush(self) -> None:
        if not self._buffer:
            return
        try:
            with spending(Work.WRITING):
                self._parts().write(self._buffer, self._written)
        except OSError as error:
            raise self._cannot(error) from error
        self._written += len(self._buffer)
        self._buffer, self._durable = [], monotonic()

    def _write_manifest(self, status: Status) -> None:
        with spending(Work.WRITING):
            whole = RunManifest.model_validate({"status": status, **self._manifest})
            write_json(self.folder / MANIFEST, whole)
        self._status = status

    def _cannot(self, error: OSError) -> RunError:
        why = error.strerror or error
        rounds = len(list((self.folder / ROUNDS).glob("*.parquet")))
        if self._written or rounds:
            safe = f"{rounds} rounds are safe" if rounds else f"{self._written} samples are safe"
            return RunError(
                f"{self.folder}: cannot be written: {why}; {safe}: "
                f"make room, then: simulate resume {self.folder}"
            )
        return RunError(f"{self.folder}: cannot be written: {why}; choose another --out")

    def __enter__(self) -> RunWriter:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None or self._status == "complete":
            self._lock.close()
            return
        tell_resume(error, self.folder)
        try:
            self._flush()
            if self._status != "reporting":
                self._write_manifest("interrupted")
        except (OSError, RunError):  # what stopped the run is the reason that reaches the user
            pass
        finally:
            self._lock.close()


def _rows(tables: Iterable[pa.Table]) -> Iterator[dict[str, Any]]:
    for table in tables:
        for batch in table.to_batches(max_chunksize=SLICE):
            yield from batch.to_pylist()


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


def _write_table(table: pa.Table, place: Path) -> None:
    _write_tables([table], table.schema, place)


def _write_tables(tables: Iterable[pa.Table], columns: pa.Schema, place: Path) -> None:
    """Write tables as one, with no more than a group of rows in memory."""
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


def complete(folder: Path, report: Report, note: Callable[[str], None]) -> None:
    """Finish a run that lacks but its report.

    Raises:
        RunError: it cannot be written.
    """
    try:
        with Lock(folder, note):
            manifest = read_manifest(folder)
            report(folder)
            write_json(folder / MANIFEST, {**manifest, "status": "complete"})
            _clean(folder)
    except OSError as error:
        raise RunError(f"{folder}: cannot be written: {error.strerror or error}") from error


def _clean(folder: Path) -> None:
    """Remove what a finished run needs no more."""
    for inner in (PARTS, ROUNDS):
        shutil.rmtree(folder / inner, ignore_errors=True)
