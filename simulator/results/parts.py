"""Parts of a run that is not finished: each is written beside its place and renamed into it.

What is there is whole, and has a checksum; a run goes on after its last part.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from simulator.errors import RunError, one_line
from simulator.files import TEXT, read_file, write_whole
from simulator.results.layout import PARTS

CHECKSUM = 2**12
"""Bytes of a file with one checksum."""
ROWS_PER_GROUP = 16384
AGAIN = "delete it and the parts after it to measure them again"
Rows = list[dict[str, Any]]
"""What is kept of one sample: a row per stack."""


class Parts:
    """The records of a run, a file per chunk of samples, named by how many samples are before it.

    Args:
        folder: of the run.
        run: by which its parts are named; None: those of an earlier version, without a name.
        columns: of the records.
    """

    def __init__(self, folder: Path, run: str | None, columns: pa.Schema) -> None:
        self._folder, self._columns = folder / PARTS, columns
        self._prefix = "" if run is None else f"{run}-"

    def write(self, samples: Sequence[Rows], before: int) -> None:
        """Write a chunk of samples.

        Args:
            samples: the rows of each.
            before: how many samples are in the parts before.

        Raises:
            OSError: it cannot be written.
        """
        rows = [row for rows in samples for row in rows]
        write_part(pa.Table.from_pylist(rows, self._columns), self._place(before))

    def read(self) -> pa.Table:
        """Return the records of all parts, in order.

        Raises:
            RunError: a part is damaged or of another version, or one is missing before another.
        """
        return pa.concat_tables([self._columns.empty_table(), *self.tables()]).combine_chunks()

    def tables(self) -> Iterator[pa.Table]:
        """Yield the records of each part, in order.

        Raises:
            RunError: see :meth:`read`.
        """
        before = 0
        for place in sorted(self._folder.glob(self._place("[0-9]" * 9).name)):
            expected = self._place(before)
            if place != expected:
                raise RunError(f"{place}: {expected.name} is missing before it; {AGAIN}")
            try:
                data = read_part(place)
                names = pq.read_schema(pa.BufferReader(data)).names
                table = pq.read_table(pa.BufferReader(data), schema=self._columns)
            except (OSError, ValueError, pa.ArrowException) as error:
                raise RunError(f"{place}: damaged: {one_line(error)}; {AGAIN}") from error
            if names != self._columns.names:
                raise RunError(f"{place}: records of another version; start a new run")
            before += pc.count_distinct(table["sample"]).as_py()
            yield table

    def _place(self, before: int | str) -> Path:
        return self._folder / f"{self._prefix}{before:0>9}.parquet"


def write_part(table: pa.Table, place: Path) -> None:
    """Write a part of a run, and before it its checksum: a part that is there can be checked."""
    buffer = io.BytesIO()
    pq.write_table(table, buffer, row_group_size=ROWS_PER_GROUP)
    data = buffer.getvalue()
    line = f"{hashlib.sha256(data).hexdigest()}  {place.name}\n"
    write_whole(checksum_of(place), line.encode())
    write_whole(place, data)


def read_part(place: Path) -> bytes:
    """Return the bytes of a Parquet file of a run that is not finished.

    Raises:
        OSError: it cannot be read, or its checksum.
        ValueError: they are not those that :func:`write_part` has written.
    """
    data = read_file(place, TEXT)
    told = read_file(checksum_of(place), CHECKSUM).decode("ascii", "replace").split()
    if told[:1] != [hashlib.sha256(data).hexdigest()]:
        raise ValueError("its bytes are not those that were written")
    return data


def checksum_of(place: Path) -> Path:
    """Return the file that has the checksum of a part, in the form of ``sha256sum``."""
    return place.with_name(f"{place.name}.sha256")
