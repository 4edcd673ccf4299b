"""Report sections: how the latency depends on the length of samples, and on what a network is fed.

Source:
    The question of figure 2 (c) of Yang et al., arXiv 2212.13925.
"""

from __future__ import annotations

from simulator.latency.inputs import network_means
from simulator.latency.reading import TimedRun, of_rounds
from simulator.latency.sections.inputs import line, regression
from simulator.latency.tables import slope
from simulator.report import charts
from simulator.report.sections.section import Panel, Section, part
from simulator.report.sections.style import figure, looks, text


@part(order=150)
@of_rounds
def length(run: TimedRun) -> Section | None:
    """Draw each sample's median against its length, with the regression line of the summary."""
    if not run.lengths:
        return None
    ((unit, lengths),) = run.lengths.items()
    known, noun = looks(run.summary.stacks), run.summary.sample_unit
    effects = {side: effect.length for side, effect in run.summary.inputs.items() if effect.length}
    words = [f"<br>{found}, " for found in lengths.tolist()]
    panel, notes = regression(run, lengths, f"length, {unit}", effects, words)
    return Section(
        "length",
        f"Length: each {noun}'s median latency, ms, against its {unit}",
        f"Do longer {noun}s take longer, and how much of the differences does the length explain?",
        [f"{known[side].name}: {slope(effect)}." for side, effect in effects.items()],
        [Panel(panel)],
        notes,
    )


@part(order=155)
@of_rounds
def network(run: TimedRun) -> Section | None:
    """Draw the mean time of the network alone against what it is fed."""
    effects = {side: run.summary.inputs[side].network for side in run.fed}
    known, traces = looks(run.summary.stacks), []
    for side, effect in effects.items():
        assert effect is not None
        look, times = known[side], run.times[side]
        fed, ms = times.of_queries(run.fed[side]), times.latencies(network_means(times))
        traces.append(charts.scatter(
            x=fed, y=ms, mode="markers", name=look.label,
            marker=look.marker | {"size": 7, "opacity": 0.7}, legendgroup=look.name,
            customdata=[[text(name)] for name in run.names[:: times.together]],
            hovertemplate=f"%{{customdata[0]}}<br>%{{x:,}} {effect.unit}, mean %{{y:.3f}} ms"
            f"<extra>{look.label}</extra>",
        ))  # fmt: skip
        traces.append(line(effect, fed, look))
    if not traces:
        return None
    units = " or ".join(dict.fromkeys(effect.unit for effect in effects.values() if effect))
    return Section(
        "network",
        f"Network: its mean time alone, ms, against the {units} that it is fed",
        f"Does the network take longer for more {units}?",
        [f"{known[side].name}: {slope(effect)}." for side, effect in effects.items() if effect],
        [Panel(figure(traces, 440, units, "mean over rounds, ms"))],
    )
