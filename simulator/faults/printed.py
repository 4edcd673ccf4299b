"""The tables of ``simulate faults`` for documents and other programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from simulator.errors import UserError
from simulator.faults import tables
from simulator.report.table import Cell, Column, Table
from simulator.results.faults import FaultGroup, FaultsSummary, FaultStack


def rates(summaries: Sequence[FaultsSummary], wide: bool) -> Table:
    """Return a line for each figure; for other programs, a row for each group of faults."""
    (summary,) = summaries
    if wide:
        return _every_group(summary)
    return tables.rates(summary, f"{summary.model}, {summary.campaign}")


def bits(summaries: Sequence[FaultsSummary], wide: bool) -> Table:
    """Return a row for each stack and bit."""
    return tables.groups(summaries[0], "bit")


def layers(summaries: Sequence[FaultsSummary], wide: bool) -> Table:
    """Return a row for each stack and layer."""
    return tables.groups(summaries[0], "layer")


def persistence(summaries: Sequence[FaultsSummary], wide: bool) -> Table:
    """Return what stays over a video, by level."""
    return tables.over_time(_followed(summaries), rescaled=True)


def persistent_bits(summaries: Sequence[FaultsSummary], wide: bool) -> Table:
    """Return what stays over a video, by bit."""
    return tables.lasting_bits(_followed(summaries))


def _followed(summaries: Sequence[FaultsSummary]) -> FaultsSummary:
    (summary,) = summaries
    if not tables.tracked(summary):
        raise UserError("--table: this campaign followed nothing over a video")
    return summary


def _every_group(summary: FaultsSummary) -> Table:
    """Return a row for each stack and group of faults, with rates and their intervals."""
    figures = ("rate", "low", "high", "count", "of")
    head = [f"{kind}_{name}" for kind in ("SDC", "DUE") for name in figures]
    rows: list[list[Cell]] = []
    for side, stack in summary.stacks.items():
        groups: Mapping[str, Mapping[str, FaultStack | FaultGroup]] = {
            "all": {"all": stack}, "bit": stack.by_bit, "layer": stack.by_layer,
            "operator": stack.by_operator,
        }  # fmt: skip
        for by, found in groups.items():
            for name, one in found.items():
                values = [
                    value
                    for rate in (one.sdc, one.due)
                    for value in (rate.rate, *rate.ci95, rate.count, rate.of)
                ]
                rows.append([summary.model, summary.campaign, side, by, name, *values])
    return Table([*map(Column, ("model", "campaign", "stack", "by", "group", *head))], rows)
