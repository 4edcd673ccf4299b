"""Reads the rounds of a run, for reports."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from simulator.contract.stage import timed_steps
from simulator.errors import RunError, one_line
from simulator.latency.rounds import LATENCIES
from simulator.latency.times import NEVER, TOTAL, Times
from simulator.report.reading import Run
from simulator.report.sections.section import Section
from simulator.results.read import read_table
from simulator.results.timed import LatencySummary
from simulator.results.times import ABSENT, Ints, from_map

SAMPLES = "samples.parquet"
_BATCH = 1 << 18
"""How many rows are read at a time."""


@dataclass(frozen=True, slots=True, eq=False)
class TimedRun:
    """The rounds of ``simulate tail``, or of ``simulate latency`` in SingleStream.

    Attributes:
        summary: the content of ``summary.json``.
        names: n samples, in the order of the data set.
        sizes: (n, 2) their width and height in pixels; None where samples are not images.
        times: of each stack.
        lengths: (n,) of texts and sounds, by the name of the unit; empty for other samples.
    """

    summary: LatencySummary
    names: Sequence[str]
    sizes: Ints | None
    times: dict[str, Times]
    lengths: Mapping[str, Ints] = field(default_factory=dict)

    @property
    def megapixels(self) -> NDArray[np.float64]:
        """(n,) megapixels of the samples, which must be images."""
        assert self.sizes is not None
        found: NDArray[np.float64] = self.sizes.prod(axis=1) / 1e6
        return found


@lru_cache(maxsize=1)
def timed(run: Run) -> TimedRun | None:
    """Return the rounds of a run; None where it has none.

    Raises:
        RunError: they are damaged.
    """
    if not isinstance(run.summary, LatencySummary):
        return None
    try:
        return _timed(run, run.summary)
    except (OSError, KeyError, ValueError, pa.ArrowException) as error:
        raise RunError(f"{run.folder}: a damaged run: {one_line(error)}") from error


def of_rounds(
    show: Callable[[TimedRun], Section | None],
) -> Callable[[Run], Section | None]:
    """Turn a function of timed rounds into a section function of any run.

    The section is left out for a run without timed rounds.
    """

    def shown(run: Run) -> Section | None:
        found = timed(run)
        return show(found) if found else None

    return shown


def _timed(run: Run, summary: LatencySummary) -> TimedRun:
    table = read_table(run.folder / SAMPLES)
    names, pixels = table["sample"].to_pylist(), ("width", "height")
    sizes = None
    if set(pixels) <= set(table.column_names):
        sizes = np.stack([table[key].to_numpy() for key in pixels], axis=1)
    sides = list(summary.stacks)
    units = {one.length.unit for one in summary.inputs.values() if one.length}
    lengths = {unit: table[unit].to_numpy() for unit in units}
    times = _times(run.folder / LATENCIES, names, sides)
    return TimedRun(summary, names, sizes, times, lengths)


def _times(place: Path, names: Sequence[str], sides: Sequence[str]) -> dict[str, Times]:
    columns = ["round", "sample", "side", "ns", f"{TOTAL}_ns"]
    with place.open("rb") as opened, pq.ParquetFile(opened) as file:
        parts = [_rows(batch, sides, names) for batch in file.iter_batches(_BATCH, columns=columns)]
    side, row, sample, whole = (np.concatenate([part[at] for part in parts]) for at in range(4))
    known = [part[4] for part in parts]
    steps = [step for step in timed_steps() if any(step in one for one in known)]
    sizes = [len(part[0]) for part in parts]
    ns = {
        step: np.concatenate(
            [
                one[step] if step in one else np.full(size, ABSENT, np.int64)
                for one, size in zip(known, sizes, strict=True)
            ]
        )
        for step in steps
    }
    found = {}
    for at, name in enumerate(sides):
        own = side == at
        rounds, which = np.unique(row[own], return_inverse=True)
        if not rounds.size:
            raise ValueError(f"{place.name}: no row of {name}")

        def tabulated(
            values: Ints, own: Any = own, which: Any = which, count: int = len(rounds)
        ) -> Ints:
            table = np.full((count, len(names)), ABSENT, np.int64)
            table[which, sample[own]] = values[own]
            return table

        total = tabulated(whole)
        stages = {step: table for step in steps if ((table := tabulated(ns[step])) >= 0).any()}
        found[name] = Times(np.where(total == ABSENT, NEVER, total), stages)
    return found


def _rows(
    batch: pa.RecordBatch, sides: Sequence[str], names: Sequence[str]
) -> tuple[Ints, Ints, Ints, Ints, dict[str, Ints]]:
    """Stack, round, sample, total and stages of each row; :data:`ABSENT` for missing times."""
    return (
        _codes(batch.column("side"), sides),
        batch.column("round").to_numpy().astype(np.int64),
        _codes(batch.column("sample"), names),
        batch.column(f"{TOTAL}_ns").fill_null(ABSENT).to_numpy(),
        from_map(batch.column("ns")),
    )


def _codes(column: pa.Array, known: Sequence[str]) -> Ints:
    """The index of each value in *known*."""
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    index = {name: at for at, name in enumerate(known)}
    codes = np.array([index[name] for name in column.dictionary.to_pylist()], np.int64)
    found: Ints = codes[column.indices.to_numpy()]
    return found
