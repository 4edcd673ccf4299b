"""Report sections: the distribution of latencies, and of the latencies of each stage."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np

from simulator.latency.reading import TimedRun, of_rounds
from simulator.latency.sections.stages import BOX, Floats, boxes
from simulator.latency.tables import deadlines, percentiles
from simulator.latency.times import NEVER, TOTAL, Times
from simulator.report import charts
from simulator.report.charts import Trace
from simulator.report.colors import band
from simulator.report.sections.section import Panel, Section, part
from simulator.report.sections.style import Look, figure, looks, milliseconds, text, upright
from simulator.results.timed import LatencySummary, Percentile
from simulator.results.times import Ints
from simulator.statistics.percentiles import MS

POINTS, ALL_POINTS = 2000, 20_000
"""The largest number of points of a stack's curve, and of all curves together."""
BINS = 60
"""The largest number of bins of a histogram."""
_FEW = 20
"""With at most this many answers, each gets a marker."""
_PARTS = {
    1.0: "all",
    0.5: "50 % (p50)",
    0.1: "10 % (p90)",
    0.05: "5 % (p95)",
    0.01: "1 % (p99)",
} | {10.0**-k: f"{100 * 10.0**-k:.10g} % (p{100 - 100 * 10.0**-k:.10g})" for k in range(3, 9)}
"""Ticks of the axis: shares of slower answers."""


@dataclass(frozen=True, slots=True, eq=False)
class Ranked:
    """The answers of one stack, the fastest first.

    Attributes:
        ms: their latencies, ascending.
        index: of each answer, its flat index into the table of rounds and samples.
    """

    ms: Floats
    index: Ints

    @classmethod
    def of(cls, times: Times) -> Ranked:
        """Sort all answers; failed inferences are left out."""
        total = times.total.ravel()
        answered = np.flatnonzero(total != NEVER)
        index = answered[np.argsort(total[answered], kind="stable")]
        return cls(total[index] / MS, index)


@part(order=120)
@of_rounds
def latencies(run: TimedRun) -> Section:
    """Draw the histogram of each stack, and the share of its answers that take longer."""
    known = looks(run.summary.stacks)
    ranked = {side: Ranked.of(times) for side, times in run.times.items()}
    ranked = {side: one for side, one in ranked.items() if one.ms.size}
    marks = _marked(run.summary)
    low, high = _frame([one.ms for one in ranked.values()], [*chain(*marks.values())])
    most = min(POINTS, ALL_POINTS // max(1, len(known)))
    traces: list[Trace] = []
    for side, look in known.items():
        if side in ranked:
            traces.append(_histogram(ranked[side].ms, look, _edges(ranked, low, high)))
            traces.append(_slower(ranked[side], run.names, look, most))
        traces.append(_marks(run.summary.percentiles[side], look))
    drawn = figure(traces, 620, "latency, ms", "answers that take longer")
    drawn.update_layout(
        xaxis={"anchor": "y"}, yaxis={"domain": [0, 0.62], **_tail_axis(ranked, marks)},
        yaxis2={
            "domain": [0.68, 1], "title": {"text": "answers"}, "tickformat": charts.SHARE,
            "rangemode": "tozero", "zeroline": False, "automargin": True,
            "gridcolor": drawn.layout["yaxis"]["gridcolor"],
        },
        shapes=[upright(ms, name) for name, ms in deadlines(run.summary).items()],
    )  # fmt: skip
    drawn.update_xaxes(**milliseconds(low, high))
    names = {side: look.name for side, look in known.items()}
    return Section(
        "latency",
        "Latency: how long answers take, ms, and how many take longer",
        "How long do most answers of a stack take, and how long is its tail?",
        panels=[Panel(drawn)] if any(len(trace["x"]) for trace in traces) else [],
        notes=_notes(run, known, ranked, low, most),
        tables=[percentiles(run.summary, names)],
    )


def _histogram(ms: Floats, look: Look, edges: Floats) -> Trace:
    """The outline of a histogram, in the upper axes."""
    part = np.histogram(ms, edges)[0] / len(ms)
    return charts.scatter(
        x=edges[[0, *range(len(edges))]], y=[0, *part, 0], yaxis="y2", mode="lines",
        line=look.line | {"width": 1.5, "shape": "hv"}, fill="tozeroy", fillcolor=band(look.color),
        legendgroup=look.name, showlegend=False,
        hovertemplate=f"from %{{x:.2f}} ms on: %{{y:.1%}} of the answers"
        f"<extra>{look.label}</extra>",
    )  # fmt: skip


def _slower(ranked: Ranked, names: Sequence[str], look: Look, most: int) -> Trace:
    """The share of answers that are not faster, in the lower axes."""
    n = len(ranked.ms)
    ranks = thinned(n, most)
    rounds, samples = np.divmod(ranked.index[ranks], len(names))
    return charts.scatter(
        x=ranked.ms[ranks], y=(n - ranks) / n, name=look.label,
        mode="lines" if n > _FEW else "lines+markers",
        line=look.line | {"width": 1.5, "shape": "vh"}, legendgroup=look.name,
        marker={"color": look.color, "size": 4},
        customdata=[
            [text(names[at]), row + 1] for row, at in zip(rounds.tolist(), samples, strict=True)
        ],
        hovertemplate="%{y:.2%} take %{x:.3f} ms or longer<br>%{customdata[0]}, round "
        f"%{{customdata[1]}}<extra>{look.label}</extra>",
    )  # fmt: skip


def thinned(n: int, most: int) -> Ints:
    """Return at most *most* of the ranks 0 to n - 1, denser towards the slow end.

    The first and the slowest ones are always among them.
    """
    if n <= most:
        return np.arange(n)
    even = np.linspace(0, n - 1, most // 2)
    tail = n - np.geomspace(1, n, most // 2)
    return np.unique(np.concatenate([even, tail]).astype(np.int64))


def _marks(rows: Mapping[str, Percentile], look: Look) -> Trace:
    """The known percentiles, with their intervals."""
    carried = {name: row for name, row in rows.items() if row.ms is not None}
    ms = np.array([row.ms for row in carried.values()], np.float64)
    ends = np.array([row.ci95 or (np.nan, np.nan) for row in carried.values()], np.float64)
    ends = ends.reshape(-1, 2)
    return charts.scatter(
        x=ms, y=[1 - float(name[1:]) / 100 for name in carried], mode="markers", marker=look.marker,
        error_x={
            "type": "data", "symmetric": False, "array": ends[:, 1] - ms,
            "arrayminus": ms - ends[:, 0], "color": look.color, "thickness": 1.5, "width": 3,
        },
        name=look.label, legendgroup=look.name, showlegend=False, customdata=[
            [name, _interval(row)] for name, row in carried.items()
        ],
        hovertemplate=f"%{{customdata[0]}}: %{{x:.3f}} ms%{{customdata[1]}}"
        f"<extra>{look.label}</extra>",
    )  # fmt: skip


def _interval(row: Percentile) -> str:
    words = ""
    if row.ci95:
        words = "<br>95 % interval {:.3f} to {:.3f}".format(*row.ci95)
    if row.early_stopping_ms is not None:
        words += f"<br>LoadGen's early-stopping estimate {row.early_stopping_ms:.3f}"
    return words


def _marked(summary: LatencySummary) -> dict[str, list[float]]:
    """The known percentiles of all stacks, ms, by their names."""
    found: dict[str, list[float]] = {}
    for rows in summary.percentiles.values():
        for name, row in rows.items():
            if row.ms is not None:
                found.setdefault(name, []).append(row.ms)
    return found


def _frame(ranked: list[Floats], marks: list[float]) -> tuple[float, float]:
    """The range that is shown, ms; answers ten times faster than the median are outside."""
    if not ranked and not marks:
        return 0.0, 1.0
    high = max([*(float(ms[-1]) for ms in ranked), *marks])
    middle = min([*(float(np.median(ms)) for ms in ranked), *marks])
    low = min([*(float(ms[0]) for ms in ranked), *marks])
    return max(low, middle / 10), high


def _edges(ranked: Mapping[str, Ranked], low: float, high: float) -> Floats:
    """(bins + 1,) ms, the same for all stacks."""
    if high == low:
        return np.array([0.99 * low, 1.01 * low]) if low else np.array([0.0, 1e-3])
    fewest = min(len(one.ms) for one in ranked.values())
    bins = int(np.clip(np.sqrt(fewest) * 2, 10, BINS))
    log = milliseconds(low, high)["type"] == "log"
    edges: Floats = (np.geomspace if log else np.linspace)(low, high, bins + 1)
    # Rounding must not leave the fastest and the slowest out.
    edges[0], edges[-1] = low, high
    return edges


def _tail_axis(ranked: Mapping[str, Ranked], marks: Iterable[str]) -> dict[str, object]:
    far = [1 - float(name[1:]) / 100 for name in marks]
    least = min([0.05, *(1 / len(one.ms) for one in ranked.values()), *far])
    return {
        "type": "log", "range": [float(np.log10(least)) - 0.15, 0.08],
        "tickvals": list(_PARTS), "ticktext": list(_PARTS.values()),
    }  # fmt: skip


def _notes(
    run: TimedRun, known: Mapping[str, Look], ranked: Mapping[str, Ranked], low: float, most: int
) -> list[str]:
    notes = ["Symbols: percentiles with their 95 % intervals, where there are enough samples."]
    needs: dict[str, list[str]] = {}
    for side, rows in run.summary.percentiles.items():
        short = ", ".join(f"{p} ({row.needs:,} more)" for p, row in rows.items() if row.needs)
        needs.setdefault(short, []).append(known[side].name)
    notes += [
        f"{', '.join(names)}: more samples are needed for {short}."
        for short, names in needs.items()
        if short
    ]
    for side, look in known.items():
        if failed := run.times[side].failed:
            notes.append(f"{look.name}: failed inferences, which are not shown: {failed:,}.")
    for side, one in ranked.items():
        name, n = known[side].name, len(one.ms)
        if n > most:
            notes.append(
                f"{name}: the curve shows {len(thinned(n, most)):,} of {n:,} latencies, including "
                "all of the slowest."
            )
        if outside := int(np.searchsorted(one.ms, low)):
            notes.append(f"{name}: answers under {low:.3g} ms, left of the frame: {outside:,}.")
    return notes


@part(order=130)
@of_rounds
def stages(run: TimedRun) -> Section:
    """Draw the distribution of the latencies of every stage."""
    values = {
        side: {kind: times.answered(kind) / MS for kind in (*times.stages, TOTAL)}
        for side, times in run.times.items()
    }
    return Section(
        "stages",
        "Stages: the latency of each, ms",
        "Which stage takes the time, and in which do the stacks differ?",
        panels=[Panel(drawn)] if (drawn := boxes(values, looks(run.summary.stacks))) else [],
        notes=[BOX],
    )
