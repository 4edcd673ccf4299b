"""Report section: what each stack served under LoadGen's load."""

from __future__ import annotations

from simulator.latency import tables
from simulator.report.reading import Run
from simulator.report.sections.section import Badge, Cell, Section, Table, part
from simulator.results.timed import LoadSummary


@part(order=70)
def served(run: Run) -> Section | None:
    """Show LoadGen's results."""
    summary = run.summary
    if not isinstance(summary, LoadSummary):
        return None
    found = tables.served(summary)
    rows: list[list[Cell]] = [
        [*line, Badge(verdict, "good" if verdict == tables.VALID else "bad")]
        for *line, verdict in found.lines()
    ]
    asked = tables.load(summary)
    return Section(
        "served",
        f"Under load: {summary.scenario}",
        "How many answers a second does each stack give, and are they fast enough for LoadGen?",
        [f"{asked}."] if asked else [],
        notes=["LoadGen's own logs are in the run's folder, below loadgen/."],
        tables=[Table(found.titles, rows, "Answers under LoadGen's load", found.right)],
    )
