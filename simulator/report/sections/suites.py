"""What the options of a suite cost, each alone and one upon the other."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from simulator.report import charts
from simulator.report.colors import BAD, EVEN, GOOD, TEXT, judged
from simulator.report.reading import Run
from simulator.report.sections.section import Panel, Section, Table, part
from simulator.report.sections.style import figure, text
from simulator.report.words import chance, dropped, ends, moved, share, title, turned
from simulator.results.suites import OptionFigures, SweepSummary, WorstSummary

_NOTES = ("Lines: 95 % intervals; filled: chance does not explain it, the interval leaves out 0.",)
_MOVES = {-1: (BAD, "triangle-down"), 0: (EVEN, "circle"), 1: (GOOD, "triangle-up")}
"""Color and symbol of a step, by the sign of what it does to the metric."""


@part(order=30)
def options(run: Run) -> Section | None:
    """Show every option of a sweep."""
    summary = run.summary
    if not isinstance(summary, SweepSummary):
        return None
    metric = title(summary.task, summary.metric)
    rows = [
        (f"{column}/{name}", one)
        for column in summary.order
        for name, one in options_of(summary, column).items()
    ]
    names = [text(name) for name, _ in rows]
    change = 0 - 100 * np.array([one.drop for _, one in rows], np.float64)
    known = [turned(one.drop_ci95) or (np.nan,) * 2 for _, one in rows]
    low, high = 100 * np.array(known, np.float64).reshape(-1, 2).T
    clear = [not (a <= 0 <= b) for a, b in zip(low, high, strict=True)]
    bars = charts.bar(
        x=change, y=names, orientation="h", marker=judged(change, clear),
        error_x={
            "type": "data", "symmetric": False, "array": high - change,
            "arrayminus": change - low, "color": TEXT, "thickness": 1.5, "width": 3,
        },
        hovertemplate="%{y}: %{x:+.2f} points<extra></extra>",
    )  # fmt: skip
    drawn = figure(
        [bars], 110 + 26 * len(rows), f"change of {metric}, points", "", showlegend=False
    )
    drawn.update_yaxes(type="category", autorange="reversed")
    cells = [
        [
            name, share(one[summary.metric], 2), moved(one.drop),
            ends(turned(one.drop_ci95)), f"{one.flips:,} of {one.units:,}",
            share(one.flip_rate, 2), *([f"{one.samples:,}"] if one.samples is not None else []),
        ]
        for name, one in rows
    ]  # fmt: skip
    head = ["option", metric, "change, points", "95 % interval", "flips", "flip rate"]
    head += ["n"] if any(one.samples is not None for _, one in rows) else []
    return Section(
        "options",
        f"Options: change of {metric}, points",
        "What does each option cost by itself?",
        panels=[Panel(drawn)] if rows else [],
        notes=[
            *_NOTES,
            *(f"{name}: {why}" for name, why in summary.left_out.items()),
            *dropped(summary.early, summary.sample_unit),
        ],
        tables=[Table(head, cells, "Every option, against the training stack", 1)] if rows else [],
    )


def options_of(summary: SweepSummary, column: str) -> dict[str, OptionFigures]:
    """Return the options of a column; none where none applies to the model."""
    found = summary.columns.get(column)
    return found.options if found else {}


@part(order=40)
def path(run: Run) -> Section | None:
    """Show how the worst case builds up."""
    summary = run.summary
    if not isinstance(summary, WorstSummary):
        return None
    metric = summary.metric
    steps = [
        ("the trained stack", summary[metric]),
        *((s.added, s[metric]) for s in summary.path),
    ]
    values = [value for _, value in steps]
    moves = [0 if None in two else int(np.sign(two[1] - two[0])) for two in pairwise(values)]
    line = charts.scatter(
        x=[f"{at}. {text(name, 24)}" for at, (name, _) in enumerate(steps)],
        y=values, mode="lines+markers", showlegend=False, line={"color": EVEN, "width": 2},
        marker={"color": [EVEN, *(_MOVES[move][0] for move in moves)], "size": 11,
                "symbol": ["circle", *(_MOVES[move][1] for move in moves)]},
        hovertemplate="%{x}: %{y:.2%}<extra></extra>",
    )  # fmt: skip
    drawn = figure([line], 380, "", title(summary.task, metric))
    drawn.update_yaxes(tickformat=charts.SHARE)
    rows = [
        ["0", steps[0][0], share(values[0], 2), moved(0), f"{summary.samples:,}"],
        *(
            [str(at), s.added, share(s[metric], 2), moved(s.drop),
             f"{s.samples or summary.samples:,}"]
            for at, s in enumerate(summary.path, 1)
        ),
    ]  # fmt: skip
    told = [line for one in summary.early or () for line in dropped(one, summary.sample_unit)]
    best = summary.exhaustive
    found = (
        f"The worst of all {summary.combinations:,} combinations is {', '.join(best.picks)}: "
        f"{share(best[metric], 2)}, {moved(best.drop)} points"
        f"{chance(turned(best.drop_ci95), best.p, best.family)}."
        if best
        else f"A greedy path: {summary.combinations:,} combinations are too many to try all."
    )
    return Section(
        "path",
        f"The way down: {title(summary.task, metric)} with one option more at each step",
        "Which options together cost most?",
        [found],
        [Panel(drawn)],
        [*(f"{name}: {why}" for name, why in summary.left_out.items()), *told],
        tables=[
            Table(
                ["step", "added", title(summary.task, metric), "change, points", "n"],
                rows,
                "The path",
                2,
            )
        ],
    )
