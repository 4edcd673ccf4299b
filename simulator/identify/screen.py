"""What ``simulate identify`` prints: the axes, the runners-up, and what is not told."""

from __future__ import annotations

from rich.console import Console
from rich.markup import escape

from simulator.identify import words
from simulator.report.fitted import Fitted
from simulator.report.terminal import heading
from simulator.results.identify import IdentifySummary


def show(summary: IdentifySummary, folder: str, console: Console) -> None:
    """Print a summary.

    Args:
        summary: the content of ``summary.json``.
        folder: the run folder.
        console: a terminal, or a file that gets plain text.
    """
    heading(f"{summary.recording} of {summary.device}: {summary.kind}", console)
    shown = Fitted(*words.AXES, right=4)
    for row in words.axes(summary):
        shown.add_row(*map(escape, row))
    console.print(shown)
    if summary.runners_up:
        heading("What is near, but not equal", console)
        near = Fitted(*words.RUNNERS, right=1)
        for row in words.runners_up(summary):
            near.add_row(*map(escape, row))
        console.print(near)
    for note in [*words.notes(summary), *(f"warning: {one}" for one in summary.warnings)]:
        console.print(escape(note), highlight=False)
    console.print(f"run: {escape(folder)}", highlight=False, soft_wrap=True)
