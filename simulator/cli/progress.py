"""The progress bar, on standard error so that the answer can be piped."""

from __future__ import annotations

from types import TracebackType

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
)

from simulator.plan import Plan


class Bar:
    """Shows the stage, images per second and time left; nothing where there is no terminal.

    Args:
        explain_plan: print every plan before it is run.
    """

    def __init__(self, explain_plan: bool = False) -> None:
        self._explain_plan = explain_plan
        console = Console(stderr=True)
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[rate]}"),
            TimeRemainingColumn(),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._task = self._bar.add_task("starting", total=None, rate="")

    def say(self, what: str) -> None:
        """Tell the stage of the run."""
        self._bar.update(self._task, description=what)

    def planned(self, plan: Plan) -> None:
        """Print the plan if it was asked for."""
        if self._explain_plan:
            from simulator.report.plan import render

            render(plan, self._bar.console)

    def advance(self, done: int, total: int) -> None:
        """Tell how many samples are through."""
        task = self._bar.tasks[0]
        if task.total is None:
            self._bar.reset(self._task, total=total, description="running")
        rate = f"{task.speed:.0f} images/s" if task.speed else ""
        self._bar.update(self._task, completed=done, rate=rate)

    def stop(self) -> None:
        """Take the bar away before something else is printed."""
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
