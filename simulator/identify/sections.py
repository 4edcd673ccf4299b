"""What ``simulate identify`` says and shows, on screen and page: the stack, and what is near."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape

from simulator.report.reading import Run
from simulator.report.sections.section import Section, part
from simulator.report.table import Cell, Code, Table, screen
from simulator.report.verdicts.told import Told
from simulator.report.words import count
from simulator.results.identify import IdentifiedAxis, IdentifySummary, RunnerUp

NAMED = 4
"""Options that a cell names; the others are counted."""
_DISTANCES = ("mean", "largest", "seen best in")
NEAR = "What is near, but not equal"


def show(summary: IdentifySummary, folder: str, console: Console) -> None:
    """Print a summary."""
    for table in tables(summary, f"{summary.recording} of {summary.device}: {summary.kind}"):
        console.print(screen(table), highlight=False)
    for note in [*notes(summary), *(f"warning: {warning}" for warning in summary.warnings)]:
        console.print(escape(note), highlight=False)
    console.print(f"run: {escape(folder)}", highlight=False, soft_wrap=True)


def tables(summary: IdentifySummary, title: str) -> list[Table]:
    """Return a row for each axis that the identified stack has, and for each stack that is near."""
    columns = ("axis", "identified", "equal here", "nearest other", *_DISTANCES)
    rows = [
        [axis, *_row(identified_axis)]
        for axis, identified_axis in summary.axes.items()
        if identified_axis.applies
    ]
    found = [Table(columns, rows, title, 4)]
    if summary.runners_up:
        near: list[Sequence[Cell]] = [
            [
                ", ".join(f"{axis} {option}" for axis, option in runner_up.changes.items()),
                f"{runner_up.equal:,} of {summary.samples:,}",
                *_far(runner_up),
            ]
            for runner_up in summary.runners_up
        ]
        found.append(Table(("what differs", "images equal", *_DISTANCES), near, NEAR, 1))
    return found


def notes(summary: IdentifySummary) -> list[str]:
    """Return what else is to be said of a search."""
    unused = [axis for axis, identified_axis in summary.axes.items() if not identified_axis.applies]
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


def _row(axis: IdentifiedAxis) -> list[str]:
    equal = [*axis.equal, *(f"{option} (with another axis)" for option in axis.together)]
    more = [f"and {len(equal) - NAMED} more"] if len(equal) > NAMED else []
    return [
        axis.option,
        "; ".join([*equal[:NAMED], *more]) or "none",
        axis.next or "-",
        *_far(axis),
    ]


def _far(one: IdentifiedAxis | RunnerUp) -> list[str]:
    """The distances of a stack, and where they are largest."""
    distances = ("-" if value is None else f"{value:.4g}" for value in (one.mean, one.largest))
    return [*distances, one.seen_in or "-"]


def verdict(summary: IdentifySummary) -> Told:
    """Which stack reproduces a recording, and what the images do not tell."""
    changed = {
        axis: identified_axis.option
        for axis, identified_axis in summary.axes.items()
        if identified_axis.applies
    }
    names = ", ".join(f"{axis} {option}" for axis, option in changed.items())
    what, images = summary.kind, count(summary.samples, summary.sample_unit)
    if summary.exact and what != "predictions":
        how = (
            f"up to rounding ({summary.largest or 0:.2g}, within {summary.ulps} units in the last "
            "place of the largest value)"
            if summary.ulps
            else "to the bit"
        )
        lost = [f"{summary.recording} is reproduced {how} on all {images}: {names}."]
    elif summary.exact:
        lost = [f"All {images} of {summary.recording} are answered alike: {names}."]
    else:
        far = "" if summary.mean is None else f", mean difference {summary.mean:.4g}"
        lost = [
            f"No stack that was compared gives {summary.recording}. The nearest is equal on "
            f"{summary.equal:,} of {images}{far}: {names}."
        ]
    open_axes = [
        axis
        for axis, identified_axis in summary.axes.items()
        if identified_axis.equal or identified_axis.together
    ]
    cause = f"Not told apart by these images: {', '.join(open_axes)}." if open_axes else None
    probe = summary.telling
    after = f"Record {probe.probe} of simulate recordings probes as well." if probe else None
    return Told([*lost, after or "identified.yaml of the run is the profile, for --deploy."], cause)


PROFILE = "identified.yaml"


@part(order=22)
def axes(run: Run) -> Section | None:
    """Show what the recording says of each axis, what is near, and the profile."""
    summary = run.summary
    if not isinstance(summary, IdentifySummary):
        return None
    shown = tables(summary, "What the recording says of each axis")
    profile = run.file(PROFILE)
    if profile is not None:
        code = Code(profile.decode("utf-8", "replace"))
        shown.append(Table(["file", "content"], [[PROFILE, code]], "The profile", folded=True))
    return Section(
        "identified",
        "The stack, axis by axis",
        f"Which options give what {summary.device} gave, and which others are equal or near?",
        notes(summary),
        tables=shown,
        notes=["mean and largest are absolute differences from what was recorded."],
    )
