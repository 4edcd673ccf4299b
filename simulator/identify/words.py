"""The rows of the tables of ``simulate identify``, for the terminal and the report."""

from __future__ import annotations

from simulator.results.identify import IdentifiedAxis, IdentifySummary

NAMED = 4
"""Options that a cell names; the others are counted."""
AXES = ["axis", "identified", "equal here", "nearest other", "mean", "largest", "seen best in"]
RUNNERS = ["what differs", "images equal", "mean", "largest", "seen best in"]


def axes(summary: IdentifySummary) -> list[list[str]]:
    """Return a row for each axis that the identified stack has."""
    return [[axis, *_row(one)] for axis, one in summary.axes.items() if one.applies]


def runners_up(summary: IdentifySummary) -> list[list[str]]:
    """Return a row for each stack that is near."""
    return [
        [
            ", ".join(f"{axis} {option}" for axis, option in one.changes.items()),
            f"{one.equal:,} of {summary.samples:,}",
            number(one.mean),
            number(one.largest),
            one.seen_in or "-",
        ]
        for one in summary.runners_up
    ]


def notes(summary: IdentifySummary) -> list[str]:
    """Return what else is to be said of a search."""
    unused = [axis for axis, one in summary.axes.items() if not one.applies]
    found = [
        f"{summary.compared:,} different stacks were compared in {summary.seconds or 0:,.0f} s; "
        f"the options make {summary.combinations:,} combinations, those that cannot run included."
    ]
    if summary.equal_stacks > 1:
        found.append(f"{summary.equal_stacks:,} different stacks are as near as this one.")
    if unused:
        found.append(f"No option changes this stack on: {', '.join(unused)}.")
    if summary.telling:
        one = summary.telling
        found.append(
            f"{one.probe} ({one.about}) parts {one.stacks} of them into {one.groups} groups: "
            "simulate recordings probes writes it."
        )
    if summary.stopped:
        found.append("The search ended when its time was over (--minutes); it was not through.")
    if summary.absent:
        found.append(f"{summary.absent:,} images of the data were not recorded.")
    found += [f"left out: {name}: {why}" for name, why in summary.refused.items()]
    return found


def number(value: float | None) -> str:
    """Return a distance; a dash where there is none."""
    return "-" if value is None else f"{value:.4g}"


def _row(one: IdentifiedAxis) -> list[str]:
    equal = [*one.equal, *(f"{option} (with another axis)" for option in one.together)]
    more = [f"and {len(equal) - NAMED} more"] if len(equal) > NAMED else []
    return [
        one.option,
        "; ".join([*equal[:NAMED], *more]) or "none",
        one.next or "-",
        number(one.mean),
        number(one.largest),
        one.seen_in or "-",
    ]
