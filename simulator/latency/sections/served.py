"""Report section: what each stack served under LoadGen's load."""

from __future__ import annotations

from simulator.latency.sections.stages import ms
from simulator.latency.times import TOTAL
from simulator.report.reading import Run
from simulator.report.sections.section import Badge, Cell, Section, Table, part
from simulator.results.timed import LoadSummary


@part(order=70)
def served(run: Run) -> Section | None:
    """Show LoadGen's results."""
    summary = run.summary
    if not isinstance(summary, LoadSummary):
        return None
    load, latency = summary.load, summary.latency_ms
    rows: list[list[Cell]] = [
        [
            side, f"{one.batch}", f"{one.qps:.1f}", f"{one.queries:,}", f"{one.failed:,}",
            *(ms(latency[side][TOTAL][key]) for key in ("p50", "p90", "p99", "max")),
            Badge("VALID", "good") if one.valid else Badge("INVALID", "bad"),
        ]
        for side, one in summary.served.items()
    ]  # fmt: skip
    head = [
        "stack",
        "batch",
        "answers a second",
        "answered",
        "failed",
        "p50",
        "p90",
        "p99",
        "max",
        "verdict",
    ]
    words = []
    if load.deadline_ns:
        words = [f"{load.qps:g} arrivals a second; p99 within {load.deadline_ns / 1e6:g} ms."]
    return Section(
        "served",
        f"Under load: {summary.scenario}",
        "How many answers a second does each stack give, and are they fast enough for LoadGen?",
        words,
        notes=["LoadGen's own logs are in the run's folder, below loadgen/."],
        tables=[Table(head, rows, "Answers under LoadGen's load; latencies in ms", 1)],
    )
