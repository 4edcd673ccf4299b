"""What the screens of all jobs share: the stacks, notes, samples that were skipped, the gate."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from simulator.report import rules
from simulator.report.words import run_on
from simulator.results.shared import ModelSummary, Summary

if TYPE_CHECKING:
    from simulator.results.checkpoints import Checkpoints
    from simulator.results.pair import PairSummary
    from simulator.results.timed import LatencySummary, LoadSummary

NOTHING = "-"


def stacks(
    summary: ModelSummary, console: Console, train: str, deploy: str, more: str = ""
) -> None:
    """Print which two stacks were compared, of what model and on how many samples."""
    of = f"{summary.model}, {run_on(summary)}{more}"
    console.print(f"\n[bold]{escape(train)} → {escape(deploy)}[/]   {escape(of)}", highlight=False)


def note(words: object, console: Console) -> None:
    """Print what the person should know besides the result."""
    console.print(f"[yellow]note[/] {escape(str(words))}", highlight=False)


def end(notes: Iterable[object], folder: str, console: Console) -> None:
    """Print the notes of a run, and where it is."""
    for words in notes:
        note(words, console)
    console.print(f"run: {folder}", markup=False, highlight=False, soft_wrap=True)


def heading(words: str, console: Console) -> None:
    """Print the title of a table; it may be wider than the table."""
    console.print(f"[bold]{escape(words)}[/]", highlight=False)


def grid(lines: Iterable[tuple[str, str]], console: Console) -> None:
    """Print lines of a name and what is said of it."""
    found = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    for name, words in lines:
        if words:
            found.add_row(f"[bold]{escape(name)}[/]", escape(words))
    console.print(found, highlight=False)


def skipped(summary: PairSummary | LatencySummary | LoadSummary, console: Console) -> None:
    """Print the samples that could not go through, the first ones with their reasons."""
    for skip in summary.skipped_samples:
        console.print(f"[yellow]skipped[/] {escape(skip.sample)}: {escape(skip.why)}")
    rest = summary.skipped - len(summary.skipped_samples)
    if rest > 0:
        console.print(f"[yellow]skipped[/] {rest} more; see records.parquet")


def gate(summary: Summary | Checkpoints, console: Console) -> None:
    """Print what came of each rule."""
    found = summary.gate
    for rule in found.rules:
        word = rules.verdict(rule)
        style = "red" if rule.failed else "yellow" if rule.undecided else "green"
        console.print(
            f"gate [{style}]{word}[/] {escape(rule.rule)}: {escape(rules.got(rule))}",
            highlight=False,
        )
    if found.rules:
        word = "[bold green]PASSED" if found.passed else "[bold red]FAILED"
        console.print(f"gate {word}[/]")
