"""What permanent faults leave over the frames of a video, in the report and on the screen."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import quote

from rich.console import Console
from rich.markup import escape

from simulator.faults.screen import rate
from simulator.faults.screen import show as show_rates
from simulator.report import charts
from simulator.report.charts import Figure
from simulator.report.fitted import Fitted
from simulator.report.reading import Run
from simulator.report.sections.section import Cell, Link, Panel, Section, Table, part
from simulator.report.sections.style import Look, error_bars, figure, looks
from simulator.report.words import between, share
from simulator.results.faults import FaultsSummary, FaultStack, Persistence, Rate

SHOWN = (0.0, 0.01, 0.05, 0.1, 0.15)
"""Levels that are in tables; figures have all."""
_KINDS = (("false", "False objects"), ("missed", "Missed objects"))


@part(order=26)
def over_time(run: Run) -> Section | None:
    """Show which faults leave something that stays, and what the worst one does."""
    summary = run.summary
    stacks = tracked(summary) if isinstance(summary, FaultsSummary) else {}
    if not stacks:
        return None
    seen = {side: one.persistence for side, one in stacks.items() if one.persistence}
    drawn_as = looks(stacks)
    panels = [
        Panel(_levels({drawn_as[side]: one for side, one in seen.items()}, kind), title)
        for kind, title in _KINDS
    ]
    worst = {side: one for side, one in seen.items() if one.worst is not None}
    panels += [
        Panel(_frames(drawn_as[side], one), f"{drawn_as[side].name}: fault {one.worst}, the worst")
        for side, one in worst.items()
    ]
    tables = [Table(
        ["stack", "area above", *(title.lower() for _, title in _KINDS), *_rescaled(stacks)],
        lines(stacks, rescaled=True), "Share of faults that leave something, with intervals", 2,
    )]  # fmt: skip
    clips: list[list[Cell]] = [
        [side, str(one.worst), Link(one.clip, quote(one.clip))]
        for side, one in worst.items()
        if one.clip
    ]
    if clips:
        tables.append(Table(["stack", "fault", "clip"], clips, "The worst fault, frame by frame"))
    return Section(
        "over_time", "Faults over time", "Does a permanent fault leave something that stays?",
        [*map(_said, [next(iter(seen.values()))]), *means(stacks)], panels,
        notes=[
            "Missed areas are shares of what is there without the fault, false ones of the image.",
            "Occupied in frames nearby means that one or another pixel was (reading B in "
            "docs/faults.md). A frame with NaN or Inf leaves nothing: it was detected.",
        ],
        tables=tables,
    )  # fmt: skip


def screen(summary: FaultsSummary, folder: str, console: Console) -> None:
    """Print the rates, and over a video what stays."""
    show_rates(summary, console)
    show(summary, console)
    console.print(f"run: {folder}", soft_wrap=True, markup=False)


def show(summary: FaultsSummary, console: Console) -> None:
    """Print which faults leave something that stays."""
    stacks = tracked(summary)
    if not stacks:
        return
    title = "Over the video: faults that leave an area above L, on average"
    table = Fitted("stack", "L", *(kind.lower() for _, kind in _KINDS), title=title)
    for row in lines(stacks):
        table.add_row(*map(escape, row))
    console.print(table, highlight=False)
    for side, one in stacks.items():
        if one.persistence and one.persistence.clip:
            told = f"{side}: the worst is fault {one.persistence.worst}, in {one.persistence.clip}."
            console.print(escape(told), highlight=False)


def tracked(summary: FaultsSummary) -> dict[str, FaultStack]:
    """Return the stacks of a summary whose answers were followed over a video."""
    return {side: one for side, one in summary.stacks.items() if one.persistence is not None}


def lines(stacks: dict[str, FaultStack], rescaled: bool = False) -> list[list[str]]:
    """Return a row for each stack and some levels: the shares of false and of missed objects.

    Args:
        stacks: see :func:`tracked`.
        rescaled: also, where only some bits were hit, as shares of faults in all bits.
    """
    found = []
    scale = rescaled and bool(_rescaled(stacks))
    for side, one in stacks.items():
        seen = one.persistence
        assert seen is not None
        for level, *shares in zip(seen.levels, seen.false, seen.missed, strict=True):
            if level in SHOWN:
                cells = [rate(value) for value in shares]
                cells += [rate(_times(value, one.share_of_bits)) for value in shares if scale]
                found.append([side, f"{level:.0%}", *cells])
    return found


def means(stacks: dict[str, FaultStack]) -> list[str]:
    """Return a sentence on the areas of each stack, and what rescaled shares mean."""
    found = []
    for side, one in stacks.items():
        seen = one.persistence
        assert seen is not None
        areas = (
            (seen.false_area, "leave false objects", "of the image"),
            (seen.missed_area, "hide objects", "of what is there"),
        )
        for area, what, of in areas:
            if area.value is not None:
                ends = between(area.ci95)
                found.append(
                    f"{side}: {area.of} of {seen.false[0].of} faults {what} for long, on average "
                    f"{share(area.value)} {of}{ends}."
                )
    if _rescaled(stacks):
        found.append(
            "Only some bits were hit; shares of all bits assume that the others do no harm."
        )
    return found


def _said(seen: Persistence) -> str:
    return (
        f"{seen.frames} frames. A pixel is persistent where it is occupied in {seen.least} of the "
        f"last {seen.window} frames, or is occupied now and was within {seen.radius:g} pixels of "
        f"one in {seen.least} of them. A fault counts where the mean area of such pixels, over the "
        "frames that have any, is above the level."
    )


def _rescaled(stacks: dict[str, FaultStack]) -> list[str]:
    """The further columns, where not all bits were hit."""
    if all(one.share_of_bits == 1 for one in stacks.values()):
        return []
    return ["false, all bits", "missed, all bits"]


def _times(one: Rate, by: float) -> Rate:
    scaled = [None if end is None else end * by for end in one.ci95]
    value = None if one.rate is None else one.rate * by
    return one.model_copy(update={"rate": value, "ci95": scaled})


def _levels(seen: dict[Look, Persistence], kind: str) -> Figure:
    """The form of Figure 10 of the paper."""
    traces = []
    for look, one in seen.items():
        shares: Sequence[Rate] = getattr(one, kind)
        values = [s.rate for s in shares]
        traces.append(
            charts.scatter(
                x=one.levels, y=values, name=look.label, mode="lines+markers", line=look.line,
                marker=look.marker,
                error_y=error_bars(values, [s.ci95 for s in shares]),
                hovertemplate="above %{x:.0%}: %{y:.2%}<extra></extra>",
            )
        )  # fmt: skip
    drawn = figure(
        traces, 300, "mean persistent area L", "share of faults above L",
        showlegend=len(traces) > 1,
    )  # fmt: skip
    drawn.update_yaxes(tickformat=charts.SHARE, rangemode="tozero")
    drawn.update_xaxes(tickformat=charts.SHARE)
    return drawn


def _frames(look: Look, seen: Persistence) -> Figure:
    """The form of Figure 9 of the paper: one fault."""
    kinds: list[tuple[Sequence[float | None], str]] = [
        (seen.worst_false, "solid"), (seen.worst_missed, "dot"),
    ]  # fmt: skip
    traces = [
        charts.scatter(
            x=list(range(1, len(areas) + 1)), y=areas, name=title.lower(), mode="lines",
            line={**look.line, "dash": dash},
            hovertemplate="frame %{x}: %{y:.2%}<extra></extra>",
        )
        for (areas, dash), (_, title) in zip(kinds, _KINDS, strict=True)
    ]  # fmt: skip
    drawn = figure(traces, 300, "frame", "persistent area", showlegend=True)
    drawn.update_yaxes(tickformat=charts.SHARE, rangemode="tozero")
    return drawn
