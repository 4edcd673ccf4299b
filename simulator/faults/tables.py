"""The table of a campaign for documents: a row for each figure, a column for each stack."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from simulator.faults.screen import whole
from simulator.report.table import Column, Table, as_csv, latex, markdown
from simulator.results.faults import FaultGroup, FaultsSummary, FaultStack


def _whole(summary: FaultsSummary) -> Table:
    return whole(summary, f"{summary.model}, {summary.campaign}")


def _groups(summary: FaultsSummary) -> Table:
    """A row for each stack and group of faults, with rates and their intervals."""
    figures = ("rate", "low", "high", "count", "of")
    head = [f"{kind}_{name}" for kind in ("SDC", "DUE") for name in figures]
    rows = []
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


def printed(summaries: Sequence[FaultsSummary], form: str, table: str | None = None) -> str:
    """Return the table of a campaign."""
    return FORMS[form](summaries[0])


FORMS: Mapping[str, Callable[[FaultsSummary], str]] = {
    "markdown": lambda summary: markdown(_whole(summary)),
    "latex": lambda summary: latex(_whole(summary)),
    "csv": lambda summary: as_csv(_groups(summary)),
}
