"""Charts by bit-width, one of each noise family and method: RobustMQ's Figures 1 to 7."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from simulator.report import charts
from simulator.report.charts import Figure
from simulator.report.sections.section import Panel, Section
from simulator.report.sections.style import figure, looks, text
from simulator.report.table import Cell
from simulator.report.words import title
from simulator.results.robustness import RobustnessSummary
from simulator.results.shared import Profile
from simulator.robustness.robustmq import methods
from simulator.robustness.rows import rows_of

FAMILIES = {
    "AR": ("attacks", "Figure 1"),
    "NR": ("corruptions", "Figures 2 and 3"),
    "FP": ("sequences", "Figures 4 and 5"),
    "SR": ("system noise", "Figures 6 and 7"),
}
"""By the figure that they draw, as rows have it: what is drawn, and the figures of RobustMQ."""


def bit_widths(summary: RobustnessSummary) -> Section | None:
    """Draw every figure of every condition by bit-width; None where bit-widths do not differ.

    A method with one bit-width is left out: there is nothing to draw a line through.
    """
    known = methods(summary, summary.nc)
    found = {method: dict(sorted(by.items())) for method, by in known.items() if len(by) > 1}
    panels = [
        Panel(_lines(summary, own, kind), f"{method}: {what} ({where})")
        for kind, (what, where) in FAMILIES.items()
        for method, by in found.items()
        if (own := dict(_values(summary, by, kind)))
    ]
    if not panels:
        return None
    return Section(
        "bit-widths",
        "By bit-width",
        "Do fewer bits keep more or less under each noise?",
        [
            f"{title(summary.task, summary.metric)} in %; of sequences the share of frames that "
            "are answered otherwise. 32 bits: the stack in floating point."
        ],
        panels=panels,
    )


def _values(
    summary: RobustnessSummary, by: Mapping[int, str], kind: str
) -> Iterator[tuple[str, dict[int, Cell]]]:
    """The figure of each condition, by bit-width; attacks have theirs by budget already."""
    bits = {side: count for count, side in by.items()}
    found: dict[str, dict[int, Cell]] = {}
    for row in rows_of(summary):
        side, name = str(row["stack"]), str(row["condition"])
        counted = kind != "NR" or summary.rows[name].in_means if name in summary.rows else True
        if kind in row and side in bits and counted:
            found.setdefault(name, {})[bits[side]] = row[kind]
    yield from ((name, dict(sorted(values.items()))) for name, values in found.items())


def _lines(
    summary: RobustnessSummary, values: Mapping[str, Mapping[int, Cell]], kind: str
) -> Figure:
    drawn_as = looks({name: Profile(profile=name) for name in values})
    traces = [
        charts.scatter(
            x=[str(count) for count in of], y=list(of.values()), name=look.label,
            mode="lines+markers", line=look.line, marker=look.marker,
            hovertemplate=f"{text(name)}, %{{x}} bits: %{{y:.2%}}<extra></extra>",
        )
        for (name, of), look in zip(values.items(), drawn_as.values(), strict=True)
    ]  # fmt: skip
    what = "flip probability" if kind == "FP" else title(summary.task, summary.metric)
    drawn = figure(traces, 380, "bits", f"{kind}: {what}", showlegend=True)
    drawn.update_yaxes(tickformat=charts.SHARE, rangemode="tozero")
    drawn.update_xaxes(type="category")
    return drawn
