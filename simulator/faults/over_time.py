"""What the report shows of permanent faults over the frames of a video."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from urllib.parse import quote

from simulator.faults.tables import KINDS, lasting_bits, some_bits, tracked
from simulator.faults.tables import over_time as shares
from simulator.report import charts
from simulator.report.charts import Attributes, Figure
from simulator.report.colors import FAINT
from simulator.report.sections.section import Cell, Link, Panel, Section, Table
from simulator.report.sections.style import Look, error_bars, figure, looks
from simulator.report.words import between, share
from simulator.results.faults import FaultsSummary, Mean, Persistence, Rate


def over_time(summary: FaultsSummary) -> Section:
    """Show which faults leave something that stays, and what the worst one does."""
    seen = tracked(summary)
    drawn_as = looks({side: summary.stacks[side] for side in seen})
    panels = [
        Panel(
            _levels({drawn_as[side]: persistence for side, persistence in seen.items()}, kind),
            title,
        )
        for kind, title in KINDS.items()
    ]
    worst = {
        side: persistence for side, persistence in seen.items() if persistence.worst is not None
    }
    panels += [
        Panel(_frames(drawn_as[side], one), f"{drawn_as[side].name}: fault {one.worst}, the worst")
        for side, one in worst.items()
    ]
    by_bit = {drawn_as[side]: one for side, one in seen.items() if one.by_bit}
    panels += [
        Panel(_bits(by_bit, name, title), title)
        for kind, word in KINDS.items()
        if by_bit
        for name, title in ((kind, f"{word} by bit"), (f"{kind}_area", f"{word}: area by bit"))
    ]
    title = "Share of faults that leave an area above L on average, with intervals"
    tables = [replace(shares(summary, rescaled=True), title=title)]
    if by_bit:
        tables.append(lasting_bits(summary))
    clips: list[list[Cell]] = [
        [side, str(persistence.worst), Link(persistence.clip, quote(persistence.clip))]
        for side, persistence in worst.items()
        if persistence.clip
    ]
    if clips:
        tables.append(Table(["stack", "fault", "clip"], clips, "The worst fault, frame by frame"))
    return Section(
        "over_time", "Faults over time", "Does a permanent fault leave something that stays?",
        [_rule(next(iter(seen.values()))), *_areas(summary)], panels,
        notes=[
            "Missed areas are shares of what is there without the fault, false ones of the image.",
            "Occupied in frames nearby means that one or another pixel was (reading B in "
            "docs/faults.md). A frame with NaN or Inf leaves nothing: it was detected.",
        ],
        tables=tables,
    )  # fmt: skip


def _areas(summary: FaultsSummary) -> Iterator[str]:
    """A sentence on the areas of each stack, and what rescaled shares mean."""
    for side, seen in tracked(summary).items():
        areas = (
            (seen.false_area, "leave false objects", "of the image"),
            (seen.missed_area, "hide objects", "of what is there"),
        )
        for area, what, of in areas:
            if area.value is not None:
                yield (
                    f"{side}: {area.of} of {seen.false[0].of} faults {what} for long, on average "
                    f"{share(area.value)} {of}{between(area.ci95)}."
                )
        if seen.reference_false:
            yield (
                f"{side}: without any fault {share(_mean(seen.reference_false))} of the image is "
                f"falsely occupied, and what is missed is {share(_mean(seen.reference_missed))} of "
                "what is occupied, against the annotations."
            )
    if some_bits(summary):
        yield "Only some bits were hit; shares of all bits assume that the others do no harm."


def _mean(areas: Sequence[float | None]) -> float | None:
    known = [area for area in areas if area is not None]
    return sum(known) / len(known) if known else None


def _rule(seen: Persistence) -> str:
    return (
        f"{seen.frames} frames. A pixel is persistent where it is occupied in {seen.least} of the "
        f"last {seen.window} frames, or is occupied now and was within {seen.radius:g} pixels of "
        f"one in {seen.least} of them. A fault counts where the mean area of such pixels, over the "
        "frames that have any, is above the level."
    )


def _levels(seen: dict[Look, Persistence], kind: str) -> Figure:
    """The form of Figure 10 of the paper."""
    traces = []
    for look, one in seen.items():
        rates: Sequence[Rate] = getattr(one, kind)
        values = [rate.rate for rate in rates]
        traces.append(
            charts.scatter(
                x=one.levels, y=values, name=look.label, mode="lines+markers", line=look.line,
                marker=look.marker,
                error_y=error_bars(values, [rate.ci95 for rate in rates]),
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


def _bits(seen: dict[Look, Persistence], name: str, title: str) -> Figure:
    """The form of Figure 10 of the paper: by the bit that is stuck."""
    traces = []
    for look, one in seen.items():
        found: list[Rate | Mean | None] = [getattr(group, name) for group in one.by_bit.values()]
        values = [
            given.rate if isinstance(given, Rate) else given and given.value for given in found
        ]
        traces.append(
            charts.bar(
                x=list(one.by_bit), y=values, name=look.label,
                marker={"color": look.color}, hovertemplate="bit %{x}: %{y:.2%}<extra></extra>",
            )
        )  # fmt: skip
    drawn = figure(traces, 300, "bit", title.lower(), showlegend=len(traces) > 1)
    drawn.update_yaxes(tickformat=charts.SHARE, rangemode="tozero")
    drawn.update_xaxes(type="category")
    return drawn


def _frames(look: Look, seen: Persistence) -> Figure:
    """The form of Figure 9 of the paper: one fault."""
    gray = {"color": FAINT, "width": 1}
    kinds: list[tuple[Sequence[float | None], str, str, Attributes]] = [
        (seen.worst_false, "solid", KINDS["false"], look.line),
        (seen.worst_missed, "dot", KINDS["missed"], look.line),
        (seen.reference_false, "solid", "false without a fault", gray),
        (seen.reference_missed, "dot", "missed without a fault", gray),
    ]
    traces = [
        charts.scatter(
            x=list(range(1, len(areas) + 1)), y=areas, name=title.lower(), mode="lines",
            line={**line, "dash": dash},
            hovertemplate="frame %{x}: %{y:.2%}<extra></extra>",
        )
        for areas, dash, title, line in kinds
        if areas
    ]  # fmt: skip
    drawn = figure(traces, 300, "frame", "persistent area", showlegend=True)
    drawn.update_yaxes(tickformat=charts.SHARE, rangemode="tozero")
    return drawn
