"""The progress bar, on standard error so that the output can be piped."""

from __future__ import annotations

import time
from typing import Self

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from simulator.cli import collector
from simulator.cli.screen import Screen
from simulator.closing import Closing
from simulator.command import options as command
from simulator.pipeline.plan import Plan

REFRESH = 0.1
"""Seconds between two updates."""


class Bar(command.Progress, Closing):
    """Shows what is done, the rate and the time left; nothing where there is no terminal.

    It only goes forward: passes that follow one another share one bar. It is redrawn only when it
    is called, never from its own thread, which would disturb the measurements.

    Args:
        explain_plan: print every plan before it is run.
        console: where it is drawn; standard error by default.
    """

    def __init__(self, explain_plan: bool = False, console: Console | None = None) -> None:
        self._explain_plan = explain_plan
        self._shown = 0.0
        self._number, self._of, self._name = 1, 1, ""
        self._first: tuple[int, float] | None = None
        console = console or Screen(stderr=True, emoji=False)
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TaskProgressColumn(),
            TextColumn("{task.fields[done]}"),
            TimeRemainingColumn(),
            console=console,
            transient=True,
            auto_refresh=False,
            disable=not console.is_terminal,
        )
        self._task = self._bar.add_task("starting", total=None, done="")

    def stage(self, number: int, of: int, name: str) -> None:
        """Begin one of several passes over the samples."""
        self._number, self._of, self._name = number, of, name
        self._first = None

    def say(self, what: str) -> None:
        """Show what the run is doing."""
        where = f"{self._number}/{self._of} {self._name}: " if self._of > 1 else ""
        self._bar.update(self._task, description=escape(f"{where}{what}"))
        task = self._bar.tasks[0]
        if task.total and task.completed >= task.total:  # what follows the samples has no measure
            self._bar.update(self._task, done="")
            task.total = None
        self._bar.refresh()

    def note(self, what: str) -> None:
        """Print a line that stays."""
        console = self._bar.console
        console.print(
            f"note {what}", markup=False, highlight=False, soft_wrap=not console.is_terminal
        )

    def planned(self, plan: Plan) -> None:
        """Print the plan, if that was asked for."""
        if self._explain_plan:
            from simulator.report.plan import render

            render(plan, self._bar.console)

    def advance(self, done: int, total: int) -> None:
        """Show how much of a pass is done."""
        now, task = time.monotonic(), self._bar.tasks[0]
        first, since = self._first = self._first or (done, now)
        rate = f", {(done - first) / (now - since):.0f} a second" if done > first else ""
        share = (self._number - 1 + done / total) / self._of
        self._bar.update(
            self._task,
            total=1.0,
            completed=max(task.completed, share),
            done=f"{done:,} of {total:,}{rate}",
        )
        if now > self._shown + REFRESH:
            self._bar.refresh()
            self._shown = now

    def close(self) -> None:
        """Remove the bar before something else is printed."""
        self._bar.stop()

    def __enter__(self) -> Self:
        collector.begin()
        self._bar.start()
        return self
