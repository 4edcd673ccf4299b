"""The screen of ``simulate faults``: rates by stack, by bit and by layer, and the worst events."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.markup import escape

from simulator.faults.replay import Replayed
from simulator.report.fitted import Fitted
from simulator.report.table import Column, Table, screen
from simulator.report.words import figure, run_on, share
from simulator.results.faults import FaultEvent, FaultGroup, FaultsSummary, Mean, Rate
from simulator.tasks.task import TASKS
from simulator.typed import Unit

_LAYERS = 8
_EVENTS = 5


def show(summary: FaultsSummary, console: Console) -> None:
    """Print the rates and what the corruptions do."""
    _rates(summary, console)
    _groups("bit", {side: one.by_bit for side, one in summary.stacks.items()}, console)
    layers = {side: one.by_layer for side, one in summary.stacks.items()}
    _groups("layer", layers, console, _LAYERS)
    for side, one in summary.stacks.items():
        _events(side, summary, one.worst[:_EVENTS], console)
    notes(summary, console)


def replayed(found: Sequence[Replayed], console: Console) -> None:
    """Print what one fault did, then and now."""
    for one in found:
        word = "[green]equal[/]" if one.equal else "[red]differs[/]"
        console.print(f"fault {one.fault}, {escape(one.stack)}: {word}", highlight=False)
        for name, (then, now) in one.values.items():
            told = _listed(then) if then == now else f"{_listed(then)} then, {_listed(now)} now"
            console.print(escape(f"  {name}: {told}"), highlight=False)


def _listed(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else f"{value}"


def whole(summary: FaultsSummary, first: str = "", title: str = "") -> Table:
    """Return the first table: a line for each figure, a cell for each stack.

    Args:
        summary: of a campaign.
        first: the head of the names.
        title: of the table.
    """
    stacks, said = list(summary.stacks.values()), words(summary)
    found = [
        ("silent corruption (SDC)", [rate(one.sdc) for one in stacks]),
        ("NaN or Inf (DUE)", [rate(one.due) for one in stacks]),
        ("masked", [rate(one.masked) for one in stacks]),
    ]
    if any(one.refused.count for one in stacks):
        found.append(("outputs refused", [rate(one.refused) for one in stacks]))
    found += [
        (said(name), [rate(one.further[name]) for one in stacks]) for name in stacks[0].further
    ]
    found += [
        (said(name), [mean(one.severity[name]) for one in stacks]) for name in stacks[0].severity
    ]
    for metric in stacks[0].clean:
        cells = [f"{share(one.clean[metric])} → {share(one.faulty[metric])}" for one in stacks]
        found.append((f"{metric}, clean → faulty", cells))
    columns = [Column(first), *(Column(side, Unit.SHARE) for side in summary.stacks)]
    return Table(columns, [[name, *cells] for name, cells in found], title)


def words(summary: FaultsSummary) -> Callable[[str], str]:
    """Return what gives people's words for the name of a task's figure."""
    told = TASKS[summary.task].Impact.words
    return lambda name: told.get(name, name.replace("_", " "))


def shown(summary: FaultsSummary) -> list[str]:
    """Return the severities that a narrow table has room for."""
    severity = next(iter(summary.stacks.values())).severity
    return [name for name in TASKS[summary.task].Impact.shown if name in severity]


def rate(one: Rate) -> str:
    """Return a rate with its interval."""
    low, high = one.ci95
    if low is None or high is None:
        return share(one.rate, 2)
    return f"{share(one.rate, 2)} ({share(low, 2)} to {share(high, 2)})"


def mean(one: Mean) -> str:
    """Return a mean with its interval."""
    low, high = one.ci95
    if one.value is None:
        return "–"
    ends = "" if low is None or high is None else f" ({low:.3g} to {high:.3g})"
    return f"{figure(one.value, '.3g')}{ends}"


def _rates(summary: FaultsSummary, console: Console) -> None:
    of = f"{summary.faults:,} faults, {run_on(summary)}"
    weighted = "" if summary.allocation == "proportional" else "rates weighted by stratum; "
    title = f"{summary.campaign}: {of}; {weighted}95 % intervals in brackets"
    console.print(screen(whole(summary, title=title)), highlight=False)


def _groups(
    what: str, found: Mapping[str, Mapping[str, FaultGroup]], console: Console, most: int = 40
) -> None:
    """Print the groups with a silent corruption or a NaN, the most frequent first of layers."""
    names = dict.fromkeys(
        name for by in found.values() for name, one in by.items() if one.sdc.count + one.due.count
    )
    if not names:
        return

    def worst(name: str) -> float:
        return max((by[name].sdc.rate or 0 for by in found.values() if name in by), default=0)

    ordered = sorted(names, key=int, reverse=True) if what == "bit" else sorted(
        names, key=worst, reverse=True
    )  # fmt: skip
    title = f"By {what}: SDC | DUE in % of its faults"
    table = Fitted(what, *map(escape, found), title=title, right=1)
    for name in ordered[:most]:
        cells = [_pair(by.get(name)) for by in found.values()]
        table.add_row(escape(name), *cells)
    console.print(table, highlight=False)
    if len(ordered) > most:
        console.print(f"{len(ordered) - most} further: in the report.", highlight=False)


def _pair(group: FaultGroup | None) -> str:
    if group is None:
        return "–"
    return f"{share(group.sdc.rate)} | {share(group.due.rate)}"


def _events(
    side: str, summary: FaultsSummary, events: Sequence[FaultEvent], console: Console
) -> None:
    if not events:
        return
    severe = shown(summary)
    names = ("fault", "sample", "layer", "bit", "value", *map(words(summary), severe))
    title = f"{side}: the worst silent corruptions"
    table = Fitted(*map(escape, names), title=escape(title))
    for one in events:
        values = ", ".join(
            f"{_number(before)} → {_number(after)}"
            for before, after in zip(one.before, one.after, strict=True)
        )
        table.add_row(
            str(one.fault), escape(one.sample), escape(one.layer),
            ", ".join(map(str, one.bit)), values,
            *(figure(one.severity[name], ".3g") for name in severe),
        )  # fmt: skip
    console.print(table, highlight=False)


def _number(value: float | None) -> str:
    return "not finite" if value is None else f"{value:.4g}"


def reading(summary: FaultsSummary) -> list[str]:
    """Return how faults were allocated and what counts as a corruption, where that was chosen."""
    chosen = [f"{name} {value}" for name, value in summary.reading.items() if value is not None]
    found = [f"Verdicts: {', '.join(chosen)}."] if chosen else []
    if summary.allocation != "proportional":
        found.append(
            f"Faults were allocated to strata ({summary.allocation}): rates and means are weighted "
            "by stratum, numbers, AP and accuracy are of the faults as they were drawn."
        )
    return found


def notes(summary: FaultsSummary, console: Console) -> None:
    """Print how faults were put in, and what the person should know."""
    for told in reading(summary):
        console.print(escape(told), highlight=False)
    for side, one in summary.stacks.items():
        console.print(escape(f"{side}: {one.method}. DUE: {one.tap}."), highlight=False)
    for side, ratio in summary.slowdown.items():
        told = f"{side}: an inference takes {ratio:.2f} of the time without the restriction."
        console.print(escape(told), highlight=False)
    for side, paired in summary.paired.items():
        chance = f" (McNemar's mid-p {paired.p:.3g})"
        told = (
            f"Of the same faults {paired.only_first} corrupt {paired.than} alone, "
            f"{paired.only_this} {side} alone, {paired.both} both{chance}."
        )
        console.print(escape(told), highlight=False)
    for warning in summary.warnings:
        console.print(f"[yellow]note[/] {escape(str(warning))}", highlight=False)
