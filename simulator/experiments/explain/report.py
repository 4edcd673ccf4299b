"""What is said of an explanation: its verdict, its screen, and its sections of the page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Console

from simulator.report import terminal
from simulator.report.reading import Run
from simulator.report.sections.section import Section, part
from simulator.report.table import Bar, Cell, Column, Table, screen
from simulator.report.verdicts.told import Told
from simulator.report.words import (
    SIGNIFICANT,
    better,
    cause,
    chance,
    ends,
    heading,
    interval,
    is_significant,
    points,
    title,
)
from simulator.results.suites import Blame, ExplainSummary
from simulator.typed import Unit

BLOCKS = {"swap_in": "alone", "swap_out": "repaired", "waterfall": "in order", "shapley": "Shapley"}
"""The parts of a blame, in words."""
_NOTHING = "Nothing was measured that an axis could be blamed for."


def verdict(summary: ExplainSummary) -> Told:
    """Return how much the metric moves, and which axis has most of it."""
    if not summary.blame:
        return Told([_NOTHING])
    metric = summary.metric if summary.metric in summary.blame else "flip_rate"
    blame = summary.blame[metric]
    name, total = title(summary.task, metric), blame.total.value or 0.0
    lost = [
        f"{summary.deploy.profile} moves {name} by {points(blame.total)} "
        f"points{chance(blame.total.ci95)}."
    ]
    shares = {axis: blame.shapley[axis] for axis in summary.axes}
    most = max(shares, key=lambda axis: abs(shares[axis].value or 0))
    found = shares[most]
    half = abs(found.value or 0) > abs(total) / 2
    words = (
        f"{cause(most, summary)} has {'most of it' if half else 'the largest share'}: "
        f"{points(found)} points{interval(found.ci95)}"
    )
    words += "." if is_significant(found) else ", no more than chance explains (Holm)."
    return Told(lost, f"{words}{_repair(summary, metric, blame)}")


def _repair(summary: ExplainSummary, metric: str, blame: Blame) -> str:
    """Which repair wins most, where it is more than chance; nothing where none wins anything."""
    sign = better(metric)
    won = {axis: sign * (blame.swap_out[axis].value or 0) for axis in summary.axes}
    best = max(won, key=lambda axis: won[axis])
    if won[best] <= 0:
        return ""
    found = blame.swap_out[best]
    if (found.p or 0.0) * len(won) >= SIGNIFICANT:
        return " No repair of one axis wins back more than chance explains."
    wins = [None if end is None else sign * end for end in found.ci95][::sign]
    name = title(summary.task, metric)
    return (
        f" Repair {best} first: alone that wins back {100 * won[best]:.2f} points of "
        f"{name}{interval(wins)}."
    )


def show(summary: ExplainSummary, folder: str, console: Console) -> None:
    """Print what each axis costs.

    Args:
        summary: of a run.
        folder: where the run is.
        console: a terminal, or a file that gets plain text.
    """
    terminal.stacks(
        summary, console, summary.train.profile, summary.deploy.profile,
        f", {summary.stacks} stacks in one plan of {summary.unique_steps} unique steps",
    )  # fmt: skip
    for metric, blame in summary.blame.items():
        console.print(screen(table(summary, metric)), highlight=False)
        together = list(_together(blame))
        for words in together:
            console.print(f"together: {words}", markup=False, highlight=False)
        console.print(
            f"[dim]Shapley values sum to the total (residual {blame.residual:.1g}); Holm over a "
            f"family of {blame.family} axes; "
            f"pairwise interactions that exceed noise: {len(together)}[/]",
            highlight=False,
        )
    terminal.end(summary.warnings, folder, console)


def _together(blame: Blame) -> Iterator[str]:
    for pair in filter(is_significant, blame.interactions):
        yield f"{' and '.join(pair.axes)}: {points(pair)} beyond the sum of each alone"


def table(summary: ExplainSummary, metric: str) -> Table:
    """Return what each axis costs: alone, repaired, in order, and its fair share."""
    blame, rows = summary.blame[metric], list[Sequence[Cell]]()
    for axis in summary.axes:
        share = blame.shapley[axis]
        label = f"{axis} (null)" if axis in summary.null else axis
        *parts, fair = (blame[block][axis].value for block in BLOCKS)
        bar = Bar(fair, share.ci95, clear=is_significant(share))
        rows.append([label, *parts, bar, share.ci95, share.p_holm])
    *others, last = BLOCKS.values()
    return Table(
        [Column("axis"), *(Column(words, Unit.POINTS) for words in others),
         Column(last, Unit.POINTS, better(metric)),
         Column("95 % interval", Unit.POINTS), Column("Holm p", Unit.PROBABILITY)],
        rows,
        f"{heading(summary.task, metric)}, points: {points(blame.total)} in all "
        f"(95 % interval {ends(blame.total.ci95)})",
        marked=frozenset(
            at for at, axis in enumerate(summary.axes) if is_significant(blame.shapley[axis])
        ),
    )  # fmt: skip


def _waterfall(summary: ExplainSummary, metric: str) -> Table:
    blame, so_far, rows = summary.blame[metric], 0.0, list[Sequence[Cell]]()
    for axis in summary.axes:
        step = blame.waterfall[axis].value
        rows.append([axis, Bar(step, base=so_far)])
        so_far += step or 0.0
    rows.append(["in all", Bar(blame.total.value)])
    columns = [Column("axis"), Column("points", Unit.POINTS, better(metric))]
    return Table(columns, rows, f"{heading(summary.task, metric)}, step by step")


def _matrix(summary: ExplainSummary, metric: str) -> Table:
    """A row for each axis, with what it costs together with each one before it."""
    names = summary.axes
    found = {frozenset(pair.axes): pair for pair in summary.blame[metric].interactions}

    def cell(row: str, column: str) -> Cell:
        pair = found.get(frozenset((row, column)))
        return "" if pair is None or row == column else pair.value

    columns = [Column(name, Unit.POINTS, better(metric), heat=True) for name in names[:-1]]
    rows = [
        [row, *(cell(row, column) if at > other else "" for other, column in enumerate(names[:-1]))]
        for at, row in enumerate(names) if at
    ]  # fmt: skip
    title_of = f"{heading(summary.task, metric)}, two axes together"
    return Table([Column("and"), *columns], rows, title_of)


@part(order=20)
def sections(run: Run[ExplainSummary]) -> Iterator[Section]:
    """Show each axis' share, the way from the one stack to the other, and what acts together."""
    summary = run.summary
    if not summary.axes:
        return
    yield Section(
        "shapley",
        "Blame: each axis' share, points",
        "Which axis costs what, when the order does not count?",
        tables=[table(summary, metric) for metric in summary.blame],
        notes=[
            "Shapley values over all mixtures of the two stacks: they sum to the total. Lines: "
            "95 % intervals, paired; filled: significant at 5 % after Holm's correction."
            if summary.blame
            else _NOTHING
        ],
    )
    if not summary.blame:
        return
    yield Section(
        "waterfall",
        "Waterfall: one axis after the other, points",
        "How does the loss build up, from the training stack to the deployment stack?",
        tables=[_waterfall(summary, metric) for metric in summary.blame],
        notes=[
            "Axes are swapped in the order of the pipeline; another order would give other steps."
        ],
    )
    if len(summary.axes) > 1:
        yield Section(
            "interactions",
            "Interactions: what two axes cost beyond each alone, points",
            "Which axes are worse, or better, together?",
            [
                f"{title(summary.task, metric)}: {words}."
                for metric, blame in summary.blame.items()
                for words in _together(blame)
            ],
            tables=[_matrix(summary, metric) for metric in summary.blame],
            notes=["Told in words: significant at 5 % after Holm's correction over all pairs."],
        )
