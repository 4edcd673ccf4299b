"""What the report shows of a campaign: rates, by bit and by layer, and the worst corruptions."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest

from simulator.faults.over_time import over_time
from simulator.faults.screen import notes
from simulator.faults.tables import events as event_table
from simulator.faults.tables import groups, groups_of, shown, tracked, values, words
from simulator.faults.tables import rates as rate_table
from simulator.report import charts
from simulator.report.reading import Run
from simulator.report.rendering import LOOKS
from simulator.report.sections.section import Panel, Section, fitting, part
from simulator.report.sections.style import error_bars, figure, looks, text
from simulator.report.words import count
from simulator.results.faults import FaultEvent, FaultsSummary, Rate


@part(order=22)
def sections(run: Run[FaultsSummary]) -> Iterator[Section]:
    """Show the rates, in whole, by bit and by layer, the worst corruptions, and what stays."""
    summary = run.summary
    yield _rates(summary)
    yield _grouped(
        summary, "bit", "Which bits matter?",
        "Bits are counted from 0, the least significant one; of FP32 31 is the sign and 30 to 23 "
        "are the exponent.",
    )  # fmt: skip
    note = "Layers are in the order in which they are computed."
    yield _grouped(summary, "layer", "Which layers matter?", note)
    if any(stack.curves for stack in summary.stacks.values()):
        yield _curves(summary)
    if event_table(summary).rows:
        yield _events(run)
    if tracked(summary):
        yield over_time(summary)


def _rates(summary: FaultsSummary) -> Section:
    """How often answers are corrupted, and what that means."""
    return Section(
        "rates",
        "Faults: silent corruptions, NaN and Inf",
        "How often does a fault change an answer without any sign of it?",
        [
            f"{summary.faults:,} faults ({summary.kind}, {summary.lasts}) in "
            f"{' and '.join(summary.targets)}; {summary.at_once} bit at once. DUE depends on the "
            "runtime and on where it is looked for.",
            *notes(summary),
        ],
        tables=[rate_table(summary, title="Rates and severities, with intervals")],
    )


def _curves(summary: FaultsSummary) -> Section:
    """The form of Figure 4 of the paper: precision over recall, by class."""
    drawn_as = looks(summary.stacks)
    classes = dict.fromkeys(name for stack in summary.stacks.values() for name in stack.curves)
    panels = []
    for name in classes:
        traces = [
            charts.scatter(
                x=[recall / 100 for recall in range(101)], y=points, mode="lines",
                name=f"{drawn_as[side].label}, {word}", line={**drawn_as[side].line, "dash": dash},
                hovertemplate="recall %{x:.2f}: precision %{y:.3f}<extra></extra>",
            )
            for side, stack in summary.stacks.items()
            if (curve := stack.curves.get(name))
            for points, word, dash in (
                (curve.clean, "no fault", "dot"), (curve.faulty, "faults", "solid"),
            )
        ]  # fmt: skip
        drawn = figure(traces, 300, "recall", "precision", showlegend=True)
        drawn.update_yaxes(range=[0, 1.02])
        panels.append(Panel(drawn, name))
    return Section(
        "curves", "Precision and recall", "What do the same faults do to average precision?",
        ["At IoU 0.5, over all inferences with a fault. A few images with many false boxes of high "
         "scores lower the whole curve; lost objects cut its end; false boxes of low scores do "
         "nothing. Silent corruptions count images instead."],
        panels,
        notes=["The classes whose AP50 changes most. A detected fault gives no answer."],
    )  # fmt: skip


def _events(run: Run[FaultsSummary]) -> Section:
    """The worst silent corruptions, and pictures of some of them."""
    summary = run.summary
    wanted = [(event.preview, _caption(side, event)) for side, event in _ranked(summary)]
    pictures, left = fitting(run, wanted, LOOKS)
    return Section(
        "events",
        "The worst silent corruptions",
        "What does a fault do at its worst?",
        ["Run one again: simulate replay-fault RUN --fault N."],
        notes=[f"{count(left, 'more picture')} in the run's folder."] if left else [],
        tables=[event_table(summary)],
        pictures=pictures,
    )


def _ranked(summary: FaultsSummary) -> Iterator[tuple[str, FaultEvent]]:
    """The worst corruption of each stack, then the second ones, and so on."""
    worst = [[(side, event) for event in stack.worst] for side, stack in summary.stacks.items()]
    return (one for rank in zip_longest(*worst) for one in rank if one is not None)


def _caption(side: str, one: FaultEvent) -> str:
    index, bit = (", ".join(map(str, values)) for values in (one.index, one.bit))
    found = f"{side}, fault {one.fault}, {one.sample}: {one.layer}, {one.target}, element {index}, "
    found += f"bit {bit}, {values(one)}."
    if one.without:
        found += f" Without the fault {one.without}; with it {one.under}."
    return found


def _grouped(summary: FaultsSummary, what: str, question: str, note: str) -> Section:
    drawn_as = looks(summary.stacks)
    panels = []
    for title, kind in (("SDC", "sdc"), ("DUE", "due")):
        traces = []
        for side, found in groups_of(summary, what).items():
            look = drawn_as[side]
            rates: list[Rate] = [getattr(group, kind) for group in found.values()]
            shares = [rate.rate for rate in rates]
            traces.append(
                charts.bar(
                    x=[text(name) for name in found], y=shares, name=look.label,
                    marker={"color": look.color},
                    error_y=error_bars(shares, [rate.ci95 for rate in rates]),
                    hovertemplate="%{x}: %{y:.2%}<extra></extra>",
                )
            )  # fmt: skip
        drawn = figure(
            traces, 300, what, f"{title}, share of its faults", showlegend=len(traces) > 1
        )
        drawn.update_yaxes(tickformat=charts.SHARE, rangemode="tozero")
        drawn.update_xaxes(type="category")
        panels.append(Panel(drawn, title))
    if what == "bit":
        panels += [_severity(summary, name) for name in shown(summary)]
    tables = [groups(summary, what)]
    return Section(f"by_{what}", f"By {what}", question, [note], panels=panels, tables=tables)


def _severity(summary: FaultsSummary, name: str) -> Panel:
    """The form of Figure 5 of the paper: the mean over the silent corruptions by each bit."""
    drawn_as, title = looks(summary.stacks), words(summary)(name)
    traces = [
        charts.bar(
            x=list(found), y=[group.severity[name].value for group in found.values()],
            name=drawn_as[side].label, marker={"color": drawn_as[side].color},
            customdata=[group.severity[name].of for group in found.values()],
            hovertemplate="bit %{x}: %{y:.3g}, %{customdata} corruptions<extra></extra>",
        )
        for side, found in groups_of(summary, "bit").items()
    ]  # fmt: skip
    drawn = figure(traces, 300, "bit", title, showlegend=len(traces) > 1)
    drawn.update_xaxes(type="category")
    return Panel(drawn, f"{title}: mean over the silent corruptions")
