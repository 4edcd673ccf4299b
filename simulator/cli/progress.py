"""The progress bar, on standard error so that the output can be piped."""

from __future__ import annotations

import time
from types import TracebackType

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
)

from simulator.pipeline.plan import Plan

REFRESH = 0.1
"""Seconds between two updates."""


class Bar:
    """Shows the stage, samples per second and time left; nothing where there is no terminal.

    It is redrawn only when it is called, never from its own thread, which would disturb the
    measurements.

    Args:
        explain_plan: print every plan before it is run.
    """

    def __init__(self, explain_plan: bool = False) -> None:
        self._explain_plan = explain_plan
        self._shown = 0.0
        console = Console(stderr=True)
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[rate]}"),
            TimeRemainingColumn(),
            console=console,
            transient=True,
            auto_refresh=False,
            disable=not console.is_terminal,
        )
        self._task = self._bar.add_task("starting", total=None, rate="")

    def say(self, what: str) -> None:
        """Show what the run is doing."""
        self._bar.update(self._task, description=what)
        self._bar.refresh()

    def note(self, what: str) -> None:
        """Print a line that stays."""
        self._bar.console.print(f"note {what}", markup=False, highlight=False, soft_wrap=True)

    def planned(self, plan: Plan) -> None:
        """Print the plan, if that was asked for."""
        if self._explain_plan:
            from simulator.report.plan import render

            render(plan, self._bar.console)

    def advance(self, done: int, total: int) -> None:
        """Show how many samples are done."""
        task = self._bar.tasks[0]
        if task.total != total:
            what = "running" if task.total is None else task.description
            self._bar.reset(self._task, total=total, description=what)
        rate = f"{task.speed:.0f} samples/s" if task.speed else ""
        self._bar.update(self._task, completed=done, rate=rate)
        if time.monotonic() > self._shown + REFRESH:
            self._bar.refresh()
            self._shown = time.monotonic()

    def stop(self) -> None:
        """Remove the bar before something else is printed."""
        self._bar.stop()

    def __enter__(self) -> Bar:
        self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._bar.stop()
