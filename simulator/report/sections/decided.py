"""When the gate was decided: how the bound of each rule closed in on its limit."""

from __future__ import annotations

from simulator.report import charts
from simulator.report.charts import Figure
from simulator.report.colors import FAINT, STACKS, band
from simulator.report.reading import Run
from simulator.report.sections.section import Panel, Section, part
from simulator.report.sections.style import figure
from simulator.report.words import decided
from simulator.results.pair import PairSummary
from simulator.results.shared import Bound, RuleOutcome


@part(order=65)
def bounds(run: Run) -> Section | None:
    """Draw the bounds of every rule; None where every sample was to run."""
    summary = run.summary
    if not isinstance(summary, PairSummary) or summary.decided is None:
        return None
    found = summary.decided
    panels = [
        Panel(_drawn(found.bounds[rule.rule], rule), rule.rule)
        for rule in summary.gate.rules
        if found.bounds.get(rule.rule)
    ]
    return Section(
        "decided",
        "When the gate was decided",
        "How many samples did the verdict need?",
        [decided(found, summary.sample_unit)],
        panels,
        [
            "Line: the figure so far; band: where the true one lies; dotted: the limit. All bounds "
            f"hold at once with a probability of {1 - found.alpha:.0%}, so the run may stop at any "
            "of them.",
            "Intervals of flips and deltas are these bounds, each end with 95 %. Others, and all "
            "p-values, are those of a fixed number of samples: a run that stops early makes them "
            "too short.",
        ],
    )


def _drawn(bounds: list[Bound], rule: RuleOutcome) -> Figure:
    seen = [one.samples for one in bounds]
    color = STACKS[0][0]
    drawn = figure(
        [
            charts.scatter(
                x=[*seen, *reversed(seen)],
                y=[*(one.low for one in bounds), *(one.high for one in reversed(bounds))],
                fill="toself", fillcolor=band(color), line={"width": 0}, mode="lines",
                hoverinfo="skip", showlegend=False,
            ),
            charts.scatter(
                x=seen, y=[one.value for one in bounds], mode="lines", showlegend=False,
                line={"color": color, "width": 2}, name="so far",
                customdata=[[one.low, one.high] for one in bounds],
                hovertemplate="%{x} samples: %{y:.2%}<br>between %{customdata[0]:.2%} and "
                "%{customdata[1]:.2%}<extra></extra>",
            ),
            charts.scatter(
                x=[seen[0], seen[-1]], y=[rule.limit] * 2, mode="lines", showlegend=False,
                line={"color": FAINT, "dash": "dot", "width": 2}, hovertemplate="limit %{y:.2%}",
            ),
        ],
        300,
        "samples",
        "figure",
    )  # fmt: skip
    drawn.update_xaxes(type="log")
    drawn.update_yaxes(tickformat=charts.SHARE)
    return drawn
