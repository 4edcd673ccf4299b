"""The table of a campaign for documents: a row for each figure, a column for each stack."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping

from simulator.faults.screen import rows
from simulator.report import cells
from simulator.results.faults import FaultsSummary


def markdown(summary: FaultsSummary) -> str:
    """Return a Markdown table."""
    titles, lines = _table(summary)
    found = [titles, ["---"] * len(titles), *lines]
    return "".join(f"| {' | '.join(map(cells.markdown, row))} |\n" for row in found)


def latex(summary: FaultsSummary) -> str:
    """Return a LaTeX tabular."""
    titles, lines = _table(summary)
    made = [" & ".join(map(cells.latex, row)) + r" \\" for row in [titles, *lines]]
    body = "\n".join([made[0], r"\hline", *made[1:]])
    return f"\\begin{{tabular}}{{l{'r' * (len(titles) - 1)}}}\n{body}\n\\end{{tabular}}\n"


def as_csv(summary: FaultsSummary) -> str:
    """Return a row for each stack and group of faults, with rates and their intervals."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    figures = ("rate", "low", "high", "count", "of")
    head = [f"{kind}_{name}" for kind in ("SDC", "DUE") for name in figures]
    writer.writerow(["model", "campaign", "stack", "by", "group", *head])
    for side, stack in summary.stacks.items():
        groups: Mapping[str, Mapping[str, object]] = {
            "all": {"all": stack}, "bit": stack.by_bit, "layer": stack.by_layer,
            "operator": stack.by_operator,
        }  # fmt: skip
        for by, found in groups.items():
            for name, one in found.items():
                values = [
                    value
                    for kind in ("SDC", "DUE")
                    for rate in [one[kind]]  # type: ignore[index]
                    for value in (rate.rate, *rate.ci95, rate.count, rate.of)
                ]
                texts = (summary.model, summary.campaign, side, by, name)
                writer.writerow([*map(cells.spreadsheet, texts), *values])
    return out.getvalue()


FORMS: Mapping[str, Callable[[FaultsSummary], str]] = {
    "markdown": markdown,
    "latex": latex,
    "csv": as_csv,
}


def _table(summary: FaultsSummary) -> tuple[list[str], list[list[str]]]:
    titles = [f"{summary.model}, {summary.campaign}", *summary.stacks]
    return titles, [[name, *found] for name, found in rows(summary)]
