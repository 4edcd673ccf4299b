"""Report sections: how the latency depends on the input's size, and on the input itself.

Source:
    The questions of figures 2 to 4 of Yang et al., arXiv 2212.13925.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simulator.latency.reading import TimedRun, of_rounds
from simulator.latency.times import NEVER, Times
from simulator.report import charts
from simulator.report.charts import Figure, Trace
from simulator.report.sections.section import Panel, Section, part
from simulator.report.sections.style import Look, counting, figure, looks, milliseconds, text
from simulator.report.words import share
from simulator.results.times import Ints

POINTS = 5000
"""The largest number of points of the scatter plot, all stacks together."""
BOXES = 24
"""The largest number of images of equal size that are drawn."""
ROUNDS_NEEDED = 5
"""The smallest number of rounds for a box of one image."""
MS = 1e6

Floats = NDArray[np.float64]


@part(order=150)
@of_rounds
def size(run: TimedRun) -> Section | None:
    """Draw each image's median against its size, with the regression line of the summary."""
    if run.sizes is None:
        return None
    known = looks(run.summary.stacks)
    lines = {side: one["size"] for side, one in run.summary["inputs"].items() if one["size"]}
    drawn = shown_samples(run)
    traces: list[Trace] = [_points(run, side, known[side], drawn) for side in run.times]
    for side, line in lines.items():
        traces.append(_line(line, run.megapixels, known[side]))
    notes = []
    for side, times in run.times.items():
        if silent := int((times.total == NEVER).all(axis=0).sum()):
            notes.append(
                f"{known[side].name}: images that always failed and have no point: {silent:,}."
            )
    if len(drawn) < len(run.names):
        notes.append(
            f"{len(drawn):,} of {len(run.names):,} images are drawn, evenly from the fastest to "
            "the slowest; the lines are fitted to all images."
        )
    if not lines:
        notes.append("No line: at least three images of different sizes are needed.")
    panel = figure(traces, 440, "image size, megapixels", "median over rounds, ms")
    panel.update_xaxes(rangemode="tozero")
    panel.update_yaxes(rangemode="tozero")
    return Section(
        "size",
        "Image size: each image's median latency, ms, against its megapixels",
        "Do larger images take longer, and how much of the differences does the size explain?",
        [_slope(known[side], line) for side, line in lines.items()],
        [Panel(panel)] if any(np.isfinite(trace["y"]).any() for trace in traces) else [],
        notes,
    )


def _slope(look: Look, line: Mapping[str, Any]) -> str:
    low, high = line["ci95"]
    interval = "" if low is None else f" (95 % interval {low:+.2f} to {high:+.2f})"
    return (
        f"{look.name}: {line['ms_per_megapixel']:+.2f} ms per megapixel{interval}, which explains "
        f"{share(line['r2'], 0)} of the variance."
    )


def shown_samples(run: TimedRun) -> Ints:
    """Which samples are drawn; the same for all stacks."""
    room = max(2, POINTS // max(1, len(run.times)))
    if len(run.names) <= room:
        return np.arange(len(run.names))
    order = np.argsort(sample_medians(next(iter(run.times.values()))), kind="stable")
    return np.sort(_evenly(order, room))


def _evenly(order: Ints, room: int) -> Ints:
    """At most *room* elements of *order*, evenly spaced, with the first and the last."""
    found: Ints = order[np.unique(np.linspace(0, len(order) - 1, room).astype(np.int64))]
    return found


def sample_medians(times: Times) -> Floats:
    """(n,) median in ms of the rounds that did not fail; NaN where all failed."""
    never = times.total == NEVER
    silent = never.all(axis=0)
    ms = np.where(never & ~silent, np.nan, times.total / MS)
    found: Floats = np.nanmedian(ms, axis=0) if never.any() else np.median(ms, axis=0)
    found[silent] = np.nan
    return found


def _points(run: TimedRun, side: str, look: Look, drawn: Ints) -> Trace:
    assert run.sizes is not None
    return charts.scatter(
        x=run.megapixels[drawn], y=sample_medians(run.times[side])[drawn], mode="markers",
        marker=look.marker | {"size": 7, "opacity": 0.7}, name=look.label, legendgroup=look.name,
        customdata=[[text(run.names[at]), *run.sizes[at].tolist()] for at in drawn],
        hovertemplate="%{customdata[0]}<br>%{customdata[1]} × %{customdata[2]}, median %{y:.3f} ms"
        f"<extra>{look.label}</extra>",
    )  # fmt: skip


def _line(line: Mapping[str, Any], megapixels: Floats, look: Look) -> Trace:
    ends = np.array([megapixels.min(), megapixels.max()])
    return charts.scatter(
        x=ends, y=line["intercept_ms"] + line["ms_per_megapixel"] * ends, mode="lines",
        line=look.line | {"width": 2.5}, name=look.label, legendgroup=look.name, showlegend=False,
        hoverinfo="skip",
    )  # fmt: skip


@part(order=160)
@of_rounds
def equal_size(run: TimedRun) -> Section | None:
    """Draw the latencies of single images that have the most frequent size."""
    if run.sizes is None:
        return None
    key = "instances"
    question = "Do images of the same size take the same time, or does the content matter?"
    known = looks(run.summary.stacks)
    same = next((one["equal_size"] for one in run.summary["inputs"].values()), None)
    enough = {side: one for side, one in run.times.items() if one.rounds >= ROUNDS_NEEDED}
    if same is None or not enough:
        most = max(one.rounds for one in run.times.values())
        why = (
            f"A box needs {ROUNDS_NEEDED} rounds of single latencies; the run has {most}."
            if same
            else "No two images have the same size."
        )
        return Section(key, "Images of equal size: latency, ms", question, notes=[why])
    among = np.flatnonzero((run.sizes == (same["width"], same["height"])).all(axis=1))
    first = next(iter(enough))
    order = np.argsort(sample_medians(enough[first])[among], kind="stable")
    chosen = _evenly(among[order], BOXES)
    ends = [(ms.min(), ms.max()) for ms in (_ms(one, chosen) for one in enough.values())]
    axis = milliseconds(min(low for low, _ in ends), max(high for _, high in ends))
    notes = [
        "Box: quartiles and median of an image's rounds; whiskers: fastest and slowest round. "
        f"They are in the order of {known[first].name}'s medians."
    ]
    if len(chosen) < len(among):
        notes.append(f"{len(chosen)} of {len(among):,} images are drawn, evenly in that order.")
    return Section(
        key,
        f"Images of equal size: latency, ms, of {len(among):,} images of {same['width']} × "
        f"{same['height']} pixels",
        question,
        [_sentence(known[side], one["equal_size"]) for side, one in run.summary["inputs"].items()],
        [Panel(_boxes(run, side, known[side], chosen, axis), known[side].name) for side in enough],
        notes,
        [run.names[at] for at in chosen],
    )


def _sentence(look: Look, same: Mapping[str, Any]) -> str:
    return f"{look.name}: their medians range from {same['min_ms']:.2f} to {same['max_ms']:.2f} ms."


def _ms(times: Times, chosen: Ints) -> Floats:
    """(R, chosen) ms; for failed inferences the longest latency so far, as in the summary."""
    found: Floats = times.finite()[:, chosen] / MS
    return found


def _boxes(run: TimedRun, side: str, look: Look, chosen: Ints, axis: Mapping[str, Any]) -> Figure:
    ms = _ms(run.times[side], chosen)
    least, q1, middle, q3, most = np.quantile(ms, [0, 0.25, 0.5, 0.75, 1], axis=0)
    number = np.arange(1, len(chosen) + 1)
    boxes = charts.box(
        x=number,
        lowerfence=least,
        q1=q1,
        median=middle,
        q3=q3,
        upperfence=most,
        hoverinfo="skip",
        line={"color": look.color, "width": 1.5},
        name=look.label,
    )
    hover = charts.scatter(
        x=number,
        y=middle,
        mode="markers",
        marker=look.marker | {"opacity": 0},
        showlegend=False,
        customdata=[
            [text(run.names[at]), *row]
            for at, row in zip(
                chosen, np.stack([least, q1, q3, most], axis=1).tolist(), strict=True
            )
        ],
        hovertemplate="%{customdata[0]}<br>median %{y:.3f} ms, quartiles %{customdata[2]:.3f} and "
        "%{customdata[3]:.3f}<br>from %{customdata[1]:.3f} to %{customdata[4]:.3f} ms"
        "<extra>%{x}</extra>",
    )
    drawn = figure([boxes, hover], 360, "image", "latency, ms", showlegend=False)
    drawn.update_yaxes(**axis)
    drawn.update_xaxes(range=[0.4, len(chosen) + 0.6], **counting(len(chosen)))
    return drawn


@part(order=170)
@of_rounds
def divergence(run: TimedRun) -> Section:
    """Draw how far the distributions of samples are apart, in pairs."""
    known = looks(run.summary.stacks)
    found = {
        side: one["instances"]
        for side, one in run.summary["inputs"].items()
        if one["instances"] is not None and len(one["instances"]["samples"]) > 1
    }
    unit = run.summary.sample_unit
    notes = [f"The {unit}s are evenly spread over the sizes, from the smallest to the largest."]
    return Section(
        "divergence",
        f"{unit.capitalize()}s side by side: root Jensen-Shannon divergence of their latencies "
        "(0 equal, 1 disjoint)",
        f"Does each {unit} have a distribution of its own, or do they share one?",
        panels=[Panel(_heat(one, unit), known[side].name) for side, one in found.items()],
        notes=notes if found else [f"At least two {unit}s and {ROUNDS_NEEDED} rounds are needed."],
        numbered=next((one["samples"] for one in found.values()), ()),
    )


def _heat(one: Mapping[str, Any], unit: str) -> Figure:
    names = [text(name, 48) for name in one["samples"]]
    number = np.arange(1, len(names) + 1)
    heat = charts.heatmap(
        x=number, y=number, z=np.array(one["rjsd"], np.float64), zmin=0, zmax=1,
        colorscale="Cividis", customdata=[[[across, down] for across in names] for down in names],
        hovertemplate="%{customdata[0]}<br>%{customdata[1]}<br>rJSD %{z:.3f}<extra></extra>",
        colorbar={"title": {"text": "rJSD"}, "thickness": 12, "len": 1, "outlinewidth": 0},
    )  # fmt: skip
    drawn = figure([heat], 350, unit, unit)
    drawn.update_xaxes(showgrid=False, constrain="domain", **counting(len(names)))
    drawn.update_yaxes(
        showgrid=False, autorange="reversed", scaleanchor="x", constrain="domain",
        **counting(len(names)),
    )  # fmt: skip
    return drawn
