"""Report sections: the latencies of a pair's stages, and LoadGen's results."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from simulator.contract.stage import timed_steps
from simulator.latency.sections import distributions
from simulator.latency.times import TOTAL
from simulator.report.reading import Run
from simulator.report.sections.section import Badge, Cell, Panel, Section, Table, part
from simulator.report.sections.style import looks
from simulator.report.words import SIDES
from simulator.results.pair import PairSummary
from simulator.results.shared import Latency
from simulator.results.timed import LoadSummary
from simulator.results.times import ABSENT, from_map


@part(order=220)
def stages(run: Run) -> Section | None:
    """Show the latencies of the stages in a comparison of two stacks."""
    summary = run.summary
    if not isinstance(summary, PairSummary):
        return None
    rows = {"train": summary.latency_ms.train, "deploy": summary.latency_ms.deploy}
    known = looks({"train": summary.train, "deploy": summary.deploy})
    values = {side: _columns(run.side(side, ["ns"])) for side in SIDES}
    drawn = distributions.boxes(values, known)
    if drawn is None:
        return None
    every = Latency().keys()
    figures = [
        key
        for key in every
        if any(one[key] is not None for of in rows.values() for one in of.values())
    ]
    cells = [
        [f"{side}, {kind}", *(_ms(rows[side][kind][key]) for key in figures)]
        for kind in (*timed_steps(), TOTAL)
        for side in SIDES
        if kind in rows[side] and rows[side][kind].p50 is not None
    ]
    why = sorted({reason for path, reason in summary.missing.items() if ".total." in path})
    return Section(
        "latency",
        "Latency: each stage, ms",
        "Which stage takes the time, and in which do the stacks differ?",
        [
            f"Wall-clock time with {summary.workers} samples at once, each run once: good enough "
            "to compare stages. simulate latency measures one sample at a time."
        ],
        [Panel(drawn)],
        [distributions.BOX, *why],
        tables=[Table(["stack and stage", *figures], cells, "Latency, ms", 1)],
    )


def _columns(records: pa.Table) -> dict[str, distributions.Floats]:
    """The ms of each stage, and the total of the samples that have an inference time."""
    ns = from_map(records["ns"], timed_steps())
    found = {step: one[one != ABSENT] / distributions.MS for step, one in ns.items()}
    if "infer" in ns:
        whole = np.sum([np.where(one == ABSENT, 0, one) for one in ns.values()], axis=0)
        found[TOTAL] = whole[ns["infer"] != ABSENT] / distributions.MS
    return found


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
            *(_ms(latency[side][TOTAL][key]) for key in ("p50", "p90", "p99", "max")),
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


def _ms(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"
