"""What the report shows of a campaign: rates, by bit and by layer, and the worst corruptions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import zip_longest

from simulator.faults.screen import mean, rate, reading, shown, whole, words
from simulator.report import charts
from simulator.report.reading import Run
from simulator.report.rendering import LOOKS
from simulator.report.sections.section import Panel, Section, Table, fitting, part
from simulator.report.sections.style import error_bars, figure, looks, text
from simulator.report.words import count
from simulator.results.faults import FaultEvent, FaultGroup, FaultsSummary, Rate


@part(order=22)
def rates(run: Run) -> Section | None:
    """Show how often answers are corrupted, and what that means."""
    summary = run.summary
    if not isinstance(summary, FaultsSummary):
        return None
    paired = [
        f"Of the same faults {one.only_first} corrupt {one.than} alone, "
        f"{one.only_this} {side} alone, {one.both} both."
        for side, one in summary.paired.items()
    ]
    methods = [f"{side}: {one.method}. DUE: {one.tap}." for side, one in summary.stacks.items()]
    return Section(
        "rates",
        "Faults: silent corruptions, NaN and Inf",
        "How often does a fault change an answer without any sign of it?",
        [
            f"{summary.faults:,} faults ({summary.kind}, {summary.lasts}) in "
            f"{' and '.join(summary.targets)}; {summary.at_once} bit at once. DUE depends on the "
            "runtime and on where it is looked for.",
            *reading(summary),
            *methods,
            *paired,
        ],
        tables=[Table.of(whole(summary, title="Rates and severities, with intervals"))],
    )


@part(order=23)
def bits(run: Run) -> Section | None:
    """Show the rates of each bit."""
    summary = run.summary
    if not isinstance(summary, FaultsSummary):
        return None
    return _grouped(
        summary, "bit", {side: one.by_bit for side, one in summary.stacks.items()},
        "Which bits matter?",
        "Bits are counted from 0, the least significant one; of FP32 31 is the sign and 30 to 23 "
        "are the exponent.",
    )  # fmt: skip


@part(order=24)
def layers(run: Run) -> Section | None:
    """Show the rates of each layer."""
    summary = run.summary
    if not isinstance(summary, FaultsSummary):
        return None
    return _grouped(
        summary, "layer", {side: one.by_layer for side, one in summary.stacks.items()},
        "Which layers matter?", "Layers are in the order in which they are computed.",
    )  # fmt: skip


@part(order=25)
def events(run: Run) -> Section | None:
    """List the worst silent corruptions, and show some of them."""
    summary = run.summary
    if not isinstance(summary, FaultsSummary):
        return None
    names = shown(summary)
    found = [
        [
            side, str(one.fault), one.sample, one.layer, ", ".join(map(str, one.bit)),
            _values(one), *(_value(one.severity[name]) for name in names),
        ]
        for side, stack in summary.stacks.items()
        for one in stack.worst
    ]  # fmt: skip
    if not found:
        return None
    head = ["stack", "fault", "sample", "layer", "bit", "value", *map(words(summary), names)]
    wanted = [(one.preview, _caption(side, one)) for side, one in _ranked(summary)]
    pictures, left = fitting(run, wanted, LOOKS)
    return Section(
        "events",
        "The worst silent corruptions",
        "What does a fault do at its worst?",
        ["Run one again: simulate replay-fault RUN --fault N."],
        notes=[f"{count(left, 'more picture')} in the run's folder."] if left else [],
        tables=[Table(head, found, "The worst silent corruptions", 2)],
        pictures=pictures,
    )


def _ranked(summary: FaultsSummary) -> Iterator[tuple[str, FaultEvent]]:
    """The worst corruption of each stack, then the second ones, and so on."""
    worst = [[(side, one) for one in stack.worst] for side, stack in summary.stacks.items()]
    return (one for rank in zip_longest(*worst) for one in rank if one is not None)


def _caption(side: str, one: FaultEvent) -> str:
    index, bit = (", ".join(map(str, values)) for values in (one.index, one.bit))
    found = f"{side}, fault {one.fault}, {one.sample}: {one.layer}, {one.target}, element {index}, "
    found += f"bit {bit}, {_values(one)}."
    if one.without:
        found += f" Without the fault {one.without}; with it {one.under}."
    return found


def _values(one: FaultEvent) -> str:
    """The hit values before and after."""
    return ", ".join(
        f"{_value(before)} to {_value(after)}"
        for before, after in zip(one.before, one.after, strict=True)
    )


def _grouped(
    summary: FaultsSummary,
    what: str,
    groups: Mapping[str, Mapping[str, FaultGroup]],
    question: str,
    note: str,
) -> Section:
    drawn_as, names = looks(summary.stacks), shown(summary)
    panels = []
    for title, kind in (("SDC", "sdc"), ("DUE", "due")):
        traces = []
        for side, found in groups.items():
            look = drawn_as[side]
            values: list[Rate] = [getattr(one, kind) for one in found.values()]
            shares = [one.rate for one in values]
            traces.append(
                charts.bar(
                    x=[text(name) for name in found], y=shares, name=look.label,
                    marker={"color": look.color},
                    error_y=error_bars(shares, [one.ci95 for one in values]),
                    hovertemplate="%{x}: %{y:.2%}<extra></extra>",
                )
            )  # fmt: skip
        drawn = figure(
            traces, 300, what, f"{title}, share of its faults", showlegend=len(traces) > 1
        )
        drawn.update_yaxes(tickformat=charts.SHARE, rangemode="tozero")
        drawn.update_xaxes(type="category")
        panels.append(Panel(drawn, title))
    table = [
        [
            side, name, str(one.sdc.of), rate(one.sdc), rate(one.due),
            *(mean(one.severity[name]) for name in names),
        ]
        for side, found in groups.items()
        for name, one in found.items()
    ]  # fmt: skip
    head = ["stack", what, "faults", "SDC", "DUE", *map(words(summary), names)]
    return Section(
        f"by_{what}",
        f"By {what}",
        question,
        [note],
        panels=panels,
        tables=[Table(head, table, f"Every {what}", 2)],
    )


def _value(value: float | None) -> str:
    return "not finite" if value is None else f"{value:.4g}"
