"""The table of RobustMQ: a row for each model, method and bit-width, its four parts as columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import fmean

from simulator.report.table import Cell, Column, Table
from simulator.results.robustness import Figure, RobustnessSummary
from simulator.robustness.words import NC
from simulator.typed import Unit

Get = Callable[[RobustnessSummary, str], Figure | None]


def table(summaries: Sequence[RobustnessSummary]) -> Table:
    """Return the table, in %.

    AR is the mean over the budgets of an attack, WCAR one for each budget. Of several models a row
    follows with the mean for each method and bit-width; a model that did not converge is not in it.

    Args:
        summaries: one for each model, of one suite.
    """
    columns = _columns(summaries)
    rows: list[Sequence[Cell]] = [
        [
            summary.model, stack.method, stack.bits,
            *(_cell(summary, side, name, get) for name, get in columns.items()),
        ]
        for summary in summaries
        for side, stack in summary.stacks.items()
    ]  # fmt: skip
    if len(summaries) > 1:
        rows += _means(summaries, columns)
    head = [Column("model"), Column("method"), Column("bits", Unit.COUNT)]
    return Table([*head, *(Column(name, Unit.SHARE) for name in columns)], rows)


def with_ends(summaries: Sequence[RobustnessSummary]) -> Table:
    """Return the table with each figure's 95 % interval, as fractions."""
    columns = _columns(summaries)
    ends = [f"{name}{end}" for name in columns for end in ("", "_low", "_high")]
    rows: list[Sequence[Cell]] = []
    for summary in summaries:
        for side, stack in summary.stacks.items():
            found = [None if side in summary.nc else get(summary, side) for get in columns.values()]
            rows.append([
                summary.model, side, stack.method, stack.bits, summary.nc.get(side, ""),
                *(end for one in found for end in _ends(one)),
            ])  # fmt: skip
    return Table([*map(Column, ("model", "stack", "method", "bits", "nc", *ends))], rows)


def _columns(summaries: Sequence[RobustnessSummary]) -> dict[str, Get]:
    """How to find the figure of each column; parts that the suite does not have are left out."""
    first = summaries[0]
    found: dict[str, Get] = {"clean": lambda summary, side: summary.stacks[side].clean}
    if first.attacks is not None:
        stack = next(iter(first.attacks.stacks.values()))
        found |= {f"AR {name}": _nr(name) for name in stack.ar}
        several = len(stack.wcar) > 1
        for category, budgets in stack.wcar.items():
            of = f"WCAR {category}" if several else "WCAR"
            found |= {f"{of} {budget}": _wcar(category, budget) for budget in budgets}
    if any(row.in_means for row in first.rows.values()):
        found["mNR"] = lambda summary, side: summary.stacks[side].mnr
        found["mNCI"] = lambda summary, side: summary.stacks[side].mnci
    if first.sequences is not None:
        found["mFP"] = _mfp
    if first.system_noise is not None:
        for title, field in (("SR", "mean_SR"), ("SNI", "SNI"), ("std", "std")):
            found[title] = _noise(field)
    return found


def _nr(name: str) -> Get:
    return lambda summary, side: summary.stacks[side].nr[name]


def _wcar(category: str, budget: str) -> Get:
    def get(summary: RobustnessSummary, side: str) -> Figure | None:
        attacks = summary.attacks
        return None if attacks is None else attacks.stacks[side].wcar[category][budget]

    return get


def _mfp(summary: RobustnessSummary, side: str) -> Figure | None:
    return None if summary.sequences is None else summary.sequences.stacks[side].mfp


def _noise(field: str) -> Get:
    def get(summary: RobustnessSummary, side: str) -> Figure | None:
        noise = summary.system_noise
        found: Figure | None = None if noise is None else noise.stacks[side][field]
        return found

    return get


def _cell(summary: RobustnessSummary, side: str, name: str, get: Get) -> Cell:
    if side in summary.nc:
        return NC if name == "clean" else None
    return one.value if (one := get(summary, side)) else None


def _means(
    summaries: Sequence[RobustnessSummary], columns: Mapping[str, Get]
) -> Iterator[Sequence[Cell]]:
    groups: dict[tuple[str, int], list[tuple[RobustnessSummary, str]]] = {}
    for summary in summaries:
        for side, stack in summary.stacks.items():
            own = groups.setdefault((stack.method, stack.bits), [])
            if side not in summary.nc:
                own.append((summary, side))
    for (method, bits), members in groups.items():
        if len(members) < 2:
            continue
        found = [[one.value for arm in members if (one := get(*arm))] for get in columns.values()]
        yield [
            f"mean of {len(members)}", method, bits,
            *(fmean(one) if len(one) == len(members) else None for one in found),
        ]  # fmt: skip


def _ends(one: Figure | None) -> list[float | None]:
    return [None] * 3 if one is None else [one.value, *one.ci95]
