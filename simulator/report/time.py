"""Where the time of a call went, in words and as a table."""

from __future__ import annotations

from collections import defaultdict

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from simulator.results.manifest import TimeSpent
from simulator.spent import WORDS, Work

_STACKS = 3
"""Name the stacks of a stage where there are no more."""


def verdict(found: TimeSpent) -> str:
    """Return the answer in one line: how much is the libraries' own work, and what else."""
    by_work: dict[str, float] = defaultdict(float)
    for row in found.spent:
        by_work[row.work] += row.seconds
    away = Work.ELSEWHERE in by_work
    main = by_work.pop(Work.ELSEWHERE if away else Work.STEPS, 0.0)
    what = "for samples that ran elsewhere" if away else "the libraries' own work on samples"
    whole = max(found.seconds, 1e-9)
    rest = sorted(by_work.items(), key=lambda one: -one[1])[:3]
    others = ", ".join(f"{work} {100 * seconds / whole:.0f} %" for work, seconds in rest)
    return f"{100 * main / whole:.0f} % of {found.seconds:.2f} s is {what}; {others}."


def render(found: TimeSpent, console: Console) -> None:
    """Print where the time went: the verdict, then a row per kind of work.

    Args:
        found: of a call.
        console: where it goes.
    """
    console.print(f"\n{verdict(found)}", markup=False)
    table = Table("work", "seconds", "share", "what", box=SIMPLE_HEAD, pad_edge=False)
    for column in table.columns[1:3]:
        column.justify = "right"
    for work in Work:
        rows = [row for row in found.spent if row.work == work]
        if not rows:
            continue
        table.add_row(*_cells(work.value, sum(row.seconds for row in rows), found), WORDS[work])
        stages = dict.fromkeys(row.stage for row in rows if row.stage)
        for stage in stages:
            own = [row for row in rows if row.stage == stage]
            seconds = sum(row.seconds for row in own)
            named = (f"{row.stacks} {row.seconds:.2f} s" for row in own)
            words = ", ".join(named) if len(own) <= _STACKS else f"{len(own)} groups of stacks"
            table.add_row(*_cells(f"  {stage}", seconds, found), words)
    table.add_row(*_cells("all", sum(row.seconds for row in found.spent), found), "")
    console.print(table)
    used = found.cpu_seconds / max(found.seconds, 1e-9)
    console.print(
        f"{found.workers} samples in flight share the time in which samples ran. Processors: "
        f"{found.cpu_seconds:.2f} s, {used:.2f} of them busy on average.",
        markup=False,
    )


def _cells(name: str, seconds: float, found: TimeSpent) -> tuple[str, str, str]:
    return name, f"{seconds:.2f}", f"{100 * seconds / max(found.seconds, 1e-9):.1f} %"
