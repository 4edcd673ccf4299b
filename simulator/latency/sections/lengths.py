"""Report section: how the latency of texts and sounds depends on their length.

Source:
    The question of figure 2 (c) of Yang et al., arXiv 2212.13925.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from simulator.latency.reading import TimedRun, of_rounds
from simulator.latency.sections.inputs import sample_medians, shown_samples
from simulator.report import charts
from simulator.report.charts import Trace
from simulator.report.sections.section import Panel, Section, part
from simulator.report.sections.style import Look, figure, looks, text
from simulator.report.words import share
from simulator.results.timed import LengthEffect
from simulator.results.times import Ints


@part(order=150)
@of_rounds
def length(run: TimedRun) -> Section | None:
    """Draw each sample's median against its length, with the regression line of the summary."""
    if not run.lengths:
        return None
    ((unit, lengths),) = run.lengths.items()
    known, noun = looks(run.summary.stacks), run.summary.sample_unit
    lines = {side: one.length for side, one in run.summary.inputs.items() if one.length}
    drawn = shown_samples(run)
    traces = [_points(run, side, known[side], lengths, drawn) for side in run.times]
    traces += [_line(line, lengths, known[side]) for side, line in lines.items()]
    notes = []
    if len(drawn) < len(run.names):
        notes.append(
            f"{len(drawn):,} of {len(run.names):,} {noun}s are drawn, evenly from the fastest to "
            f"the slowest; the lines are fitted to all {noun}s."
        )
    panel = figure(traces, 440, f"length, {unit}", "median over rounds, ms")
    panel.update_xaxes(rangemode="tozero")
    panel.update_yaxes(rangemode="tozero")
    return Section(
        "length",
        f"Length: each {noun}'s median latency, ms, against its {unit}",
        f"Do longer {noun}s take longer, and how much of the differences does the length explain?",
        [_slope(known[side], line) for side, line in lines.items()],
        [Panel(panel)],
        notes,
    )


def _slope(look: Look, line: LengthEffect) -> str:
    low, high = line.ci95
    interval = "" if low is None else f" (95 % interval {low:+.2f} to {high:+.2f})"
    return (
        f"{look.name}: {line.ms_per_thousand:+.2f} ms per 1,000 {line.unit}{interval}, which "
        f"explains {share(line.r2, 0)} of the variance."
    )


def _points(run: TimedRun, side: str, look: Look, lengths: Ints, drawn: Ints) -> Trace:
    return charts.scatter(
        x=lengths[drawn], y=sample_medians(run.times[side])[drawn], mode="markers",
        marker=look.marker | {"size": 7, "opacity": 0.7}, name=look.label, legendgroup=look.name,
        customdata=[[text(run.names[at])] for at in drawn],
        hovertemplate="%{customdata[0]}<br>%{x}, median %{y:.3f} ms"
        f"<extra>{look.label}</extra>",
    )  # fmt: skip


def _line(line: LengthEffect, lengths: Ints, look: Look) -> Trace:
    ends: Any = np.array([lengths.min(), lengths.max()])
    return charts.scatter(
        x=ends, y=line.intercept_ms + line.ms_per_thousand * ends / 1e3, mode="lines",
        line=look.line | {"width": 2.5}, name=look.label, legendgroup=look.name, showlegend=False,
        hoverinfo="skip",
    )  # fmt: skip
