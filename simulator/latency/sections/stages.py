"""Report section: the latencies of a pair's stages."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from simulator.contract.stage import timed_steps
from simulator.latency.sections.boxes import BOX, MS, Floats, boxes
from simulator.latency.times import TOTAL
from simulator.report.reading import Run
from simulator.report.sections.section import Panel, Section, Table, part
from simulator.report.sections.style import looks
from simulator.report.words import SIDES
from simulator.results.pair import PairSummary
from simulator.results.shared import Latency
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
    drawn = boxes(values, known)
    if drawn is None:
        return None
    every = Latency().keys()
    figures = [
        key
        for key in every
        if any(one[key] is not None for of in rows.values() for one in of.values())
    ]
    cells = [
        [f"{side}, {kind}", *(ms(rows[side][kind][key]) for key in figures)]
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
        [BOX, *why],
        tables=[Table(["stack and stage", *figures], cells, "Latency, ms", 1)] if cells else [],
    )


def _columns(records: pa.Table) -> dict[str, Floats]:
    """The ms of each stage, and the total of the samples that have an inference time."""
    ns = from_map(records["ns"], timed_steps())
    found = {step: one[one != ABSENT] / MS for step, one in ns.items()}
    if "infer" in ns:
        whole = np.sum([np.where(one == ABSENT, 0, one) for one in ns.values()], axis=0)
        found[TOTAL] = whole[ns["infer"] != ABSENT] / MS
    return found


def ms(value: float | None) -> str:
    """Return a latency in words."""
    return "–" if value is None else f"{value:.3f}"
