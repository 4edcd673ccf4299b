"""The tables of a campaign, for the screen, the page and documents."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from simulator.report.table import Cell, Column, Table
from simulator.report.words import figure, share
from simulator.results.faults import (
    FaultEvent,
    FaultGroup,
    FaultsSummary,
    Mean,
    Persistence,
    Rate,
)
from simulator.tasks.task import TASKS
from simulator.typed import Unit

LEVELS = (0.0, 0.01, 0.05, 0.1, 0.15)
"""Levels of persistent areas that are in tables; figures have all."""
KINDS = {"false": "False objects", "missed": "Missed objects"}


def rates(summary: FaultsSummary, first: str = "", title: str = "") -> Table:
    """Return a line for each figure, and a cell for each stack.

    Args:
        summary: of a campaign.
        first: the head of the names.
        title: of the table.
    """
    stacks, said = list(summary.stacks.values()), words(summary)
    found = [
        ("silent corruption (SDC)", [rate(stack.sdc) for stack in stacks]),
        ("NaN or Inf (DUE)", [rate(stack.due) for stack in stacks]),
        ("masked", [rate(stack.masked) for stack in stacks]),
    ]
    if any(stack.refused.count for stack in stacks):
        found.append(("outputs refused", [rate(stack.refused) for stack in stacks]))
    found += [
        (said(name), [rate(stack.further[name]) for stack in stacks]) for name in stacks[0].further
    ]
    found += [
        (said(name), [mean(stack.severity[name]) for stack in stacks])
        for name in stacks[0].severity
    ]
    for metric in stacks[0].clean:
        cells = [f"{share(one.clean[metric])} → {share(one.faulty[metric])}" for one in stacks]
        found.append((f"{metric}, clean → faulty", cells))
    columns = [Column(first), *(Column(side, Unit.SHARE) for side in summary.stacks)]
    return Table(columns, [[name, *cells] for name, cells in found], title)


def groups_of(summary: FaultsSummary, what: str) -> dict[str, dict[str, FaultGroup]]:
    """Return the groups of each stack: by ``bit`` or by ``layer``."""
    by_bit = what == "bit"
    return {side: one.by_bit if by_bit else one.by_layer for side, one in summary.stacks.items()}


def groups(summary: FaultsSummary, what: str) -> Table:
    """Return a row for each stack and group, with all its figures."""
    names = shown(summary)
    rows: list[list[Cell]] = [
        [
            side, name, group.sdc.of, rate(group.sdc), rate(group.due),
            *(mean(group.severity[name]) for name in names),
        ]
        for side, found in groups_of(summary, what).items()
        for name, group in found.items()
    ]  # fmt: skip
    figures = ["SDC", "DUE", *map(words(summary), names)]
    columns = [Column("stack"), Column(what), Column("faults", Unit.COUNT), *map(Column, figures)]
    return Table(columns, rows, f"Every {what}")


def striking_groups(summary: FaultsSummary, what: str) -> Table:
    """Return the groups with a silent corruption or a NaN, the most frequent first of layers."""
    found = groups_of(summary, what)
    names = dict.fromkeys(
        name
        for by in found.values()
        for name, group in by.items()
        if group.sdc.count + group.due.count
    )

    def worst(name: str) -> float:
        return max((by[name].sdc.rate or 0 for by in found.values() if name in by), default=0)

    rows = [
        [name, *(_pair(by.get(name)) for by in found.values())]
        for name in sorted(names, key=int if what == "bit" else worst, reverse=True)
    ]
    columns = [Column(what), *(Column(side, Unit.SHARE) for side in found)]
    return Table(columns, rows, f"By {what}: SDC | DUE in % of its faults")


def _pair(group: FaultGroup | None) -> str:
    return "–" if group is None else f"{share(group.sdc.rate)} | {share(group.due.rate)}"


def events(summary: FaultsSummary, most: int = 99) -> Table:
    """Return the worst silent corruptions of each stack."""
    names = shown(summary)
    rows = [
        [
            side, str(one.fault), one.sample, one.layer, ", ".join(map(str, one.bit)), values(one),
            *(figure(one.severity[name], ".4g") for name in names),
        ]
        for side, stack in summary.stacks.items()
        for one in stack.worst[:most]
    ]  # fmt: skip
    head = ("stack", "fault", "sample", "layer", "bit", "value")
    severe = (Column(name, Unit.NUMBER) for name in map(words(summary), names))
    return Table([*map(Column, head), *severe], rows, "The worst silent corruptions")


def values(event: FaultEvent) -> str:
    """Return the hit values before and after."""
    return ", ".join(
        " → ".join("not finite" if one is None else f"{one:.4g}" for one in both)
        for both in zip(event.before, event.after, strict=True)
    )


def tracked(summary: FaultsSummary) -> dict[str, Persistence]:
    """Return what stays over a video, of the stacks whose answers were followed."""
    found = {side: stack.persistence for side, stack in summary.stacks.items()}
    return {side: persistence for side, persistence in found.items() if persistence is not None}


def over_time(summary: FaultsSummary, *, rescaled: bool) -> Table:
    """Return a row for each stack and level: the shares of false and of missed objects.

    Args:
        summary: of a campaign of permanent faults on a video.
        rescaled: also, where only some bits were hit, as shares of faults in all bits.
    """
    rescaled = rescaled and some_bits(summary)
    rows = []
    for side, seen in tracked(summary).items():
        hit = summary.stacks[side].share_of_bits
        for level, *shares in zip(seen.levels, seen.false, seen.missed, strict=True):
            if level in LEVELS:
                more = [rate(_times(one, hit)) for one in shares if rescaled]
                rows.append([side, f"{level:.0%}", *map(rate, shares), *more])
    head = ["stack", "L", *(title.lower() for title in KINDS.values())]
    head += [f"{kind}, all bits" for kind in KINDS if rescaled]
    title = "Over the video: faults that leave an area above L, on average"
    return Table([*map(Column, head)], rows, title)


def lasting_bits(summary: FaultsSummary) -> Table:
    """Return a row for each stack and bit: which faults leave something that stays, and how much.

    Args:
        summary: of a campaign of permanent faults on a video.
    """
    rows: list[list[Cell]] = [
        [side, bit, rate(of.false), area(of.false_area), rate(of.missed), area(of.missed_area)]
        for side, seen in tracked(summary).items()
        for bit, of in seen.by_bit.items()
    ]
    head = [cell for title in KINDS.values() for cell in (title.lower(), "area")]
    title = "By bit: faults that leave something that stays, and the mean area of those"
    return Table([*map(Column, ("stack", "bit", *head))], rows, title)


def area(mean: Mean | None) -> str:
    """Return a mean area with its interval; it was not computed in older runs."""
    return "–" if mean is None else _within(mean.value, mean.ci95)


def some_bits(summary: FaultsSummary) -> bool:
    """Whether not all bits were hit in some stack that was followed over a video."""
    return any(summary.stacks[side].share_of_bits != 1 for side in tracked(summary))


def _times(rate: Rate, by: float) -> Rate:
    scaled = [None if end is None else end * by for end in rate.ci95]
    value = None if rate.rate is None else rate.rate * by
    return rate.model_copy(update={"rate": value, "ci95": scaled})


def words(summary: FaultsSummary) -> Callable[[str], str]:
    """Return what gives people's words for the name of a task's figure."""
    told = TASKS[summary.task].Impact.words
    return lambda name: told.get(name, name.replace("_", " "))


def shown(summary: FaultsSummary) -> list[str]:
    """Return the severities that a narrow table has room for."""
    severity = next(iter(summary.stacks.values())).severity
    return [name for name in TASKS[summary.task].Impact.shown if name in severity]


def rate(rate: Rate) -> str:
    """Return a rate with its interval."""
    return _within(rate.rate, rate.ci95)


def _within(value: float | None, ci95: Sequence[float | None]) -> str:
    low, high = ci95
    if low is None or high is None:
        return share(value, 2)
    return f"{share(value, 2)} ({share(low, 2)} to {share(high, 2)})"


def mean(mean: Mean) -> str:
    """Return a mean with its interval."""
    low, high = mean.ci95
    if mean.value is None:
        return "–"
    ends = "" if low is None or high is None else f" ({low:.3g} to {high:.3g})"
    return f"{figure(mean.value, '.3g')}{ends}"
