"""Blame per axis, and the path to the worst case, on a terminal."""

from __future__ import annotations

from rich.console import Console
from rich.markup import escape

from simulator.report.fitted import Fitted
from simulator.report.table import Column, Table, screen
from simulator.report.words import (
    chance,
    ends,
    heading,
    is_significant,
    moved,
    points,
    run_on,
    title,
    turned,
)
from simulator.results.suites import Blame, ExplainSummary, WorstSummary
from simulator.typed import Unit

BLOCKS = {
    "swap_in": "alone",
    "swap_out": "repaired",
    "waterfall": "in order",
    "shapley": "Shapley",
}
"""The parts of a blame, in words."""


def explain(summary: ExplainSummary, folder: str, console: Console) -> None:
    """Print what each axis costs.

    Args:
        summary: the summary of ``simulate explain``.
        folder: where the run is.
        console: a terminal, or a file that gets plain text.
    """
    names = [summary[side].profile for side in ("train", "deploy")]
    console.print(
        f"\n[bold]{escape(names[0])} → {escape(names[1])}[/]   {escape(summary.model)}, "
        f"{run_on(summary)}, {summary.stacks} stacks in one plan of "
        f"{summary.unique_steps} unique steps",
        highlight=False,
    )
    for metric, blame in summary.blame.items():
        _metric(heading(summary.task, metric), blame, summary, console)
    for warning in summary.warnings:
        console.print(f"[yellow]note[/] {escape(str(warning))}", highlight=False)
    console.print(f"run: {escape(folder)}", highlight=False, soft_wrap=True)


def _metric(name: str, blame: Blame, summary: ExplainSummary, console: Console) -> None:
    console.print(screen(table(summary, name, blame)), highlight=False)
    named = [pair for pair in blame.interactions if is_significant(pair)]
    for pair in named:
        console.print(
            f"together: {escape(' and '.join(pair.axes))}: {points(pair)} beyond the "
            "sum of each alone",
            highlight=False,
        )
    console.print(
        f"[dim]Shapley values sum to the total (residual {blame.residual:.1g}); Holm over a "
        f"family of {blame.family} axes; "
        f"pairwise interactions that exceed noise: {len(named)}[/]",
        highlight=False,
    )


def table(summary: ExplainSummary, name: str, blame: Blame) -> Table:
    """Return what each axis costs: alone, repaired, in order, and its fair share.

    Args:
        summary: of ``simulate explain``.
        name: of the figure that is split.
        blame: its parts.
    """
    total, rows = blame.total, []
    for axis in summary.axes:
        share = blame.shapley[axis]
        label = f"{axis} (null)" if axis in summary.null else axis
        parts = [blame[block][axis].value for block in BLOCKS]
        rows.append([label, *parts, share.ci95, share.p_holm])
    return Table(
        [Column("axis"), *(Column(words, Unit.POINTS) for words in BLOCKS.values()),
         Column("95 % interval", Unit.POINTS), Column("Holm p", Unit.PROBABILITY)],
        rows,
        f"{name}, points: {points(total)} in all (95 % interval {ends(total.ci95)})",
        frozenset(
            at for at, axis in enumerate(summary.axes) if is_significant(blame.shapley[axis])
        ),
    )  # fmt: skip


def worst(summary: WorstSummary, folder: str, console: Console) -> None:
    """Print the path of ``simulate worst``."""
    heading, metric = f"Worst case of {summary.suite} for {summary.model}", summary.metric
    columns = ("step", "added", title(summary.task, metric), "change, points", "n")
    shown = Fitted(*columns, title=escape(f"{heading}, {run_on(summary)}"), right=2)
    trained = f"{summary[metric]:.2%}"
    shown.add_row("0", "the trained stack", trained, moved(0), f"{summary.samples:,}")
    deepest = max(summary.path, key=lambda step: step.drop)
    for number, step in enumerate(summary.path, start=1):
        cells = (
            escape(step.added), f"{step[metric]:.2%}", moved(step.drop),
            f"{step.samples or summary.samples:,}",
        )  # fmt: skip
        shown.add_row(str(number), *(f"[bold]{c}[/]" if step is deepest else c for c in cells))
    console.print(shown, highlight=False)
    best = summary.exhaustive
    if best:
        console.print(
            f"worst of all {summary.combinations} combinations: "
            f"{escape(', '.join(best.picks))}: {best[metric]:.2%}, {moved(best.drop)} points"
            f"{chance(turned(best.drop_ci95), best.p, best.family)}",
            highlight=False,
        )
    else:
        console.print(
            f"greedy path; {summary.combinations:,} combinations are too many to try all",
            highlight=False,
        )
    for option, why in summary.left_out.items():
        console.print(f"[yellow]note[/] {escape(f'{option}: {why}')}", highlight=False)
    if summary.skipped:
        console.print(
            f"[yellow]note[/] up to {summary.skipped} {summary.sample_unit}s were skipped in a step"
        )
    for warning in summary.warnings:
        console.print(f"[yellow]note[/] {escape(str(warning))}", highlight=False)
    console.print(f"run: {escape(folder)}", highlight=False, soft_wrap=True)
