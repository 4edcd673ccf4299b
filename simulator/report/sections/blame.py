"""Blame: what each axis costs alone, in order and in fair shares, and which act together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simulator.report import charts
from simulator.report.blame import table
from simulator.report.charts import Figure
from simulator.report.colors import BACK, BAD, FAINT, GOOD, GRID, TEXT, judged
from simulator.report.reading import Run
from simulator.report.sections.section import Panel, Section, Table, part
from simulator.report.sections.style import figure, text
from simulator.report.words import better, heading, is_significant, points, title
from simulator.results.suites import Blame, Effect, ExplainSummary

_FOR_WORDS = 0.35
"""Of a waterfall's width, beside it, for the numbers at its bars."""
_FROM_BAD_TO_GOOD = ((0, BAD), (0.5, BACK), (1, GOOD))


@part(order=80)
def waterfall(run: Run) -> Section | None:
    """Show the axes swapped one after the other, from the one stack to the other."""
    return _each(
        run,
        "waterfall",
        "Waterfall: one axis after the other, points",
        "How does the loss build up, from the training stack to the deployment stack?",
        _waterfall,
        ["Axes are swapped in the order of the pipeline; another order would give other steps."],
    )


@part(order=90)
def shapley(run: Run) -> Section | None:
    """Show each axis' fair share, with its interval."""
    summary = run.summary
    found = _each(
        run,
        "shapley",
        "Blame: each axis' share, points",
        "Which axis costs what, when the order does not count?",
        _shapley,
        [
            "Shapley values over all mixtures of the two stacks: they sum to the total. Lines: "
            "95 % intervals, paired; filled: significant at 5 % after Holm's "
            "correction."
        ],
    )
    if found is None or not isinstance(summary, ExplainSummary):
        return None
    tables = [
        Table.of(table(summary, heading(summary.task, metric), blame))
        for metric, blame in summary.blame.items()
    ]
    return Section(
        found.key, found.title, found.question, _together(summary), found.panels, found.notes,
        tables=tables,
    )  # fmt: skip


@part(order=100)
def interactions(run: Run) -> Section | None:
    """Show what pairs of axes cost beyond the sum of each alone."""
    if not isinstance(run.summary, ExplainSummary) or len(run.summary.axes) < 2:
        return None
    return _each(
        run,
        "interactions",
        "Interactions: what two axes cost beyond each alone, points",
        "Which axes are worse, or better, together?",
        _matrix,
        ["Marked with *: significant at 5 % after Holm's correction over all pairs."],
    )


def _each(
    run: Run, key: str, name: str, question: str, draw: Any, notes: Sequence[str]
) -> Section | None:
    summary = run.summary
    if not isinstance(summary, ExplainSummary) or not summary.axes:
        return None
    names = summary.axes
    panels = [
        Panel(draw(names, blame, better(metric)), heading(summary.task, metric))
        for metric, blame in summary.blame.items()
    ]
    why = [] if panels else ["Nothing was measured that an axis could be blamed for."]
    return Section(key, name, question, (), panels, [*(notes if panels else ()), *why])


def _waterfall(names: Sequence[str], blame: Blame, turn: int) -> Figure:
    effects = [*(blame.waterfall[name] for name in names), blame["total"]]
    values = _in_points(effects)
    steps = np.nan_to_num(values[:-1])
    places = [*map(text, names), "in all"]
    ends = np.concatenate([[0], np.cumsum(steps)])
    bars = charts.bar(
        x=[*steps, ends[-1]], base=[*ends[:-1], 0], y=places, orientation="h",
        marker=judged(turn * np.append(steps, ends[-1])),
        text=[points(effect) for effect in effects],
        textposition="outside", cliponaxis=False,
        hovertemplate="%{y}: %{text} points<extra></extra>",
    )  # fmt: skip
    joints = charts.scatter(
        x=np.repeat(ends[1:], 3), y=[one for at, name in enumerate(places[:-1])
                                     for one in (name, places[at + 1], None)],
        mode="lines", line={"color": FAINT, "width": 1}, hoverinfo="skip",
    )  # fmt: skip
    height = 110 + 34 * len(places)
    drawn = figure([joints, bars], height, "points", "", showlegend=False)
    low, high = float(ends.min()), float(ends.max())
    down, up = bool((values < 0).any()), bool((values > 0).any())
    left, right = ((_FOR_WORDS if side or down == up else 0.04) * ((high - low) or 1)
                   for side in (down, up))  # fmt: skip
    drawn.update_xaxes(range=[low - left, high + right], zeroline=True)
    drawn.update_yaxes(type="category", categoryorder="array", categoryarray=places,
                       autorange="reversed")  # fmt: skip
    return drawn


def _shapley(names: Sequence[str], blame: Blame, turn: int) -> Figure:
    rows = [blame.shapley[name] for name in names]
    value = _in_points(rows)
    low, high = 100 * np.array([row.ci95 for row in rows], np.float64).T
    clear = list(map(is_significant, rows))
    trace = charts.bar(
        x=value, y=list(map(text, names)), orientation="h",
        marker=judged(turn * value, clear),
        error_x={
            "type": "data", "symmetric": False, "array": high - value, "arrayminus": value - low,
            "color": TEXT, "thickness": 1.5, "width": 4,
        },
        customdata=[[lo, hi, row.p_holm] for lo, hi, row in zip(low, high, rows, strict=True)],
        hovertemplate="%{y}: %{x:+.2f} points, 95 % interval %{customdata[0]:+.2f} to "
        "%{customdata[1]:+.2f}, Holm p %{customdata[2]:.3g}<extra></extra>",
    )  # fmt: skip
    drawn = figure([trace], 90 + 38 * len(names), "points", "", showlegend=False)
    drawn.update_yaxes(autorange="reversed")
    drawn.update_xaxes(zeroline=True)
    return drawn


def _matrix(names: Sequence[str], blame: Blame, turn: int) -> Figure:
    places = {name: at for at, name in enumerate(names)}
    z = np.full((len(names), len(names)), np.nan)
    words = np.full(z.shape, "", object)
    for pair in blame.interactions:
        a, b = sorted(places[name] for name in pair.axes)
        (z[b, a],) = _in_points([pair])
        words[b, a] = points(pair) + ("*" if is_significant(pair) else "")
    most = float(np.nan_to_num(np.abs(z)).max()) or 1.0
    labels = list(map(text, names))
    heat = charts.heatmap(
        x=labels[:-1], y=labels[1:], z=z[1:, :-1], text=words[1:, :-1], texttemplate="%{text}",
        zmin=-most, zmax=most, colorscale=_FROM_BAD_TO_GOOD, reversescale=turn < 0,
        hoverongaps=False, hovertemplate="%{x} and %{y}: %{z:+.2f} points<extra></extra>",
        colorbar={"thickness": 12, "outlinewidth": 0},
    )  # fmt: skip
    drawn = figure([heat], 130 + 44 * len(names), "", "")
    drawn.update_xaxes(showgrid=False, gridcolor=GRID)
    drawn.update_yaxes(showgrid=False, autorange="reversed")
    return drawn


def _in_points(effects: Sequence[Effect]) -> NDArray[np.float64]:
    """Their values; NaN where one is not known."""
    return 100 * np.array([effect.value for effect in effects], np.float64)


def _together(summary: ExplainSummary) -> list[str]:
    return [
        f"{' and '.join(pair.axes)} together: {points(pair)} points of "
        f"{title(summary.task, metric)} beyond the sum of each alone."
        for metric, blame in summary.blame.items()
        for pair in blame.interactions
        if is_significant(pair)
    ]
