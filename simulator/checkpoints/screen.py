"""The screen of several sweeps: what differs between recipes, and their tables."""

from __future__ import annotations

from rich.console import Console
from rich.markup import escape

from simulator.checkpoints import tables
from simulator.checkpoints.words import limits
from simulator.report.table import screen
from simulator.report.terminal import gate, heading
from simulator.report.verdict import NOT_OK
from simulator.report.words import failures, title
from simulator.results.checkpoints import Checkpoints


def show(found: Checkpoints, console: Console) -> None:
    """Print the verdict, the recipes, the tests and what cannot be told."""
    word, style = ("", "bold") if found.gate.passed else (f"{NOT_OK}: ", "bold red")
    console.print(f"[{style}]{escape(word + ' '.join(found.verdict))}[/]", highlight=False)
    for failure in failures(found):
        console.print(f"[red]fails[/] {escape(failure)}", highlight=False)
    metric = title(found.task, found.metric)
    heading(
        f"\n{found.suite}: change of {metric}, points, mean ± half of the 95 % interval, sd "
        "between trainings (worst) / "
        f"answers flipped; {found.samples:,} {found.sample_unit}s",
        console,
    )
    for table in tables.every(found):
        console.print(screen(table, " / "), highlight=False)
    for line in limits(found):
        console.print(f"[yellow]note[/] {escape(line)}", highlight=False)
    gate(found, console)
