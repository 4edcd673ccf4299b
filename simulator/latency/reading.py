"""Rounds as reports read them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from simulator.errors import RunError, one_line
from simulator.latency.rounds import LATENCIES
from simulator.latency.single_stream import ABSENT, Ints
from simulator.latency.times import NEVER, TOTAL, Times
from simulator.report.reading import Run
from simulator.report.sections.section import Section
from simulator.results.store import STAGES
from simulator.results.timed import LatencySummary

SAMPLES = "samples.parquet"
_KINDS = (*STAGES, TOTAL)
_BATCH = 1 << 18
"""Rows that are read at a time."""


@dataclass(frozen=True, slots=True, eq=False)
class TimedRun:
    """The rounds of ``simulate tail``, or of ``simulate latency`` in SingleStream.

    Attributes:
        summary: the content of ``summary.json``.
        names: n samples, in the order of the data set.
        sizes: (n, 2) their columns and rows in pixels.
        times: of each stack.
    """

    summary: LatencySummary
    names: Sequence[str]
    sizes: Ints
    times: dict[str, Times]

    @property
    def megapixels(self) -> NDArray[np.float64]:
        """(n,) of the samples."""
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
    """Let a function of rounds be a part of the report of any run."""

    def shown(run: Run) -> Section | None:
        found = timed(run)
        return show(found) if found else None

    return shown


def _timed(run: Run, summary: LatencySummary) -> TimedRun:
    table = pq.read_table(run.folder / SAMPLES, columns=["sample", "width", "height"])
    names = table["sample"].to_pylist()
    sizes = np.stack([table[key].to_numpy() for key in ("width", "height")], axis=1)
    sides = list(summary.stacks)
    return TimedRun(summary, names, sizes, _times(run.folder / LATENCIES, names, sides))


def _times(place: Path, names: Sequence[str], sides: Sequence[str]) -> dict[str, Times]:
    with pq.ParquetFile(place) as file:
        columns = ["round", "sample", "side", *(f"{stage}_ns" for stage in _KINDS)]
        batches = file.iter_batches(_BATCH, columns=columns)
        parts = [_rows(batch, sides, names) for batch in batches]
    side, row, sample, *ns = (np.concatenate(column) for column in zip(*parts, strict=True))
    found = {}
    for at, name in enumerate(sides):
        own = side == at
        rounds, which = np.unique(row[own], return_inverse=True)
        if not rounds.size:
            raise ValueError(f"{place.name}: no row of {name}")
        tables = np.full((len(_KINDS), len(rounds), len(names)), ABSENT, np.int64)
        tables[:, which, sample[own]] = np.stack([one[own] for one in ns])
        *stages, total = tables
        there = {stage: one for stage, one in zip(STAGES, stages, strict=True) if (one >= 0).any()}
        found[name] = Times(np.where(total == ABSENT, NEVER, total), there)
    return found


def _rows(batch: pa.RecordBatch, sides: Sequence[str], names: Sequence[str]) -> tuple[Ints, ...]:
    """Stack, round, sample and nanoseconds of each row; :data:`ABSENT` where there are none."""
    return (
        _codes(batch.column("side"), sides),
        batch.column("round").to_numpy().astype(np.int64),
        _codes(batch.column("sample"), names),
        *(batch.column(f"{kind}_ns").fill_null(ABSENT).to_numpy() for kind in _KINDS),
    )


def _codes(column: pa.Array, known: Sequence[str]) -> Ints:
    """The place of each value in *known*."""
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    places = {name: at for at, name in enumerate(known)}
    codes = np.array([places[name] for name in column.dictionary.to_pylist()], np.int64)
    found: Ints = codes[column.indices.to_numpy()]
    return found
