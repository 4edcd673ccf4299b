"""What is said of a pair: its verdict, its screen, and the sections of its page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.markup import escape

from simulator.experiments.compare import tracking
from simulator.report import terminal
from simulator.report.axis_words import folded, known, said
from simulator.report.command import PAIR
from simulator.report.fitted import Fitted
from simulator.report.reading import Run
from simulator.report.sections.section import Section, part
from simulator.report.table import Cell, Column, Table, screen
from simulator.report.verdicts.told import Told
from simulator.report.words import (
    AT_ANY_TIME,
    SIDES,
    alone,
    at_any_time,
    between,
    cause,
    chance,
    decided,
    figure,
    interval,
    named,
    points,
    share,
    title,
)
from simulator.results.pair import Alone, AxisSide, Moment, PairSummary
from simulator.tasks.task import TASKS
from simulator.typed import Unit, plain


def verdict(summary: PairSummary) -> Told:
    """Return how many answers change, what the metric loses, and which axis does most of it."""
    flips, early = summary.flips, summary.decided
    answers = "answers" if summary.unit == "image" else f"{summary.unit}s"
    failed = any(one.count for one in summary.failed.values())
    both = f"Of the {summary.samples:,} {summary.sample_unit}s that both answer: " if failed else ""
    changed = f"{both}{flips.count:,} of {flips.units:,} {answers} change"
    lost = [changed + (f": {_rate(summary)}." if flips.units else ".")]
    if early:
        lost += [decided(early, summary.sample_unit), *_unseen(summary)]
    metric = summary.metric
    if delta := summary.delta.get(metric):
        old, new = (side.metric[metric] for side in (summary.train, summary.deploy))
        name, moved = title(summary.task, metric), at_any_time(delta.ci95, signed=True)
        lost.append(
            f"{name} stays at {share(new, 2)}{moved if early else interval(delta.ci95)}."
            if delta.value == 0
            else f"{name} goes from {share(old, 2)} to {share(new, 2)}, {points(delta)} "
            f"points{moved if early else chance(delta.ci95)}."
        )
    elif not summary.labelled:
        lost.append("There are no labels: accuracy is not known.")
    lost += tracking.told(summary.tracking)
    if not flips.count:
        return Told(lost)
    return Told(lost, _most_alone(summary), lambda asked: asked.line(_next(summary), PAIR))


def _next(summary: PairSummary) -> str:
    """The job that says more: axis by axis, or, of code and recordings, what a solver reads."""
    own = any(one.axis == "front_end" for one in summary.axes)
    fixed = bool(summary.alone) and all(one.why for one in summary.alone)
    return "diagnose" if own or fixed else "explain"


def _rate(summary: PairSummary) -> str:
    """The flip rate with its interval."""
    flips = summary.flips
    ends = at_any_time(flips.ci95) if summary.decided else between(flips.ci95)
    return f"{share(flips.rate, 2)}{ends}"


def _unseen(summary: PairSummary) -> list[str]:
    """What a run that stopped early does not show: that the deployment never fails."""
    failed, early = summary.failed.get("deploy"), summary.decided
    if (
        failed is None
        or failed.count
        or not failed.ci95
        or early is None
        or early.samples == early.of
    ):
        return []
    return [
        f"The deployment failed on none of them; up to {share(failed.ci95[1], 2)} is not excluded."
    ]


def _most_alone(summary: PairSummary) -> str | None:
    """Which axis changes most answers when it alone is swapped; None in a quick run."""
    ran = [one for one in summary.alone if one.why is None]
    if not ran:
        return None
    changed = {" with ".join(one.axes): one for one in ran if one.changed}
    if not changed:
        return "No axis changes an answer alone."
    (first, most), *others = ((cause(axis, summary), one) for axis, one in changed.items())
    half, told = summary.flips.count / 2, f"{most.changed:,}{between(most.ci95)}"
    rest = "".join(f"; {axis} {one.changed:,}" for axis, one in others[:2])
    whole = half < most.changed <= summary.flips.count
    word = "of it" if whole and all(one.changed <= half for _, one in others) else "alone"
    return f"Most {word}: {first}, {told}{rest}{_apart(most, others)}."


def _apart(most: Alone, others: Sequence[tuple[str, Alone]]) -> str:
    """Whether the axis that changes most may be another one on other samples."""
    low = most.ci95[0] if most.ci95 else None
    second = max((one.rate or 0.0 for _, one in others), default=0.0)
    return "; chance may explain which is first" if low is not None and second >= low else ""


def show(summary: PairSummary, folder: str, console: Console) -> None:
    """Print what differs, what it costs, and whether that is more than chance.

    Args:
        summary: the content of ``summary.json``.
        folder: where the run is.
        console: a terminal, or a file that gets plain text.
    """
    terminal.stacks(summary, console, named(summary.train), named(summary.deploy))
    _show_axes(summary, console)
    terminal.grid(_lines(summary), console)
    if any(summary.delta.values()):  # none without labels
        console.print(screen(_metrics(summary)), highlight=False)
    for table in by_size(summary):
        console.print(screen(table), highlight=False)
    if summary.worst_flips:
        console.print(screen(worst(summary)), highlight=False)
    if summary.tracking:
        console.print(screen(tracking.table(summary.tracking)), highlight=False)
    _show_latency(summary, console)
    terminal.skipped(summary, console)
    for warning in summary.warnings:
        terminal.note(warning, console)
    same = summary.controls.self_
    if same.bit_equal:
        console.print(
            f"control: each side against itself, {same.samples} {summary.sample_unit}s: "
            f"{same.flips} flips, bit-equal",
            highlight=False,
        )
    terminal.gate(summary, console)
    terminal.end((), folder, console)


def _show_axes(summary: PairSummary, console: Console) -> None:
    if not summary.axes:
        console.print("\nThe two profiles describe the same stack.", highlight=False)
        return
    shown, words = Fitted("axis", "stack", "what it does", title="What differs"), alone(summary)
    for entry in summary.axes:
        shown.add_row(f"[bold]{entry.axis}[/]", "train", _side(entry.train))
        shown.add_row("", "deploy", _side(entry.deploy, folded(entry.equal)))
        if entry.axis in words:
            shown.add_row("", "alone", escape(words[entry.axis]), end_section=True)
    console.print(shown)


def _side(side: AxisSide, same: str = "") -> str:
    words = " ".join(filter(None, (said(side.values, side.card) or "-", same)))
    return f"{escape(words)} [dim]({known(side.evidence, side.claimed)})[/]"


def _lines(summary: PairSummary) -> Iterator[tuple[str, str]]:
    """The changed answers, how many of which kind, and what the task says of them."""
    flips, unit = summary.flips, summary.unit
    of = f"{flips.count:,} of {flips.units:,}" + ("" if unit == "image" else f" {unit}s")
    yield "flips", of if flips.rate is None else f"{of}: {_rate(summary)}"
    yield from TASKS[summary.task].view().lines(plain(summary))


def _metrics(summary: PairSummary) -> Table:
    """The metrics of both stacks and their difference, in percent and points."""
    view, rows = TASKS[summary.task].view(), list[Sequence[Cell]]()
    for metric, delta in summary.delta.items():
        old, new = (side.metric[metric] for side in (summary.train, summary.deploy))
        if metric == summary.metric or (old, new) != (None, None):
            of = (delta.value, delta.ci95, delta.p) if delta else (None, None, None)
            rows.append([view.metric(metric), old, new, *of])
    labelled = summary.labelled
    some = "" if labelled == summary.samples else f", {labelled:,} of them with a truth"
    methods = {delta.method for delta in summary.delta.values() if delta}
    ends = AT_ANY_TIME if methods == {AT_ANY_TIME} else "95 % interval"
    columns = [
        Column("metric, %"), Column("train", Unit.SHARE, 1), Column("deploy", Unit.SHARE, 1),
        Column("delta, points", Unit.POINTS, 1), Column(ends, Unit.POINTS),
        Column("p", Unit.PROBABILITY),
    ]  # fmt: skip
    return Table(columns, rows, f"Metrics of both stacks on the same {summary.sample_unit}s{some}")


def by_size(summary: PairSummary) -> list[Table]:
    """Return the flips of each size, where samples differ in it."""
    found, unit = summary.by_size, f"{summary.unit}s"
    if found is None:
        return []
    rows = [
        [one.size, f"{one.samples:,}", f"{one.changed:,} of {one.units:,} {unit}",
         f"{share(one.rate, 2)}{between(one.ci95)}"]
        for one in found.classes
    ]  # fmt: skip
    name = f"Flips by the size of {found.of}"
    if found.rho is not None:
        rank = f"rank correlation by {summary.sample_unit} {found.rho:+.2f}"
        name += f": {rank}, p {figure(found.p, '.2g')}"
    size = "width×height" if "×" in found.classes[0].size else "size"
    return [Table([size, f"{summary.sample_unit}s", "flips", "share"], rows, name)]


def _show_latency(summary: PairSummary, console: Console) -> None:
    train, deploy = summary.latency_ms.train, summary.latency_ms.deploy
    rows: list[Sequence[Cell]] = [
        [stage, *(f"{figure(one[stage].p50, '.2f')} / {figure(one[stage].p90, '.2f')}"
                  for one in (train, deploy))]
        for stage in train
        if train[stage].p50 is not None or deploy[stage].p50 is not None
    ]  # fmt: skip
    if rows:
        name = f"Latency, ms p50 / p90, {summary.workers} in flight"
        console.print(screen(Table(["", *SIDES], rows, name, 1)), highlight=False)


def worst(summary: PairSummary) -> Table:
    """Return the worst flips, the worst one first; of clips the worst moments."""
    view, flips = TASKS[summary.task].view(), summary.worst_flips
    rows = [
        [moment(flip.moment) if flip.moment else flip.sample, *view.words(plain(flip))]
        for flip in flips
    ]
    clips = any(flip.moment for flip in flips)
    what, name = ("moment", "Worst moments") if clips else (summary.sample_unit, "Worst flips")
    return Table([what, *view.titles], rows, name)


def moment(one: Moment) -> str:
    """Return when it is, and when it is worst."""
    clip = f"{one.clip}, " if one.clip else ""
    if one.frames == 1:
        return f"{clip}{one.worst:.2f} s"
    return f"{clip}{one.start:.2f} s to {one.end:.2f} s, worst {one.worst:.2f} s"


@part(order=60)
def answer(run: Run[PairSummary]) -> Section:
    """Show the metrics of both stacks, and the flips by kind."""
    summary = run.summary
    return Section(
        "answer",
        "The answer in numbers",
        "How much does the metric change, and how many answers?",
        [f"{name}: {words}".removeprefix(": ") for name, words in _lines(summary) if words],
        tables=[_metrics(summary), *by_size(summary), *_failed(summary)],
    )


def _failed(summary: PairSummary) -> list[Table]:
    """Samples that one stack cannot answer, where there are any."""
    rows = [
        [name, f"{one.count:,} of {one.of:,}", f"{share(one.rate, 2)}{between(one.ci95)}"]
        for name, one in summary.failed.items()
    ]
    if not any(failed.count for failed in summary.failed.values()):
        return []
    head = ["stack", f"{summary.sample_unit}s", "share"]
    return [Table(head, rows, "What one stack cannot answer while the other can", 1)]
