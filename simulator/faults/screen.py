"""The screen of ``simulate faults``: rates by stack, by bit and by layer, and the worst events."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from rich.console import Console
from rich.markup import escape

from simulator.faults.replay import Replayed
from simulator.faults.tables import events, over_time, rates, striking_groups, tracked
from simulator.report.table import Table, screen
from simulator.report.words import run_on
from simulator.results.faults import FaultsSummary

GROUPS = {"bit": 40, "layer": 8}
"""So many groups are printed at most."""
EVENTS = 5
"""So many corruptions of each stack."""


def show(summary: FaultsSummary, folder: str, console: Console) -> None:
    """Print the rates, what the corruptions do, and over a video what stays."""
    of = f"{summary.faults:,} faults, {run_on(summary)}"
    weighted = "" if summary.allocation == "proportional" else "rates weighted by stratum; "
    title = f"{summary.campaign}: {of}; {weighted}95 % intervals in brackets"
    _print(rates(summary, title=title), console)
    for what, most in GROUPS.items():
        found = striking_groups(summary, what)
        _print(replace(found, rows=found.rows[:most]), console)
        if len(found.rows) > most:
            console.print(f"{len(found.rows) - most} further: in the report.", highlight=False)
    _print(events(summary, EVENTS), console)
    for told in notes(summary):
        console.print(escape(told), highlight=False)
    for warning in summary.warnings:
        console.print(f"[yellow]note[/] {escape(str(warning))}", highlight=False)
    _print(over_time(summary, rescaled=False), console)
    for side, seen in tracked(summary).items():
        if seen.clip:
            told = f"{side}: the worst is fault {seen.worst}, in {seen.clip}."
            console.print(escape(told), highlight=False)
    console.print(f"run: {folder}", soft_wrap=True, markup=False)


def _print(table: Table, console: Console) -> None:
    if table.rows:
        console.print(screen(table), highlight=False)


def replayed(found: Sequence[Replayed], console: Console) -> None:
    """Print what one fault did, then and now."""
    for replayed in found:
        word = "[green]equal[/]" if replayed.equal else "[red]differs[/]"
        console.print(f"fault {replayed.fault}, {escape(replayed.stack)}: {word}", highlight=False)
        for name, (then, now) in replayed.values.items():
            told = _listed(then) if then == now else f"{_listed(then)} then, {_listed(now)} now"
            console.print(escape(f"  {name}: {told}"), highlight=False)


def _listed(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else f"{value}"


def reading(summary: FaultsSummary) -> Iterator[str]:
    """Yield how faults were allocated and what counts as a corruption, where that was chosen."""
    given = {name: value for name, value in summary.reading.items() if value is not None}
    chosen = [f"{name} {_setting(value)}" for name, value in given.items()]
    if chosen:
        yield f"Verdicts: {', '.join(chosen)}."
    if summary.allocation != "proportional":
        yield (
            f"Faults were allocated to strata ({summary.allocation}): rates and means are weighted "
            "by stratum, numbers, AP and accuracy are of the faults as they were drawn."
        )


def _setting(value: Any) -> str:
    """A setting, or clusters of classes."""
    if not isinstance(value, dict):
        return f"{value}"
    return "; ".join(f"{name} = {' or '.join(labels)}" for name, labels in value.items())


def notes(summary: FaultsSummary) -> Iterator[str]:
    """Yield how faults were put in, what a restriction costs, and how stacks compare."""
    yield from reading(summary)
    for side, stack in summary.stacks.items():
        yield f"{side}: {stack.method}. DUE: {stack.tap}."
    for side, ratio in summary.slowdown.items():
        yield f"{side}: an inference takes {ratio:.2f} of the time without the restriction."
    for side, paired in summary.paired.items():
        yield (
            f"Of the same faults {paired.only_first} corrupt {paired.than} alone, "
            f"{paired.only_this} {side} alone, {paired.both} both (McNemar's mid-p {paired.p:.3g})."
        )
