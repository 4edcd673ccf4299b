"""The tables of robustness papers: a row per model and stack, a column per condition."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from simulator.report.table import FORMS, Cell, Column, Table
from simulator.results.robustness import Figure, RobustnessSummary
from simulator.results.suites import AdjustedEffect
from simulator.robustness import robustmq
from simulator.robustness.words import NC
from simulator.robustness.words import cells as cells_of
from simulator.typed import Unit

_MEANS = ("mFP", "mFR", "muT5D", "mT5D")
Make = Callable[[Sequence[RobustnessSummary]], Table]
KINDS = ("NR", "NCI", "CE", "relative_CE")
COLUMNS = (
    "model", "stack", "category", "condition", "clean", "levels", *KINDS,
    *(f"{name}{end}" for name in ("interaction", "FP", "WCAR", "SR")
      for end in ("", "_low", "_high")),
    "p_holm", "FR", "uT5D", "T5D",
)  # fmt: skip
"""Of the CSV; a cell is empty where a row has no such figure."""


def printed(summaries: Sequence[RobustnessSummary], form: str, table: str) -> str:
    """Return a table of the papers.

    Args:
        summaries: one for each model, of one suite.
        form: ``markdown``, ``latex`` or ``csv``.
        table: ``conditions`` or ``robustmq``.
    """
    shown, whole = TABLES[table]
    if any(summary.early for summary in summaries):
        shown = whole = _cells
    return FORMS[form]((whole if form == "csv" else shown)(summaries))


def _cells(summaries: Sequence[RobustnessSummary]) -> Table:
    """A row for each stack and condition of runs that dropped some: there are no means."""
    first, *others = cells_of(summaries[0])[0]
    rows = [[one.model, *row] for one in summaries for row in cells_of(one)[1:]]
    columns = [Column("model"), Column(first), *(Column(name, Unit.NUMBER) for name in others)]
    return Table(columns, rows)


def _every_row(summaries: Sequence[RobustnessSummary]) -> Table:
    """A row per model, stack and condition, with every figure.

    WCAR has a row for each budget of a category of attacks, and system noise one for each option.
    """
    rows = []
    for summary in summaries:
        for side in summary.stacks:
            common = {"model": summary.model, "stack": side, "clean": _clean(summary, side)}
            for row in _every(summary, side):
                whole = common | row
                rows.append([whole.get(name) for name in COLUMNS])
    return Table([*map(Column, COLUMNS)], rows)


def _every(summary: RobustnessSummary, side: str) -> Iterator[dict[str, Cell]]:
    """The rows of a stack: conditions, sequences, WCAR, system noise."""
    stack = summary.stacks[side]
    for name, row in summary.rows.items():
        yield {
            "category": row.category, "condition": name,
            "levels": " ".join(f"{value:.6g}" for value in stack.levels[name]),
            **{kind: _value(stack[kind][name]) for kind in KINDS},
            **_more(summary.interaction.get(side, {}).get(name)),
        }  # fmt: skip
    if summary.sequences is not None:
        own = summary.sequences.stacks[side]
        for name, fp in own.fp.items():
            yield {
                "category": "sequence", "condition": name, "FR": _value(own.fr[name]),
                "uT5D": _value(own.ut5d[name]), "T5D": _value(own.t5d[name]),
                **_ends("FP", fp),
                **_more(summary.sequences.interaction.get(side, {}).get(name)),
            }  # fmt: skip
    if summary.attacks is not None:
        for category, budgets in summary.attacks.stacks[side].wcar.items():
            for budget, one in budgets.items():
                yield {"category": category, "condition": f"budget {budget}", **_ends("WCAR", one)}
    if summary.system_noise is not None:
        for name, one in summary.system_noise.stacks[side].sr.items():
            yield {"category": "system noise", "condition": name, **_ends("SR", one)}


def _more(own: AdjustedEffect | None) -> dict[str, Cell]:
    """How much more a condition does to a stack than to the first one."""
    if own is None:
        return {}
    return {**_ends("interaction", own), "p_holm": own.p_holm}


def _ends(name: str, one: Figure | AdjustedEffect | None) -> dict[str, Cell]:
    if one is None:
        return {}
    low, high = one.ci95
    return {name: one.value, f"{name}_low": low, f"{name}_high": high}


def _rows(summaries: Sequence[RobustnessSummary]) -> Table:
    """The metric in %, means over severities, as RobustMQ's and Kamann's tables have it.

    Then the share of answers in % that flip from frame to frame of each sequence, and how far the
    five best classes move, 0 to 15.
    """
    names, sequences = list(summaries[0].rows), summaries[0].sequences
    mce = "mCD" if summaries[0].metric == "mIoU" else "mCE"
    averages = ["mNR", "mNCI", mce, f"relative {mce}"] if names else []
    flips = [*(f"FP {name}" for name in sequences.rows), *_MEANS] if sequences else []
    titles = ["clean", *names, *averages, *flips, *_worst(summaries[0])]
    figures = [Column(one, Unit.NUMBER if one == "muT5D" else Unit.SHARE) for one in titles]
    return Table(
        [Column("model"), Column("stack"), *figures],
        [
            [summary.model, side, _clean(summary, side), *map(_value, _row(summary, side))]
            for summary in summaries
            for side in summary.stacks
        ],
    )


def _row(summary: RobustnessSummary, side: str) -> Iterator[Figure | None]:
    """The figures of a stack, in the order of the columns."""
    stack = summary.stacks[side]
    yield from (stack.nr[name] for name in summary.rows)
    if summary.rows:
        yield from (stack.mnr, stack.mnci, stack.mce, stack.relative_mce)
    if summary.sequences:
        own = summary.sequences.stacks[side]
        yield from (*own.fp.values(), own.mfp, own.mfr, own.mut5d, own.mt5d)
    if summary.attacks is not None:
        for by in summary.attacks.stacks[side].wcar.values():
            yield from by.values()


def _worst(summary: RobustnessSummary) -> list[str]:
    """The titles of WCAR, one for each budget of each category of attacks."""
    if summary.attacks is None:
        return []
    by = next(iter(summary.attacks.stacks.values())).wcar
    return [f"WCAR {name} {at}" for name, budgets in by.items() for at in budgets]


def _clean(summary: RobustnessSummary, side: str) -> Cell:
    return NC if side in summary.nc else summary.stacks[side].clean.value


def _value(figure: Figure | None) -> float | None:
    return None if figure is None else figure.value


TABLES: Mapping[str, tuple[Make, Make]] = {
    "conditions": (_rows, _every_row), "robustmq": (robustmq.table, robustmq.with_ends),
}  # fmt: skip
"""By the name of the table: as it is in the paper, and with every figure, for CSV."""
