"""The tables of a robustness run, for the screen, the page and documents."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import pairwise

from simulator.report.table import FORMS, Cell, Column, Table
from simulator.report.words import ends, moved, run_on, share, title, turned
from simulator.results.robustness import (
    AgainstModel,
    Attacks,
    Figure,
    RobustnessSummary,
    Sequences,
    SystemNoise,
)
from simulator.robustness import robustmq
from simulator.robustness.robustmq import Path, figure, spread, worst_cases
from simulator.robustness.rows import KINDS, Row, clean, differences, rows_of, value
from simulator.typed import ResultModel, Unit

Line = Sequence[Cell]
CSV = (
    "model", "stack", "category", "condition", "clean", "levels", *KINDS,
    *(f"{name}{end}" for name in ("NR", "CE", "relative_CE", "interaction", "against")
      for end in ("_low", "_high")),
    "interaction", "p_holm", "against", "against_p_holm",
    *(f"{name}{end}" for name in ("AR", "AAI", "FP", "WCAR", "SR")
      for end in ("", "_low", "_high")),
    "FR", "uT5D", "T5D",
)  # fmt: skip
"""Of the CSV; a cell is empty where a row has no such figure."""
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


def printed(summaries: Sequence[RobustnessSummary], form: str, table: str) -> str:
    """Return a table of the papers.

    Args:
        summaries: one for each model, of one suite.
        form: ``markdown``, ``latex`` or ``csv``, which has every figure.
        table: ``conditions``, ``categories``, ``robustmq`` or ``bits``.
    """
    if any(summary.early for summary in summaries):
        made = [cells(one) for one in summaries]
        rows: list[Line] = [
            [summary.model, *row]
            for summary, one in zip(summaries, made, strict=True)
            for row in one.rows
        ]
        return FORMS[form](Table([Column("model"), *made[0].columns], rows))
    wide = form == "csv"
    made_by = {
        "robustmq": robustmq.with_ends if wide else robustmq.table,
        "bits": robustmq.by_bits,
        "categories": partial(categories, wide=wide),
        "conditions": _every_row if wide else _papers,
    }
    return FORMS[form](made_by[table](summaries))


def categories(summaries: Sequence[RobustnessSummary], wide: bool = False) -> Table:
    """Return CE by category of conditions, as Table 3 of Kamann and Rother has CD.

    Args:
        summaries: one for each model; a column for each of its stacks.
        wide: whether ends of intervals have columns of their own, as other programs want them.
    """
    ce = "CD" if summaries[0].metric == "mIoU" else "CE"
    several = len(summaries) > 1
    arms = [(one, side) for one in summaries for side in one.stacks]
    rows: list[Line] = []
    for kind, mean, name in (
        ("category_CE", "mCE", ce), ("category_relative_CE", "relative_mCE", f"r{ce}"),
    ):  # fmt: skip
        for category in summaries[0].stacks[arms[0][1]][kind]:
            found = [one.stacks[side][kind][category] for one, side in arms]
            rows.append([f"{name} {category}", *_spread(found, wide)])
        rows.append([f"m{name}", *_spread([one.stacks[side][mean] for one, side in arms], wide)])
    columns = [Column("category")]
    for one, side in arms:
        head = f"{one.model}, {side}" if several else side
        ends = ("", " low", " high") if wide else ("",)
        columns += [Column(f"{head}{end}", Unit.RATIO) for end in ends]
    return Table(columns, rows)


def _spread(found: Iterable[Figure | None], wide: bool) -> Iterator[Cell]:
    for one in found:
        if wide:
            yield from (one.value, *one.ci95) if one else (None,) * 3
        else:
            yield one and spread(one)


def _every_row(summaries: Sequence[RobustnessSummary]) -> Table:
    rows = (row for summary in summaries for row in rows_of(summary))
    return chosen(rows, {name: Column(name) for name in CSV}, "")


def _papers(summaries: Sequence[RobustnessSummary]) -> Table:
    """The metric in %, means over severities, as RobustMQ's and Kamann's tables have it.

    Then the share of answers in % that flip from frame to frame of each sequence, and how far the
    five best classes move, 0 to 15.
    """
    first = summaries[0]
    mce = "mCD" if first.metric == "mIoU" else "mCE"
    found: dict[str, Path] = {name: ("", "NR", name) for name in first.rows}
    if first.rows:
        found |= {"mNR": ("", "mNR"), "mNCI": ("", "mNCI"), mce: ("", "mCE"),
                  f"relative {mce}": ("", "relative_mCE")}  # fmt: skip
    if first.sequences:
        found |= {f"FP {name}": ("sequences", "FP", name) for name in first.sequences.rows}
        found |= {name: ("sequences", name) for name in ("mFP", "mFR", "muT5D", "mT5D")}
    found |= worst_cases(first, "WCAR {} {}")
    if first.attacks:
        found |= {f"AAI {name}": ("attacks", "mean_AAI", name)
                  for name in next(iter(first.attacks.stacks.values())).ar}  # fmt: skip
    if first.system_noise:
        options = dict.fromkeys(
            name
            for one in summaries if one.system_noise
            for stack in one.system_noise.stacks.values() for name in stack.sr
        )  # fmt: skip
        found |= {f"SR {name}": ("system_noise", "SR", name) for name in options}
        found |= robustmq.NOISE
    rows = [
        [summary.model, side, clean(summary, side),
         *(value(figure(summary, side, path)) for path in found.values())]
        for summary in summaries
        for side in summary.stacks
    ]  # fmt: skip
    units = {name: Unit.NUMBER if name == "muT5D" else Unit.SHARE for name in ("clean", *found)}
    columns = [Column("model"), STACK, *(Column(name, unit) for name, unit in units.items())]
    return Table(columns, rows)
