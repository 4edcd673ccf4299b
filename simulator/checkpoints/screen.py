"""The screen of several sweeps: what differs between recipes, and their tables."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from simulator.checkpoints import tables
from simulator.checkpoints.compare import PAGE, checkpoints
from simulator.checkpoints.words import limits
from simulator.report.table import FORMS, screen
from simulator.report.terminal import gate, heading
from simulator.report.verdict import NOT_OK
from simulator.report.words import failures, title
from simulator.results.checkpoints import Checkpoints
from simulator.results.json_text import json_text


def compare(
    runs: Sequence[Path],
    place: Path,
    console: Console,
    form: str = "text",
    allow_failed: str | None = None,
    groups: Sequence[str] = (),
) -> int:
    """Compare the models of finished sweeps; write the page and print the tables.

    The exit code is that of the gate: whether a model fails on samples that another one answers.

    Args:
        runs: their folders.
        place: a folder for the page.
        console: where ``text`` is printed.
        form: what is printed: ``text``, ``json``, a form of tables, or ``quiet``: nothing.
        allow_failed: the share of samples that a model may fail on.
        groups: of recipes.
    """
    found = checkpoints(runs, out=place, allow_failed=allow_failed, groups=groups)
    if form == "json":
        print(json_text(found), end="")
    elif form == "text":
        show(found, console)
        print(f"report: {place / PAGE}")
    elif form != "quiet":
        comment = {"latex": "% ", "csv": "# "}.get(form, "")
        for number, one in enumerate(tables.every(found, plain=form == "csv")):
            head = f"{comment}{one.title}\n\n" if one.title else ""
            print("\n" * bool(number) + head + FORMS[form](one), end="")
        print()
    return int(not found.gate.passed)


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
