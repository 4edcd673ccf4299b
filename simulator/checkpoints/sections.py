"""What the page of several sweeps shows: noise against clean accuracy, by recipe.

It is SysNoise's figure 4. Every recipe has a color and a symbol of its own. Filled is the mean over
a column's options with its intervals, open the worst option.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

from simulator.checkpoints import tables
from simulator.checkpoints.words import limits
from simulator.report import charts
from simulator.report.charts import Figure, Trace
from simulator.report.colors import FAINT
from simulator.report.sections.section import Cell, Link, Panel, Section
from simulator.report.sections.style import Look, error_bars, figure, looks, text
from simulator.report.words import PAGE, title, turned
from simulator.results.checkpoints import Checkpoint, Checkpoints
from simulator.results.shared import Profile


def sections(found: Checkpoints, beside: Path) -> list[Section]:
    """Return the parts of the page.

    Args:
        found: the figures.
        beside: the folder of the page; links to the runs' pages are relative to it.
    """
    return [_noise(found), *_differences(found), *_tested(found), _models(found, beside)]


def scatter(found: Checkpoints, column: str) -> Figure:
    """Return one panel: the change in a column against clean accuracy, a point per checkpoint."""
    drawn_as = looks({name: Profile(profile=name) for name in found.recipes})
    groups: Mapping[str, list[Checkpoint]] = {
        name: [checkpoint for checkpoint in found.checkpoints if checkpoint.recipe == name]
        for name in found.recipes
    }
    traces = [_mean(group, column, drawn_as[name]) for name, group in groups.items()]
    if len(found.options[column]) > 1:
        traces += [_most(group, column, drawn_as[name]) for name, group in groups.items()]
    metric = title(found.task, found.metric)
    drawn = figure(traces, 340, f"{metric} of the training stack, %", "change, points")
    drawn.update_yaxes(zeroline=True, zerolinecolor=FAINT)
    return drawn


def _mean(group: Sequence[Checkpoint], column: str, look: Look) -> Trace:
    x = [100 * checkpoint.trained.value for checkpoint in group]
    shown = [checkpoint.columns[column].drop for checkpoint in group]
    y = [0 - 100 * share.value for share in shown]
    both = ((y, [turned(share.ci95) for share in shown]), (x, [one.trained.ci95 for one in group]))
    down, across = (
        error_bars(values, [[100 * (end or 0) for end in ci95] for ci95 in of], color=look.color)
        for values, of in both
    )
    return charts.scatter(
        x=x, y=y, mode="markers", name=look.label, legendgroup=look.name, error_y=down,
        error_x=across, marker={**look.marker, "size": 10},
        customdata=[[text(one.model), one.columns[column].flip_rate.value] for one in group],
        hovertemplate="%{customdata[0]}: %{y:+.2f} points, %{customdata[1]:.1%} flipped"
        "<extra></extra>",
    )  # fmt: skip


def _most(group: Sequence[Checkpoint], column: str, look: Look) -> Trace:
    return charts.scatter(
        x=[100 * checkpoint.trained.value for checkpoint in group],
        y=[0 - 100 * checkpoint.columns[column].max_drop for checkpoint in group],
        mode="markers", name=look.label, legendgroup=look.name, showlegend=False,
        marker={
            "color": look.color, "symbol": f"{look.symbol}-open", "size": 9, "line": {"width": 1.5},
        },
        customdata=[[text(one.model), text(one.columns[column].worst)] for one in group],
        hovertemplate="%{customdata[0]}, %{customdata[1]}: %{y:+.2f} points<extra></extra>",
    )  # fmt: skip


def _noise(found: Checkpoints) -> Section:
    metric = title(found.task, found.metric)
    caption = (
        "Mean over options ± half of its 95 % interval, sd between trainings (the worst option) / "
        "answers flipped"
    )
    return Section(
        "noise",
        f"Noise and clean {metric}: the change in each column, points",
        "Do checkpoints of some recipe lose less, and what do they pay for it?",
        panels=[Panel(scatter(found, name), name) for name in found.options],
        notes=[
            "Filled: the mean over the options of the column, with 95 % intervals over samples; "
            "open: the worst option.",
            *limits(found),
        ],
        tables=[tables.recipes(found, caption)],
    )


def _differences(found: Checkpoints) -> list[Section]:
    if not found.comparisons:
        return []
    shown = [tables.comparisons(found, of) for of in tables.FIGURES]
    section = Section(
        "differences",
        f"Differences: less {found.first}, points",
        f"Which recipe loses more or less than {found.first}, beyond chance?",
        [
            "Accuracy below 0: this recipe loses more; flips above 0: it flips more. Intervals "
            "are of the same samples for all models. Marked: more than chance explains for "
            "these checkpoints; the last two columns count the chance of a training too."
        ],
        tables=shown,
    )
    return [section]


def _tested(found: Checkpoints) -> list[Section]:
    made = tables.tested(found)
    section = Section(
        "tested",
        f"Trained on, tested on: {title(found.task, found.metric)}, %",
        "Which recipe is good on every option?",
        ["std is over a row's options (ddof = 1): small where they do not matter."],
        tables=made,
    )
    return [section] * bool(made)


def _models(found: Checkpoints, beside: Path) -> Section:
    made = tables.checkpoints(found, "Every model; its name leads to its own report")
    links = [_link(checkpoint, beside) for checkpoint in found.checkpoints]
    cells = [[link, *row[1:]] for link, row in zip(links, made.rows, strict=True)]
    return Section(
        "models",
        "Models: each by itself",
        "What does each checkpoint lose?",
        tables=[replace(made, rows=cells)],
    )


def _link(checkpoint: Checkpoint, beside: Path) -> Cell:
    page = Path(checkpoint.run) / PAGE
    if not page.is_file():
        return checkpoint.model
    return [Link(checkpoint.model, quote(os.path.relpath(page, beside)))]
