"""The screen of ``simulate repair``: the finalists, what each change gives, and the profile."""

from __future__ import annotations

from rich.console import Console
from rich.markup import escape

from simulator.report import repairs
from simulator.report.table import screen
from simulator.report.words import dropped, run_on
from simulator.results.repair import RepairSummary

TOLD = 24
"""Dropped stacks that are told one by one."""


def show(summary: RepairSummary, folder: str, console: Console) -> None:
    """Print the answer."""
    title = (
        "What is left, the cheapest first; each of its own samples, n"
        if summary.early
        else f"Finalists, the cheapest first; {run_on(summary)} to confirm"
    )
    tables = [repairs.finalists(summary, title)]
    title = "What each change gives back, points (share: fair, they add up)"
    tables.append(repairs.changed(summary, title))
    if summary.changes:
        tables.append(repairs.difference(summary, f"The change of {summary.deploy.profile}"))
    for table in tables:
        if table.rows:
            console.print(screen(table), highlight=False)
    out = dropped(summary.early, summary.sample_unit)
    rest = [f"and {len(out) - TOLD:,} more, in the report"] if len(out) > TOLD else []
    for line in [*repairs.work(summary), *repairs.how(summary), *out[:TOLD], *rest]:
        console.print(escape(line), highlight=False)
    if summary.left_out:
        name, why = next(iter(summary.left_out.items()))
        more = f"{len(summary.left_out):,} changes cannot run here, such as {name}: {why}"
        console.print(f"[yellow]note[/] {escape(more)}", highlight=False)
    for warning in summary.warnings:
        console.print(f"[yellow]note[/] {escape(str(warning))}", highlight=False)
    inside = f"in it: {summary.profile}, the answer as a profile; options.yaml, the document"
    console.print(f"run: {folder}\n{inside}", soft_wrap=True, markup=False, highlight=False)
