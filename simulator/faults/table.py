"""The table of a campaign: one row an inference with a fault, written part by part."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from simulator.errors import RunError, one_line
from simulator.faults.verdict import Row
from simulator.results.layout import ROUNDS
from simulator.results.parts import AGAIN, read_part
from simulator.results.read import read_table
from simulator.results.store import RunWriter
from simulator.tasks.task import Task

FAULTS = "faults.parquet"
_FAULT = (
    pa.field("fault", pa.int32(), nullable=False),
    pa.field("stack", pa.string(), nullable=False),
    pa.field("at", pa.int32(), nullable=False),
    pa.field("sample", pa.string(), nullable=False),
    pa.field("layer", pa.list_(pa.string()), nullable=False),
    pa.field("operator", pa.list_(pa.string()), nullable=False),
    pa.field("target", pa.list_(pa.string()), nullable=False),
    pa.field("storage", pa.list_(pa.string()), nullable=False),
    pa.field("index", pa.list_(pa.int64()), nullable=False),
    pa.field("bit", pa.list_(pa.int8()), nullable=False),
    pa.field("kind", pa.string(), nullable=False),
    pa.field("stratum", pa.int32(), nullable=False),
    pa.field("before", pa.list_(pa.float64())),
    pa.field("after", pa.list_(pa.float64())),
    pa.field("same_outputs", pa.bool_()),
    pa.field("skipped", pa.string()),
)


def schema(task: Task) -> pa.Schema:
    """Return the schema of the rows: the fault, the answer, the verdict and what was lost.

    ``layer``, ``operator``, ``target``, ``storage``, ``index``, ``bit``, ``before`` and ``after``
    have an entry for each bit that was hit. ``at`` is the number of the sample among those that
    went through every stack; the columns of the answer are null where a fault was detected.
    """
    answer = {field.name: field for field in task.columns}
    verdict = {field.name: field for field in task.Impact.schema()}
    return pa.schema([*_FAULT, *(verdict | answer).values()])


class FaultTable:
    """The rows of a run that is being written.

    Args:
        run: the run.
        task: its answers are in the rows.
    """

    def __init__(self, run: RunWriter, task: Task) -> None:
        self._run, self._schema = run, schema(task)

    def add(self, stack: int, name: str, rows: Sequence[Row]) -> None:
        """Make a part durable."""
        table = pa.Table.from_pylist(list(rows), self._schema)
        self._run.write_table(str(self._place(stack, name)), table)

    def has(self, stack: int, name: str) -> bool:
        """Whether an earlier attempt finished a part."""
        return (self._run.folder / self._place(stack, name)).is_file()

    def read(self, stack: int, names: Sequence[str]) -> pa.Table:
        """Return the rows of a stack, in the order of faults and samples.

        Raises:
            RunError: a part is damaged.
        """
        parts = [self._part(self._run.folder / self._place(stack, name)) for name in names]
        whole = pa.concat_tables([self._schema.empty_table(), *parts]).combine_chunks()
        return whole.sort_by([("fault", "ascending"), ("at", "ascending")])

    def finish(self, tables: Sequence[pa.Table]) -> pa.Table:
        """Write all rows as one table."""
        whole = pa.concat_tables(tables).combine_chunks()
        self._run.write_table(FAULTS, whole)
        return whole

    def _part(self, place: Path) -> pa.Table:
        try:
            return pq.read_table(pa.BufferReader(read_part(place)), schema=self._schema)
        except (OSError, ValueError, pa.ArrowException) as error:
            raise RunError(f"{place}: damaged: {one_line(error)}; {AGAIN}") from error

    @staticmethod
    def _place(stack: int, name: str) -> Path:
        return Path(ROUNDS) / f"faults-{stack:02}-{name}.parquet"


def read_faults(folder: Path, task: Task) -> pa.Table:
    """Return the rows of a finished run.

    Raises:
        RunError: there are none, or they are damaged.
    """
    try:
        return read_table(folder / FAULTS, schema(task))
    except (OSError, ValueError, pa.ArrowException) as error:
        raise RunError(f"{folder / FAULTS}: damaged: {one_line(error)}") from error
