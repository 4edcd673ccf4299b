"""What is said of a worst case: its verdict, its screen, and its section of the page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Console

from simulator.report import charts, terminal
from simulator.report.charts import Figure
from simulator.report.colors import STACKS
from simulator.report.reading import Run
from simulator.report.sections.section import Panel, Section, part
from simulator.report.sections.style import error_bars, figure, text
from simulator.report.table import Bar, Cell, Column, Table, screen
from simulator.report.verdicts.told import Told
from simulator.report.words import chance, dropped, early_steps, moved, run_on, share, title, turned
from simulator.results.suites import PathStep, WorstSummary
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
        ["0", "the trained stack", Bar(summary.trained), 0.0, None, None, summary.samples]
    ]
    for at, (step, adds) in enumerate(_steps(summary), 1):
        samples, alone = step.samples or summary.samples, _turned(step.alone)
        lost = 0 - step.drop
        rows.append([str(at), step.added, Bar(step[summary.metric]), lost, adds, alone, samples])
    metric = title(summary.task, summary.metric)
    columns = [
        Column("step"), Column("added"), Column(f"{metric}, %", Unit.SHARE),
        Column("change, points", Unit.POINTS, 1, heat=True), Column("of this step", Unit.POINTS),
        Column("alone", Unit.POINTS), Column("n", Unit.COUNT),
    ]  # fmt: skip
    drops = [step.drop for step in summary.path]
    deepest = [drops.index(max(drops)) + 1] if drops else []
    return Table(columns, rows, name, marked=frozenset(deepest))


def _steps(summary: WorstSummary) -> Iterator[tuple[PathStep, float | None]]:
    """Yield each step and what it changes, where all steps are of the same samples."""
    before = 0.0
    for step in summary.path:
        yield step, before - step.drop if step.samples is None else None
        before = step.drop


def _turned(drop: float | None) -> float | None:
    return None if drop is None else 0 - drop


def steps(summaries: Sequence[WorstSummary], wide: bool) -> Table:
    """Return the paths of several models of one task, a row a step, as SysNoise's Figure 3."""
    rows: list[Sequence[Cell]] = []
    for summary in summaries:
        rows.append([summary.model, 0, "trained", summary.trained, *[None] * 4])
        for at, (step, adds) in enumerate(_steps(summary), 1):
            rows.append(
                [summary.model, at, step.added, step[summary.metric], 0 - step.drop,
                 turned(step.drop_ci95), adds, _turned(step.alone)]
            )  # fmt: skip
    first = summaries[0]
    columns = [
        Column("model"), Column("step", Unit.COUNT), Column("added"),
        Column(f"{title(first.task, first.metric)}, %", Unit.SHARE),
        Column("change, points", Unit.POINTS), Column("95 % interval", Unit.POINTS),
        Column("of this step", Unit.POINTS), Column("alone", Unit.POINTS),
    ]  # fmt: skip
    return Table(columns, rows, f"{first.suite}: one option more at each step")


def _drawn(summary: WorstSummary) -> Figure:
    values = [summary.trained, *(step[summary.metric] for step in summary.path)]
    ends = [[summary.trained] * 2]
    for step in summary.path:
        drops = reversed(step.drop_ci95 or [step.drop] * 2)
        ends.append([summary.trained - (step.drop if one is None else one) for one in drops])
    trace = charts.scatter(
        x=["trained", *(text(step.added) for step in summary.path)], y=values,
        mode="lines+markers", showlegend=False, line={"color": STACKS[0][0], "width": 2},
        error_y=error_bars(values, ends), hovertemplate="%{x}: %{y:.2%}<extra></extra>",
    )  # fmt: skip
    found = figure([trace], 300, "added", title(summary.task, summary.metric))
    found.update_yaxes(tickformat=charts.SHARE)
    return found


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
        [Panel(_drawn(summary))] if summary.path else [],
        notes=[
            "Of this step: what the option adds to those before it; alone: what it changes by "
            "itself. The largest of many is picked at each step, so that it looks larger than it "
            "is. Lines: 95 % intervals of the change from the trained stack.",
            *(f"{name}: {why}" for name, why in summary.left_out.items()),
            *(
                line
                for early in summary.early or ()
                for line in dropped(early, summary.sample_unit)
            ),
        ],
        tables=[path(summary, "The path")],
    )
