"""Reads the rounds of a run, for reports."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from simulator.errors import RunError, one_line
from simulator.latency.rounds import LATENCIES, times_of
from simulator.latency.times import Times
from simulator.report.reading import Run
from simulator.report.sections.section import Section
from simulator.results.read import read_table
from simulator.results.timed import LatencySummary
from simulator.results.times import Ints

SAMPLES = "samples.parquet"


@dataclass(frozen=True, slots=True, eq=False)
class TimedRun:
    """The rounds of ``simulate tail``, or of ``simulate latency`` in SingleStream.

    Attributes:
        summary: the content of ``summary.json``.
        names: n samples, in the order of the data set.
        sizes: (n, 2) their width and height in pixels; None where samples are not images.
        times: of each stack.
        lengths: (n,) of texts and sounds, by the name of the unit; empty for other samples.
        fed: (n,) how many values the network of a stack is fed, see
            :class:`simulator.latency.inputs.Inputs`.
    """

    summary: LatencySummary
    names: Sequence[str]
    sizes: Ints | None
    times: dict[str, Times]
    lengths: Mapping[str, Ints] = field(default_factory=dict)
    fed: Mapping[str, Ints] = field(default_factory=dict)

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


def of_rounds(show: Callable[[TimedRun], Section | None]) -> Callable[[Run], Section | None]:
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
    units = {effect.length.unit for effect in summary.inputs.values() if effect.length}
    lengths = {unit: table[unit].to_numpy() for unit in units}
    times = times_of(read_table(run.folder / LATENCIES), summary.stacks)
    fed = {
        side: table[f"{effect.network.unit}.{side}"].to_numpy()
        for side, effect in summary.inputs.items()
        if effect.network
    }
    return TimedRun(summary, names, sizes, times, lengths, fed)
