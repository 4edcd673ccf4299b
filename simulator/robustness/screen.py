"""The screen of ``simulate robustness``: conditions as rows, stacks as columns."""

from __future__ import annotations

from collections.abc import Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from simulator.report.words import ends, is_significant, points, run_on, share, title
from simulator.results.robustness import Figure, RobustnessSummary
from simulator.results.suites import AdjustedEffect


def show(summary: RobustnessSummary, console: Console) -> None:
    """Print the table of conditions, and what the other stacks lose more than the first."""
    metric = title(summary.task, summary.metric)
    first = next(iter(summary.stacks))
    table = Table(
        title=f"{escape(summary.suite)}: {metric} in %, mean over severities; {run_on(summary)}",
        title_justify="left", title_style="bold", box=SIMPLE_HEAD, pad_edge=False,
    )  # fmt: skip
    table.add_column("condition")
    for side in summary.stacks:
        table.add_column(escape(side), justify="right")
    for side in summary.interaction:
        more = f"{side} - {first}" if len(summary.interaction) > 1 else "loses more"
        table.add_column(f"{escape(more)}\npoints, 95 %", justify="right")
    table.add_row("clean", *(_percent(one.clean) for one in summary.stacks.values()))
    category = None
    for name, row in summary.rows.items():
        if row.category != category:
            category = row.category
            table.add_section()
        cells = [_percent(one.nr[name]) for one in summary.stacks.values()]
        cells += [_more(by[name]) for by in summary.interaction.values()]
        table.add_row(escape(name), *cells)
    table.add_section()
    cells = [_percent(one.mnr) for one in summary.stacks.values()]
    cells += [_more(one) for one in summary.mean_interaction.values()]
    table.add_row("mean", *cells)
    for name, values in means(summary):
        table.add_row(name, *values)
    console.print(table, highlight=False)
    notes(summary, console)


def means(summary: RobustnessSummary) -> Sequence[tuple[str, list[str]]]:
    """Return the mean figures over conditions: their names, and a cell for each stack."""
    names = (
        ("mNCI", "mNCI"),
        ("mCD", "mCE") if summary.metric == "miou" else ("mCE", "mCE"),
        ("mrCD", "relative_mCE") if summary.metric == "miou" else ("relative mCE", "relative_mCE"),
    )
    return [
        (shown, [_percent(one[field]) for one in summary.stacks.values()]) for shown, field in names
    ]


def notes(summary: RobustnessSummary, console: Console) -> None:
    """Print what the figures mean, and what the person should know."""
    lines = [f"mCE is relative to {summary.reference}; conditions act at: {summary.where}."]
    if summary.interaction:
        lines.append(
            "loses more: how many points more a condition costs that stack (negative: more is "
            f"lost); * is more than chance, Holm over {summary.family}."
        )
    left_out = [name for name, row in summary.rows.items() if not row.in_means]
    if left_out:
        lines.append(f"Not in the means: {', '.join(left_out)}.")
    for line in lines:
        console.print(escape(line), highlight=False)
    for warning in summary.warnings:
        console.print(f"[yellow]note[/] {escape(str(warning))}", highlight=False)
    for one in summary.skipped_samples[:3]:
        words = escape(f"{one.sample} skipped: {one.why}")
        console.print(f"[yellow]note[/] {words}", highlight=False)


def _percent(figure: Figure | None) -> str:
    return share(None if figure is None else figure.value, 2).removesuffix("%")


def _more(effect: AdjustedEffect) -> str:
    mark = "*" if is_significant(effect) else ""
    return f"{points(effect)}{mark} ({ends(effect.ci95).replace('+', '')})"
