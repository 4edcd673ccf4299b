"""The tables of a robustness run, for the screen and the page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

from simulator.report.table import Cell, Column, Table
from simulator.report.words import ends, moved, points, run_on, share, title, turned
from simulator.results.robustness import (
    AgainstModel,
    Attacks,
    RobustnessSummary,
    Sequences,
    SystemNoise,
)
from simulator.results.suites import AdjustedEffect
from simulator.robustness.rows import Row, clean, differences, rows_of, value
from simulator.typed import ResultModel, Unit

Line = Sequence[Cell]
STACK, CONDITION = Column("stack"), Column("condition")
DIFFERENCE = {
    "stack": STACK, "condition": CONDITION, "interaction": Column("points", Unit.POINTS),
    "interaction_ends": Column("95 % interval"), "beyond": Column("beyond chance"),
}  # fmt: skip
"""Columns of how much more a condition does to a stack."""


def chosen(rows: Iterable[Row], columns: Mapping[str, Column], title: str) -> Table:
    """Return some figures of some rows as columns."""
    cells = [[row.get(name) for name in columns] for row in rows]
    return Table(list(columns.values()), cells, title)


def pivot(
    rows: Iterable[Row],
    figure: str,
    title: str,
    first: str = "condition",
    unit: Unit = Unit.SHARE,
    above: Sequence[Line] = (),
    below: Sequence[Line] = (),
) -> Table:
    """Return one figure with conditions as rows and stacks as columns, category by category.

    Args:
        rows: those without the figure are left out.
        figure: its name.
        title: of the table.
        first: what a row is.
        unit: of the figure.
        above: rows before them: the clean figure.
        below: rows behind them: means.
    """
    found: dict[tuple[Cell, Cell], dict[Cell, Cell]] = {}
    for row in rows:
        if figure in row:
            key = row.get("category", ""), row["condition"]
            found.setdefault(key, {})[row["stack"]] = row[figure]
    sides = list(dict.fromkeys(side for by in found.values() for side in by))
    lines: list[Line] = [[name, *map(by.get, sides)] for (_, name), by in found.items()]
    begin = [at for at, (one, other) in enumerate(pairwise(found), 1) if one[0] != other[0]]
    breaks = frozenset(len(above) + at - 1 for at in (0, *begin, len(lines)))
    columns = [Column(first), *(Column(f"{side}", unit) for side in sides)]
    return Table(columns, [*above, *lines, *below], title, breaks=breaks)


def conditions(summary: RobustnessSummary) -> Table:
    """Return NR of each condition, and the means."""
    metric = title(summary.task, summary.metric)
    ce, relative = ("mCD", "mrCD") if summary.metric == "mIoU" else ("mCE", "relative mCE")
    means = {"mean": "mNR", "mNCI": "mNCI", ce: "mCE", relative: "relative_mCE"}
    return pivot(
        rows_of(summary),
        "NR",
        f"{summary.suite}: {metric} in %, mean over severities; {run_on(summary)}",
        above=[["clean", *(clean(summary, side) for side in summary.stacks)]],
        below=[_across(summary.stacks, field, name) for name, field in means.items()],
    )


def more(
    found: RobustnessSummary | AgainstModel | Sequences, heading: str, first: str = "condition"
) -> Table:
    """Return how much more each condition does to the stacks; of one stack with its interval."""
    rows = differences(found)
    table = pivot(rows, "marked", heading, first)
    if len(found.interaction) > 1:
        return table
    lines = [[*line, row["interaction_ends"]] for line, row in zip(table.rows, rows, strict=True)]
    columns = [*table.columns, Column("95 % interval", Unit.POINTS)]
    return Table(columns, lines, heading, breaks=table.breaks)


def attacks(summary: RobustnessSummary, found: Attacks) -> Table:
    """Return what each budget leaves: of the attacked model itself, and of each stack."""
    first, *_ = stacks = list(found.stacks.values())
    below: list[Line] = [
        [f"{name} unattacked", "", *(value(stack.unattacked[name]) for stack in stacks)]
        for name in first.unattacked
    ]
    below += [
        [f"WCAR {name} {at}", "", *(value(stack.wcar[name][at]) for stack in stacks)]
        for name, budgets in first.wcar.items()
        for at in budgets
    ]
    own = {
        level.text: f"{100 * model.exact[at]:.1f} > {100 * model.rounded[at]:.1f}"
        for name, model in found.model.items()
        for at, level in enumerate(summary.rows[name].levels)
    }
    heading = "Under attack, right in % for each budget; model: in float > after rounding"
    table = pivot(rows_of(summary), "AR", heading)
    lines: list[Line] = [[name, own.get(f"{name}", ""), *cells] for name, *cells in table.rows]
    columns = [table.columns[0], Column("model", Unit.SHARE), *table.columns[1:]]
    return Table(columns, [*lines, *below], heading, breaks=frozenset({len(lines) - 1}))


def flips(summary: RobustnessSummary, found: Sequences) -> list[Table]:
    """Return how often answers flip, how far lists of classes move, and how much more they flip."""
    rows = [row for row in rows_of(summary) if row["category"] == "sequence"]
    below = [_across(found.stacks, name) for name in ("mFP", "mFR")]
    run = ""
    if not summary.rows:
        run = f"; {run_on(summary)}"
        metric = f"clean {title(summary.task, summary.metric)}"
        below.append([metric, *(clean(summary, side) for side in found.stacks)])
    heading = f"{summary.suite}: answers that flip from frame to frame, in %{run}"
    tables = [pivot(rows, "FP", heading, "sequence", below=below)]
    if any(stack.mut5d for stack in found.stacks.values()):
        percent = [100 * one.mt5d.value if one.mt5d else None for one in found.stacks.values()]
        tables.append(pivot(
            rows, "uT5D", "uT5D: how far the five best classes move (0: none, 15: all go)",
            "sequence", Unit.NUMBER,
            below=[_across(found.stacks, "muT5D"), ["mT5D, %", *percent]],
        ))  # fmt: skip
    if found.interaction:
        than = f"Points of answers that flip more than {next(iter(found.stacks))}'s"
        tables.append(more(found, f"{than} (positive: more)", "sequence"))
    return tables


def noise(summary: RobustnessSummary, found: SystemNoise) -> Table:
    """Return SR of each option, then RobustMQ's figures over all options."""
    metric = title(summary.task, summary.metric)
    heading = f"System noise ({found.suite}): {metric} in %, clean"
    names = {"mean SR": "mean_SR", "SNI": "SNI", "std": "std"}
    below = [_across(found.stacks, field, name) for name, field in names.items()]
    return pivot(rows_of(summary), "SR", heading, "option", below=below)


def _across(stacks: Mapping[str, ResultModel], field: str, name: str = "") -> Line:
    """A row with one figure of each stack."""
    return [name or field, *(value(stack[field]) for stack in stacks.values())]


def cells(summary: RobustnessSummary) -> Table:
    """Return a row for each stack and condition of a run that dropped some: there are no means."""
    metric = title(summary.task, summary.metric)
    head = ("change, points", "95 % interval", "flips", "flip rate", "n")
    rows = [
        [
            name, cell[summary.metric], moved(cell.drop), ends(turned(cell.drop_ci95)),
            f"{cell.flips:,} of {cell.units:,}", share(cell.flip_rate, 2), cell.samples,
        ]
        for name, cell in summary.cells.items()
    ]  # fmt: skip
    figures = [Column(f"{metric} %", Unit.SHARE), *(Column(one, Unit.COUNT) for one in head)]
    than = f"against {next(iter(summary.stacks))} under the same condition"
    return Table([Column("cell"), *figures], rows, f"{summary.suite}: {than}; {run_on(summary)}")


def losses(summary: RobustnessSummary) -> Table:
    """Return what each kind of noise leaves and takes, each stack beside the first one."""
    columns = [
        STACK, Column("noise"), Column("left, %", Unit.SHARE), Column("more left, points"),
        Column("p", Unit.PROBABILITY), Column("lost, %", Unit.SHARE),
        Column("more lost, points"), Column("p", Unit.PROBABILITY),
    ]  # fmt: skip
    rows: list[Line] = []
    for side, by in summary.losses.items():
        for kind, one in by.items():
            line: list[Cell] = [side, kind.replace("_", " ")]
            for own, than in ((one.left, one.more_left), (one.lost, one.more_lost)):
                line += [value(own), difference(than), than.p_holm if than else None]
            rows.append(line)
    return Table(columns, rows, "What each kind of noise leaves, and the share that it takes")


def difference(one: AdjustedEffect | None) -> str | None:
    """Return an effect in points with its interval."""
    return f"{points(one)} ({ends(one.ci95)})" if one else None
