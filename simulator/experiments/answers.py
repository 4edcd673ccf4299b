"""The records of stacks on the same samples, read from where a run keeps them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import overload

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from simulator.analysis.attribute import Game, Subset
from simulator.data.folder import Item
from simulator.experiments.failures import Tried
from simulator.results.record_table import SLICE, RecordTable
from simulator.results.times import Ints, from_map
from simulator.statistics.bootstrap import Floats, Resamples
from simulator.tasks.score import Columns, Record, Score, flip_rate, numbers
from simulator.tasks.task import Task


class StackRecords(Columns):
    """Records of one stack, read from the table where they are asked for.

    Args:
        table: of a run.
        names: of the task's columns, which a record has.
        rows: of the table.
    """

    def __init__(self, table: RecordTable, names: Sequence[str], rows: NDArray[np.int64]) -> None:
        self._table, self._names, self._rows = table, names, rows

    def column(self, name: str) -> pa.ChunkedArray:
        """Return (records,) of one column; ``digest`` and ``ns`` are beside the records."""
        return self._table.column(name, self._rows)

    def ns(self) -> dict[str, Ints]:
        """Return (records,) nanoseconds of each stage; see :mod:`simulator.results.times`."""
        return from_map(self.column("ns"))

    def chosen(self, which: NDArray[np.intp]) -> StackRecords:
        """Return some of them, by their numbers."""
        return StackRecords(self._table, self._names, self._rows[which])

    @overload
    def __getitem__(self, at: int) -> Record: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[Record]: ...
    def __getitem__(self, at: int | slice) -> Record | Sequence[Record]:
        """Return one record, or some of them."""
        if isinstance(at, slice):
            return StackRecords(self._table, self._names, self._rows[at])
        return next(iter(StackRecords(self._table, self._names, self._rows[[at]])))

    def __iter__(self) -> Iterator[Record]:
        for table in self._table.columns(self._names, self._rows):
            for batch in table.to_batches(max_chunksize=SLICE):
                yield from batch.to_pylist()

    def __len__(self) -> int:
        return len(self._rows)


@dataclass(frozen=True, slots=True)
class Answers:
    """The records of every stack for every sample that was not skipped.

    Attributes:
        task: that the records belong to.
        names: of the stacks.
        items: the samples.
        records: for each stack a record per sample.
        digests: (stacks, samples) digests of the network's output bytes, in ASCII.
        skipped: how many samples none of the stacks has answered.
        broken: the samples that some of the stacks have answered, and others not.
    """

    task: Task
    names: tuple[str, ...]
    items: tuple[Item, ...]
    records: tuple[Sequence[Record], ...]
    digests: NDArray[np.bytes_]
    skipped: int
    broken: tuple[Tried, ...] = ()

    def of(self, name: str) -> Sequence[Record]:
        """Return a stack's records."""
        return self.records[self.row(name)]

    def row(self, name: str) -> int:
        """Return the index of a stack."""
        return self.names.index(name)

    def changed(self, name: str) -> NDArray[np.bool_]:
        """Return (samples,) whether a stack's prediction differs from the first stack's."""
        return numbers(self.of(name), "changed")[0] > 0

    def score(self, name: str) -> Score:
        """Return a stack's metrics."""
        return self.task.score(self.of(name), [item.truth for item in self.items])

    def games(self, stack: Callable[[Subset], str], draws: Resamples) -> dict[str, Game]:
        """Return the flip rate and, where there is truth, the headline of sets of axes.

        Args:
            stack: the name of the stack with a set of axes.
            draws: the resamples.
        """

        def flips(some: Subset) -> Floats:
            return flip_rate(self.of(stack(some)), draws)

        def headline(some: Subset) -> Floats:
            figure = self.score(stack(some)).figure
            assert figure is not None
            return draws.of(figure)

        found = {"flip_rate": cache(flips)}
        if self.score(stack(frozenset())).figure is not None:
            found[self.task.headline] = cache(headline)
        return dict(found)
