"""The tables of the papers: all models of a run, for documents and other programs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from simulator.report.table import Cell, Column, Table
from simulator.results.robustness import Figure, RobustnessSummary
from simulator.robustness import robustmq, tables
from simulator.robustness.figures import KINDS
from simulator.robustness.robustmq import Path, figure, spread, worst_cases
from simulator.robustness.rows import clean, rows_of, value
from simulator.robustness.tables import STACK, Line, cells, chosen
from simulator.typed import Unit

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


def categories(summaries: Sequence[RobustnessSummary], wide: bool = False) -> Table:
    """Return CE by category of conditions, as Table 3 of Kamann and Rother has CD.

    Args:
        summaries: one for each model; a column for each of its stacks.
        wide: whether ends of intervals have columns of their own, as other programs want them.
    """
    ce = "CD" if summaries[0].metric == "mIoU" else "CE"
    alone = all(len(one.stacks) == 1 for one in summaries)
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
        head = one.model if alone else f"{one.model}, {side}" if len(summaries) > 1 else side
        ends = ("", " low", " high") if wide else ("",)
        columns += [Column(f"{head}{end}", Unit.RATIO) for end in ends]
    return Table(columns, rows)


def _spread(found: Iterable[Figure | None], wide: bool) -> Iterator[Cell]:
    for one in found:
        if wide:
            yield from (one.value, *one.ci95) if one else (None,) * 3
        else:
            yield spread(one) if one else None


def raced(summaries: Sequence[RobustnessSummary]) -> Table:
    """Return the cells that were still measured, of runs that stopped early."""
    made = [cells(one) for one in summaries]
    rows: list[Line] = [
        [one.model, *row] for one, table in zip(summaries, made, strict=True) for row in table.rows
    ]
    return Table([Column("model"), *made[0].columns], rows)


def _every_row(summaries: Sequence[RobustnessSummary]) -> Table:
    rows = (row for summary in summaries for row in rows_of(summary))
    return chosen(rows, {name: Column(name) for name in CSV}, "")


def conditions(summaries: Sequence[RobustnessSummary], wide: bool = False) -> Table:
    """Return the metric in %, means over severities, as RobustMQ's and Kamann's tables have it.

    Then the share of answers in % that flip from frame to frame of each sequence, and how far the
    five best classes move, 0 to 15.

    Args:
        summaries: one for each model, of one suite.
        wide: every figure of every condition, for other programs.
    """
    if wide:
        return _every_row(summaries)
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


def losses(summaries: Sequence[RobustnessSummary], wide: bool = False) -> Table:
    """Return what each kind of noise takes from the stacks of every model."""
    made = [tables.losses(summary) for summary in summaries]
    rows: list[Line] = [
        [summary.model, stack.method, stack.bits, *row]
        for summary, one in zip(summaries, made, strict=True)
        for row in one.rows
        for stack in [summary.stacks[str(row[0])]]
    ]
    head = [Column("model"), Column("method"), Column("bits", Unit.COUNT)]
    return Table([*head, *made[0].columns], rows)
