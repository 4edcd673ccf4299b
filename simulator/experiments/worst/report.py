"""What is said of a worst case: its verdict, its screen, and its section of the page."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console

from simulator.report import terminal
from simulator.report.reading import Run
from simulator.report.sections.section import Section, part
from simulator.report.table import Bar, Cell, Column, Table, screen
from simulator.report.verdicts.told import Told
from simulator.report.words import chance, dropped, early_steps, moved, run_on, share, title, turned
from simulator.results.suites import WorstSummary
from simulator.typed import Unit


def verdict(summary: WorstSummary) -> Told:
    """Return how much the worst combination loses, and its options."""
    if not summary.path:
        return Told(["No combination was tried."])
    deepest = max(summary.path, key=lambda step: float(step.drop))
    added = [step.added for step in summary.path]
    picks = ", ".join(added[: summary.path.index(deepest) + 1])
    lost = f"{moved(deepest.drop)} points of {title(summary.task, summary.metric)}"
    sure = chance(turned(deepest.drop_ci95), deepest.p, deepest.family)
    return Told([f"{lost} by {picks}{sure}.", *early_steps(summary.early or ())])


def path(summary: WorstSummary, name: str) -> Table:
    """Return the steps down, from the trained stack; the deepest one is marked."""
    rows: list[Sequence[Cell]] = [
        ["0", "the trained stack", Bar(summary.trained), 0.0, summary.samples]
    ]
    for at, step in enumerate(summary.path, 1):
        samples = step.samples or summary.samples
        rows.append([str(at), step.added, Bar(step[summary.metric]), 0 - step.drop, samples])
    metric = title(summary.task, summary.metric)
    columns = [
        Column("step"), Column("added"), Column(f"{metric}, %", Unit.SHARE),
        Column("change, points", Unit.POINTS, 1, heat=True), Column("n", Unit.COUNT),
    ]  # fmt: skip
    drops = [step.drop for step in summary.path]
    deepest = [drops.index(max(drops)) + 1] if drops else []
    return Table(columns, rows, name, marked=frozenset(deepest))


def _of_all(summary: WorstSummary) -> str:
    """The worst of all combinations, or that there were too many."""
    every, best = summary.combinations, summary.exhaustive
    if best is None:
        return f"A greedy path: {every:,} combinations are too many to try all."
    return (
        f"The worst of all {every:,} combinations is {', '.join(best.picks)}: "
        f"{share(best[summary.metric], 2)}, {moved(best.drop)} points"
        f"{chance(turned(best.drop_ci95), best.p, best.family)}."
    )


def show(summary: WorstSummary, folder: str, console: Console) -> None:
    """Print the path, and the worst of all combinations.

    Args:
        summary: of a run.
        folder: where the run is.
        console: a terminal, or a file that gets plain text.
    """
    name = f"Worst case of {summary.suite} for {summary.model}, {run_on(summary)}"
    console.print(screen(path(summary, name)), highlight=False)
    console.print(_of_all(summary), markup=False, highlight=False)
    skipped = f"up to {summary.skipped} {summary.sample_unit}s were skipped in a step"
    left_out = [f"{option}: {why}" for option, why in summary.left_out.items()]
    terminal.end(
        [*left_out, *[skipped] * bool(summary.skipped), *summary.warnings], folder, console
    )


@part(order=20)
def sections(run: Run[WorstSummary]) -> Section:
    """Show how the worst case builds up."""
    summary = run.summary
    return Section(
        "path",
        f"The way down: {title(summary.task, summary.metric)} with one option more at each step",
        "Which options together cost most?",
        [_of_all(summary)],
        notes=[
            *(f"{name}: {why}" for name, why in summary.left_out.items()),
            *(
                line
                for early in summary.early or ()
                for line in dropped(early, summary.sample_unit)
            ),
        ],
        tables=[path(summary, "The path")],
    )
