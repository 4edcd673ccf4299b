"""Report sections: how the latency depends on the input's size, and on the input itself.

Source:
    The questions of figures 2 to 4 of Yang et al., arXiv 2212.13925.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from simulator.latency.figures import Floats
from simulator.latency.inputs import ROUNDS_NEEDED
from simulator.latency.reading import TimedRun, of_rounds
from simulator.latency.tables import slope
from simulator.latency.times import NEVER, Times
from simulator.report import charts
from simulator.report.charts import Figure, Trace
from simulator.report.sections.section import Panel, Section, part
from simulator.report.sections.style import Look, counting, figure, looks, milliseconds, text
from simulator.results.timed import Instances, LengthEffect, SizeEffect
from simulator.results.times import Ints
from simulator.statistics.percentiles import MS

POINTS = 5000
"""The largest number of points of the scatter plot, all stacks together."""
BOXES = 24
"""The largest number of images of equal size that are drawn."""


@part(order=150)
@of_rounds
def size(run: TimedRun) -> Section | None:
    """Draw each image's median against its size, with the regression line of the summary."""
    if run.sizes is None or not run.summary.inputs:
        return None
    effects = {side: effect.size for side, effect in run.summary.inputs.items() if effect.size}
    panel, notes = regression(
        run, run.megapixels, "image size, megapixels", effects,
        [f"<br>{width} × {height}, " for width, height in run.sizes.tolist()],
    )  # fmt: skip
    if not effects:
        notes.append("No line: at least three images of different sizes are needed.")
    known = looks(run.summary.stacks)
    return Section(
        "size",
        "Image size: each image's median latency, ms, against its megapixels",
        "Do larger images take longer, and how much of the differences does the size explain?",
        [f"{known[side].name}: {slope(effect)}." for side, effect in effects.items()],
        [Panel(panel)] if any(np.isfinite(trace["y"]).any() for trace in panel.data) else [],
        notes,
    )


def regression(
    run: TimedRun,
    sizes: Floats | Ints,
    axis: str,
    effects: Mapping[str, SizeEffect | LengthEffect],
    words: Sequence[str],
) -> tuple[Figure, list[str]]:
    """Draw each sample's median against its size, with the lines of the summary.

    Args:
        run: the rounds.
        sizes: (n,) of the samples.
        axis: what they are, with their unit.
        effects: the line of each stack that has one.
        words: what is said of each sample after its name.

    Returns:
        The figure, and what is left out.
    """
    known, noun = looks(run.summary.stacks), run.summary.sample_unit
    drawn = _shown(run)
    notes, traces = [], []
    for side, times in run.times.items():
        traces.append(_points(run, side, known[side], sizes, drawn, words))
        if silent := int((times.total == NEVER).all(axis=0).sum()):
            notes.append(
                f"{known[side].name}: {noun}s that always failed and have no point: {silent:,}."
            )
        if times.together > 1:
            notes.append(
                f"{known[side].name}: a point is {times.together} {noun}s that are answered "
                "together, at the sum of their sizes."
            )
    traces += [
        line(effect, run.times[side].of_queries(sizes), known[side])
        for side, effect in effects.items()
    ]
    if len(drawn) < len(run.names):
        notes.append(
            f"{len(drawn):,} of {len(run.names):,} {noun}s are drawn, evenly from the fastest to "
            f"the slowest; the lines are fitted to all {noun}s."
        )
    panel = figure(traces, 440, axis, "median over rounds, ms")
    panel.update_xaxes(rangemode="tozero")
    panel.update_yaxes(rangemode="tozero")
    return panel, notes


def _shown(run: TimedRun) -> Ints:
    """Which samples are drawn; the same for all stacks."""
    room = max(2, POINTS // max(1, len(run.times)))
    if len(run.names) <= room:
        return np.arange(len(run.names))
    order = np.argsort(_medians(next(iter(run.times.values()))), kind="stable")
    return np.sort(_evenly(order, room))


def _evenly(order: Ints, room: int) -> Ints:
    """At most *room* elements of *order*, evenly spaced, with the first and the last."""
    found: Ints = order[np.unique(np.linspace(0, len(order) - 1, room).astype(np.int64))]
    return found


def _medians(times: Times) -> Floats:
    """(n,) median in ms of the rounds that did not fail; NaN where all failed."""
    never = times.total == NEVER
    silent = never.all(axis=0)
    ms = np.where(never & ~silent, np.nan, times.total / MS)
    found: Floats = np.nanmedian(ms, axis=0) if never.any() else np.median(ms, axis=0)
    found[silent] = np.nan
    return found


def _points(
    run: TimedRun,
    side: str,
    look: Look,
    sizes: Floats | Ints,
    drawn: Ints,
    words: Sequence[str],
) -> Trace:
    times = run.times[side]
    drawn, size = np.unique(drawn // times.together), times.together
    more = f" and {size - 1} more<br>"
    return charts.scatter(
        x=times.of_queries(sizes)[drawn], y=times.latencies(_medians(times))[drawn], mode="markers",
        marker=look.marker | {"size": 7, "opacity": 0.7}, name=look.label, legendgroup=look.name,
        customdata=[
            [text(run.names[at]), words[at] if size == 1 else more] for at in drawn * size
        ],
        hovertemplate="%{customdata[0]}%{customdata[1]}median %{y:.3f} ms"
        f"<extra>{look.label}</extra>",
    )  # fmt: skip


def line(effect: SizeEffect | LengthEffect, sizes: Floats | Ints, look: Look) -> Trace:
    """Return the line of an effect over the samples' sizes."""
    ends = np.array([sizes.min(), sizes.max()])
    by_one = (
        effect.ms_per_megapixel if isinstance(effect, SizeEffect) else effect.ms_per_thousand / 1e3
    )
    return charts.scatter(
        x=ends, y=effect.intercept_ms + by_one * ends, mode="lines",
        line=look.line | {"width": 2.5}, name=look.label, legendgroup=look.name, showlegend=False,
        hoverinfo="skip",
    )  # fmt: skip


@part(order=160)
@of_rounds
def equal_size(run: TimedRun) -> Section | None:
    """Draw the latencies of single images that have the most frequent size."""
    if run.sizes is None or not run.summary.inputs:
        return None
    key, title = "instances", "Images of equal size: latency, ms"
    question = "Do images of the same size take the same time, or does the content matter?"
    known = looks(run.summary.stacks)
    same = {
        side: effect.equal_size for side, effect in run.summary.inputs.items() if effect.equal_size
    }
    alone = {side: time for side, time in run.times.items() if time.together == 1}
    enough = {side: time for side, time in alone.items() if time.rounds >= ROUNDS_NEEDED}
    if not alone:
        return None
    if not same:
        return Section(key, title, question, notes=["No two images have the same size."])
    if not enough:
        most = max(time.rounds for time in alone.values())
        why = f"A box needs {ROUNDS_NEEDED} rounds of single latencies; the run has {most}."
        return Section(key, title, question, notes=[why])
    one = next(iter(same.values()))
    among = np.flatnonzero((run.sizes == (one.width, one.height)).all(axis=1))
    first, times = next(iter(enough.items()))
    chosen = _evenly(among[np.argsort(_medians(times)[among], kind="stable")], BOXES)
    ms = {side: times.finite()[:, chosen] / MS for side, times in enough.items()}
    axis = milliseconds(min(map(np.min, ms.values())), max(map(np.max, ms.values())))
    notes = [
        "Box: quartiles and median of an image's rounds; whiskers: fastest and slowest round. "
        f"They are in the order of {known[first].name}'s medians."
    ]
    if len(chosen) < len(among):
        notes.append(f"{len(chosen)} of {len(among):,} images are drawn, evenly in that order.")
    names = [run.names[at] for at in chosen]
    return Section(
        key,
        f"{title}, of {len(among):,} images of {one.width} × {one.height} pixels",
        question,
        [
            f"{known[side].name}: their medians range from {found.min_ms:.2f} to "
            f"{found.max_ms:.2f} ms."
            for side, found in same.items()
        ],
        [
            Panel(_boxes(own, names, known[side], axis), known[side].name)
            for side, own in ms.items()
        ],
        notes,
        names,
    )


def _boxes(ms: Floats, names: Sequence[str], look: Look, axis: Mapping[str, object]) -> Figure:
    """A box for each of some images, of (rounds, images) ms."""
    quartiles = np.quantile(ms, [0, 0.25, 0.5, 0.75, 1], axis=0)
    least, q1, middle, q3, most = quartiles
    number = np.arange(1, len(names) + 1)
    boxes = charts.box(
        x=number, lowerfence=least, q1=q1, median=middle, q3=q3, upperfence=most,
        hoverinfo="skip", line={"color": look.color, "width": 1.5}, name=look.label,
    )  # fmt: skip
    hover = charts.scatter(
        x=number, y=middle, mode="markers", marker=look.marker | {"opacity": 0}, showlegend=False,
        customdata=[
            [text(name), *row] for name, row in zip(names, quartiles.T.tolist(), strict=True)
        ],
        hovertemplate="%{customdata[0]}<br>median %{y:.3f} ms, quartiles %{customdata[2]:.3f} and "
        "%{customdata[4]:.3f}<br>from %{customdata[1]:.3f} to %{customdata[5]:.3f} ms"
        "<extra>%{x}</extra>",
    )  # fmt: skip
    drawn = figure([boxes, hover], 360, "image", "latency, ms", showlegend=False)
    drawn.update_yaxes(**axis)
    drawn.update_xaxes(range=[0.4, len(names) + 0.6], **counting(len(names)))
    return drawn


@part(order=170)
@of_rounds
def divergence(run: TimedRun) -> Section | None:
    """Draw how far the distributions of samples are apart, in pairs."""
    if not run.summary.inputs or all(time.together > 1 for time in run.times.values()):
        return None
    known, unit = looks(run.summary.stacks), run.summary.sample_unit
    found = {
        side: effect.instances
        for side, effect in run.summary.inputs.items()
        if effect.instances is not None and len(effect.instances.samples) > 1
    }
    notes = [f"The {unit}s are evenly spread over the sizes, from the smallest to the largest."]
    return Section(
        "divergence",
        f"{unit.capitalize()}s side by side: root Jensen-Shannon divergence of their latencies "
        "(0 equal, 1 disjoint)",
        f"Does each {unit} have a distribution of its own, or do they share one?",
        panels=[
            Panel(_heat(instances, unit), known[side].name) for side, instances in found.items()
        ],
        notes=notes if found else [f"At least two {unit}s and {ROUNDS_NEEDED} rounds are needed."],
        numbered=next((instances.samples for instances in found.values()), ()),
    )


def _heat(instances: Instances, unit: str) -> Figure:
    names = [text(name, 48) for name in instances.samples]
    number = np.arange(1, len(names) + 1)
    heat = charts.heatmap(
        x=number, y=number, z=np.array(instances.rjsd, np.float64), zmin=0, zmax=1,
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
