"""Report section: the latencies of a pair's stages; boxes of stages, for timed runs too."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from simulator.contract.stage import timed_steps
from simulator.latency.times import TOTAL
from simulator.report import charts
from simulator.report.charts import Figure, Trace
from simulator.report.colors import band
from simulator.report.reading import Run
from simulator.report.sections.section import Panel, Section, Table, part
from simulator.report.sections.style import Look, figure, looks, milliseconds
from simulator.report.words import SIDES
from simulator.report.words import figure as written
from simulator.results.pair import PairSummary
from simulator.results.shared import Latency
from simulator.results.times import ABSENT, from_map
from simulator.statistics.percentiles import MS

Floats = NDArray[np.float64]
BOX = (
    "Box: median and quartiles; whiskers: the fastest and the slowest answer. Medians of stages "
    "need not add up to the total's."
)


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
    figures = [
        key
        for key in Latency()
        if any(latency[key] is not None for of in rows.values() for latency in of.values())
    ]
    cells = [
        [f"{side}, {kind}", *(written(rows[side][kind][key], ".3f") for key in figures)]
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


def boxes(values: Mapping[str, Mapping[str, Floats]], known: Mapping[str, Look]) -> Figure | None:
    """Draw the latencies of stages as boxes.

    Args:
        values: ms by stack and stage, in any order.
        known: how each stack is drawn.

    Returns:
        The figure; None where no stage has a latency.
    """
    own = {side: {kind: ms for kind, ms in of.items() if ms.size} for side, of in values.items()}
    kinds = [kind for kind in (*timed_steps(), TOTAL) if any(kind in of for of in own.values())]
    if not kinds:
        return None
    drawn = figure(
        [_box(own[side], look) for side, look in known.items() if own.get(side)],
        130 + len(kinds) * (14 + 18 * len(known)),
        "latency, ms",
        "",
    )
    every = np.concatenate([ms for of in own.values() for ms in of.values()])
    above = every[every > 0] if (every > 0).any() else np.ones(1)
    drawn.update_layout(boxmode="group", boxgap=0.25)
    drawn.update_yaxes(
        type="category", categoryorder="array", categoryarray=kinds, autorange="reversed"
    )
    drawn.update_xaxes(**milliseconds(float(above.min()), float(above.max())))
    return drawn


def _box(of: Mapping[str, Floats], look: Look) -> Trace:
    ends = np.array([np.quantile(ms, [0, 0.25, 0.5, 0.75, 1]) for ms in of.values()])
    least, q1, middle, q3, most = ends.T
    return charts.box(
        y=list(of), lowerfence=least, q1=q1, median=middle, q3=q3, upperfence=most,
        orientation="h", name=look.label, fillcolor=band(look.color),
        line={"color": look.color, "width": 1.5}, hoverinfo="x",
    )  # fmt: skip
