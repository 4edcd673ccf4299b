"""``records.parquet``, read by column; opened once, for the engine, the reports and the gate."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from simulator.errors import RunError
from simulator.files import LARGE, check_file
from simulator.results.layout import RECORDS


class RecordFile:
    """Records on disk; a column is read where it is asked for, and kept.

    Args:
        folder: of the run.

    Attributes:
        schema: of all columns.
        num_rows: how many records there are.
        groups: how many records each group of rows has.

    Raises:
        RunError: there are none, or they are damaged.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._known: dict[str, pa.ChunkedArray] = {}
        with self._checked():
            check_file(folder / RECORDS, LARGE)
            place = pa.OSFile(str(folder / RECORDS))  # a name with a colon would be a URI elsewhere
            self._file = pq.ParquetFile(place, page_checksum_verification=True)
            about = self._file.metadata
            self.schema, self.num_rows = self._file.schema_arrow, about.num_rows
            self.groups = [about.row_group(at).num_rows for at in range(about.num_row_groups)]

    @property
    def column_names(self) -> list[str]:
        """The names of all columns."""
        names: list[str] = self.schema.names
        return names

    def __getitem__(self, name: str) -> pa.ChunkedArray:
        """Return (records,) of one column.

        Raises:
            KeyError: there is no such column.
            RunError: it is damaged.
        """
        if name not in self.schema.names:
            raise KeyError(name)
        if name not in self._known:
            with self._checked():
                self._known[name] = self._file.read(columns=[name]).column(0)
        return self._known[name]

    def select(self, names: Sequence[str]) -> pa.Table:
        """Return some columns."""
        return pa.table([self[name] for name in names], names=list(names))

    def group(self, number: int, names: Sequence[str]) -> pa.Table:
        """Return some columns of one group of rows, which are not kept.

        Raises:
            RunError: they are damaged.
        """
        with self._checked():
            return self._file.read_row_group(number, list(names))

    def batches(self, rows: int) -> Iterator[pa.Table]:
        """Yield so many records at a time; at least once, and the last time fewer.

        Raises:
            RunError: they are damaged.
        """
        if not self.num_rows:
            yield self.schema.empty_table()
        with self._checked():
            for batch in self._file.iter_batches(batch_size=rows):
                yield pa.Table.from_batches([batch])

    @contextmanager
    def _checked(self) -> Iterator[None]:
        try:
            yield
        except (OSError, ValueError, pa.ArrowException) as error:
            raise RunError(f"{self._folder}: not a run, or a damaged one: {error}") from error
