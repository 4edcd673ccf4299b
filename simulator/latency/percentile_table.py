"""The table of percentiles, for the screen and the page."""

from __future__ import annotations

from collections.abc import Mapping

from simulator.latency.tail_screen import milliseconds
from simulator.report.table import NOTHING, Column, Table
from simulator.results.timed import LatencySummary, Percentile
from simulator.typed import Unit

TITLE = "Latency, ms (95 % interval) ≤ LoadGen's early-stopping estimate"


def percentiles(summary: LatencySummary, names: Mapping[str, str]) -> Table:
    """Return the percentiles; where samples are too few, how many more are needed.

    Args:
        summary: of rounds.
        names: of the stacks that are shown, as they are called.
    """
    found = summary.percentiles
    return Table(
        [Column("percentile"), *(Column(name, Unit.MS) for name in names.values())],
        [[p, *(_words(found[side][p]) for side in names)] for p in next(iter(found.values()))],
        TITLE,
    )


def _words(one: Percentile) -> str:
    if one.ms is None:
        return f"needs {one.needs:,} more" if one.needs else NOTHING
    ends = f" ({' to '.join(map(milliseconds, one.ci95))})" if one.ci95 else ""
    bound = one.early_stopping_ms
    return f"{milliseconds(one.ms)}{ends}{'' if bound is None else f' ≤{milliseconds(bound)}'}"
