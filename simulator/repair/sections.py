"""What is shown of a repair, on screen and page: loss against latency, finalists, changes."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape

from simulator.report import charts, repairs
from simulator.report.charts import Trace
from simulator.report.colors import BAD, EVEN, GOOD, STACKS
from simulator.report.reading import Run
from simulator.report.sections.section import Panel, Section, Table, part
from simulator.report.sections.style import dots, figure
from simulator.report.table import screen
from simulator.report.words import dropped, run_on, share
from simulator.results.repair import Finalist, RepairSummary, Tried
from simulator.results.suites import Early


@part(order=35)
def pareto(run: Run[RepairSummary]) -> Section:
    """Show every stack of the last round: flips against milliseconds, and Pareto's front.

    Stacks that have figures of their own samples are no points of one figure: these are a table.
    """
    summary = run.summary
    if summary.early:
        return _raced(summary, summary.early)
    beaten, front = [tried for tried in summary.tried if not tried.front], repairs.front(summary)
    traces = [
        _dots("beaten", beaten, EVEN, "circle-open"),
        _dots("Pareto's front", front, STACKS[0][0], "circle", "lines+markers"),
    ]
    for word, color, symbol, passes in (
        ("confirmed: passes", GOOD, "triangle-up", True),
        ("confirmed: fails", BAD, "triangle-down", False),
    ):
        some = [finalist for finalist in summary.finalists if finalist.confirmed.passes is passes]
        if some:
            traces.append(_dots(word, some, color, symbol))
    drawn = figure(traces, 460, "milliseconds more than the deployment as it is", "answers changed")
    drawn.update_yaxes(tickformat=charts.SHARE, rangemode="tozero")
    rows = [[tried.name, repairs.price(tried.cost), share(tried.flip_rate, 2)] for tried in front]
    return Section(
        "pareto",
        "Repairs: answers changed against latency",
        "What does each repair cost, and what does it give?",
        repairs.how(summary),
        [Panel(drawn)],
        [f"{name}: {why}" for name, why in list(summary.left_out.items())[:20]],
        tables=[Table(["stack", "cost", "flips, search half"], rows, "Pareto's front", 2)],
    )


@part(order=36)
def changes(run: Run[RepairSummary]) -> Section:
    """Show the finalists, what each change of the answer gives, and the change itself."""
    summary = run.summary
    title = "What is left" if summary.early else "Finalists, on unseen samples"
    made = [repairs.finalists(summary, title)]
    made.append(repairs.changed(summary, "What each change gives back, points"))
    if summary.changes:
        made.append(repairs.difference(summary, "The change"))
    tables = [table for table in made if table.rows]
    return Section(
        "repair",
        "The repair: what to change",
        "Which stack passes, and what does each change give?",
        [
            *(
                ["alone: in the deployment as it is; last: where all other changes are made."]
                if summary.changes
                else []
            ),
            *repairs.work(summary),
        ],
        tables=tables,
    )


def _raced(summary: RepairSummary, early: Early) -> Section:
    """Every stack of a run that dropped them: when, and why."""
    why = {dropped.option: dropped.why for dropped in early.dropped}
    rows = [
        [
            tried.name, repairs.price(tried.cost), f"{tried.samples:,}", share(tried.flip_rate, 2),
            why.get(tried.name, "not decided"),
        ]
        for tried in summary.tried
    ]  # fmt: skip
    return Section(
        "stacks",
        "Every stack, the cheapest first",
        "Which stack passes, which does not, and after how many samples was that certain?",
        repairs.how(summary),
        notes=[
            "n: samples that a stack ran on; a flip rate is of these, and no two of different n "
            "are to be compared.",
            *(f"{name}: {why}" for name, why in list(summary.left_out.items())[:20]),
        ],
        tables=[Table(("stack", "cost", "n", "flips", "verdict"), rows, "Every stack", 2)],
    )


def _dots(
    name: str, some: Sequence[Tried], color: str, symbol: str, mode: str = "markers"
) -> Trace:
    """Points of stacks: as the search saw them, or finalists as they were confirmed."""
    points = {
        one.name: (
            one.cost.ms,
            one.confirmed.flips.rate if isinstance(one, Finalist) else one.flip_rate,
        )
        for one in some
    }
    return dots(name, points, color, symbol, "%{x:+.1f} ms, %{y:.2%}", mode)


TOLD = 24
"""Dropped stacks that are told one by one."""


def show(summary: RepairSummary, folder: str, console: Console) -> None:
    """Print the answer."""
    title = (
        "What is left, the cheapest first; each of its own samples, n"
        if summary.early
        else f"Finalists, the cheapest first; {run_on(summary)} to confirm"
    )
    tables = [repairs.finalists(summary, title)]
    title = "What each change gives back, points (share: fair, they add up)"
    tables.append(repairs.changed(summary, title))
    if summary.changes:
        tables.append(repairs.difference(summary, f"The change of {summary.deploy.profile}"))
    for table in tables:
        if table.rows:
            console.print(screen(table), highlight=False)
    out = dropped(summary.early, summary.sample_unit)
    rest = [f"and {len(out) - TOLD:,} more, in the report"] if len(out) > TOLD else []
    for line in [*repairs.work(summary), *repairs.how(summary), *out[:TOLD], *rest]:
        console.print(escape(line), highlight=False)
    if summary.left_out:
        name, why = next(iter(summary.left_out.items()))
        more = f"{len(summary.left_out):,} changes cannot run here, such as {name}: {why}"
        console.print(f"[yellow]note[/] {escape(more)}", highlight=False)
    for warning in summary.warnings:
        console.print(f"[yellow]note[/] {escape(str(warning))}", highlight=False)
    inside = f"in it: {summary.profile}, the answer as a profile; options.yaml, the document"
    console.print(f"run: {folder}\n{inside}", soft_wrap=True, markup=False, highlight=False)
