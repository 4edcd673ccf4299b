"""Runs on disk: ``manifest.json``, ``records.parquet``, ``summary.json``.

A folder is a finished run if and only if its manifest says ``"status": "complete"``, which is
written last; ``"reporting"`` says that the report alone is lacking. What was recorded until then
(:mod:`simulator.results.record_table`) is kept, and a run can be resumed after it.
"""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType

import pyarrow as pa

from simulator.errors import RunError
from simulator.results.json_text import write_json
from simulator.results.layout import ALONE, MANIFEST, PARTS, RECORDS, ROUNDS, SUMMARY
from simulator.results.lock import Lock, tell_resume
from simulator.results.manifest import RunManifest, Status, TimeSpent
from simulator.results.parts import write_part
from simulator.results.read import read_manifest
from simulator.results.record_table import RecordTable, write_tables
from simulator.results.run_folder import (
    cannot_be_written,
    check_empty,
    check_free,
    check_same,
    clear,
)
from simulator.results.shared import Summary
from simulator.spent import Work, spending

Report = Callable[[Path], object]
"""Writes the report of the run in a folder."""


class RunWriter:
    """A run that is being written; use it as a context manager.

    Args:
        folder: where the run goes; made if it is not there.
        manifest: what is known before the first sample.
        columns: of the task's records.
        overwrite: replace a run that is already there.
        resume: go on after what is already there; the manifest must be that of the same run.
        report: writes the report before the run is marked complete; None: there is none.
        note: told what the user should know, for example that a dead process was replaced.
        time: tells at the end where the time went; None: it is told elsewhere.

    Attributes:
        folder: where the run is.
        records: of its samples.
        alone: of samples with each axis alone, while the run goes on.

    Raises:
        RunError: another process writes into the folder, or it holds a run already, or another
            one, or cannot be written.
    """

    def __init__(
        self,
        folder: Path,
        manifest: RunManifest,
        columns: Sequence[pa.Field],
        overwrite: bool,
        resume: bool = False,
        report: Report | None = None,
        note: Callable[[str], None] = lambda what: None,
        time: Callable[[], TimeSpent] | None = None,
    ) -> None:
        self.folder = folder
        self._report, self._time = report, time
        self._columns = columns
        self._manifest = manifest | {"run": uuid.uuid4().hex[:12]}
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
            raise cannot_be_written(folder, error) from error

    def _begin(self, overwrite: bool, resume: bool) -> None:
        """Make the folder ready, which is ours alone."""
        if resume and (self.folder / MANIFEST).is_file():
            self._manifest |= {"run": check_same(self.folder, self._manifest)}
        else:
            check_empty(self.folder, overwrite)
            (self.folder / RECORDS).unlink(missing_ok=True)  # else taken for the new run's
            self._write_manifest("running")
            clear(self.folder)
        run = self._manifest.run
        self.records = RecordTable(self._columns, self.folder, run)
        self.alone = RecordTable(self._columns, self.folder, run, ALONE)
        self._write_manifest("running")

    def finish(self, summary: Summary, manifest: Mapping[str, object]) -> None:
        """Write the summary, then the report, and mark the run complete.

        Args:
            summary: the content of ``summary.json``.
            manifest: what became known during the run, added to the manifest.
        """
        self.records.join()
        self._manifest |= manifest
        with self._writing():
            with spending(Work.WRITING):
                write_json(self.folder / SUMMARY, summary)
            if self._report:
                self._write_manifest("reporting")
                with spending(Work.REPORT):
                    self._report(self.folder)
            if self._time:
                self._manifest |= {"time": self._time()}
            self._write_manifest("complete")
            _clean(self.folder)
            self._lock.close()

    def write_table(self, name: str, table: pa.Table) -> None:
        """Write another table of the run, whole or not at all; *name* may name a folder of it.

        A round gets a checksum, as the parts of the records do.
        """
        place = self.folder / name
        with self._writing():
            place.parent.mkdir(exist_ok=True)
            if place.parent.name == ROUNDS:
                write_part(table, place)
            else:
                write_tables([table], table.schema, place)

    def write_file(self, name: str, content: bytes) -> None:
        """Write another file of the run; *name* may name folders of it."""
        place = self.folder / name
        with self._writing():
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content)

    def _write_manifest(self, status: Status) -> None:
        with spending(Work.WRITING):
            self._manifest |= {"status": status}
            write_json(self.folder / MANIFEST, self._manifest)

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Say in one line that the folder cannot be written, and what to do."""
        try:
            yield
        except OSError as error:
            raise cannot_be_written(self.folder, error, self.records.written) from error

    def __enter__(self) -> RunWriter:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None or self._manifest.status == "complete":
            self._lock.close()
            return
        tell_resume(error, self.folder)
        try:
            self.records.flush()
            self.alone.flush()
            if self._manifest.status != "reporting":
                self._write_manifest("interrupted")
        except (OSError, RunError):  # what stopped the run is the reason that reaches the user
            pass
        finally:
            self._lock.close()


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
    for inner in (PARTS, ALONE, ROUNDS):
        shutil.rmtree(folder / inner, ignore_errors=True)
