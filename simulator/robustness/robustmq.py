"""The table of RobustMQ: a row for each model, method and bit-width, its four parts as columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean
from typing import Any

from simulator.report.table import Cell, Column, Table
from simulator.results.robustness import Figure, RobustnessSummary
from simulator.robustness.rows import clean, value
from simulator.typed import Unit

Path = tuple[str, ...]
"""Where a figure of a stack is: the part of a summary, empty for the summary itself, and names."""


def figure(summary: RobustnessSummary, side: str, path: Path) -> Figure | None:
    """Return a figure of a stack; None where the run has no such part."""
    part, *names = path
    found: Any = summary[part] if part else summary
    if found is None:
        return None
    found = found["stacks"][side]
    for name in names:
        found = found[name]
    assert found is None or isinstance(found, Figure)
    return found


def worst_cases(summary: RobustnessSummary, form: str) -> dict[str, Path]:
    """Return where WCAR is for each category of attacks and budget, by titles of a form."""
    if summary.attacks is None:
        return {}
    first, *_ = summary.attacks.stacks.values()
    return {
        form.format(name, at): ("attacks", "WCAR", name, at)
        for name, budgets in first.wcar.items()
        for at in budgets
    }


def table(summaries: Sequence[RobustnessSummary]) -> Table:
    """Return the table, in %.

    AR is the mean over the budgets of an attack, WCAR one for each budget. Of several models a row
    follows with the mean for each method and bit-width; a model that did not converge is not in it.

    Args:
        summaries: one for each model, of one suite.
    """
    columns = _columns(summaries[0])
    rows: list[Sequence[Cell]] = [
        [
            summary.model, stack.method, stack.bits, clean(summary, side),
            *(value(figure(summary, side, path)) for path in columns.values()),
        ]
        for summary in summaries
        for side, stack in summary.stacks.items()
    ]  # fmt: skip
    if len(summaries) > 1:
        rows += _means(summaries, {"clean": ("", "clean"), **columns})
    head = [Column("model"), Column("method"), Column("bits", Unit.COUNT)]
    return Table([*head, *(Column(name, Unit.SHARE) for name in ("clean", *columns))], rows)


def with_ends(summaries: Sequence[RobustnessSummary]) -> Table:
    """Return the table with each figure's 95 % interval, as fractions."""
    columns = {"clean": ("", "clean"), **_columns(summaries[0])}
    ends = [f"{name}{end}" for name in columns for end in ("", "_low", "_high")]
    rows: list[Sequence[Cell]] = []
    for summary in summaries:
        for side, stack in summary.stacks.items():
            nc = summary.nc.get(side, "")
            found = [None if nc else figure(summary, side, path) for path in columns.values()]
            three = [(one.value, *one.ci95) if one else (None,) * 3 for one in found]
            rows.append(
                [
                    summary.model,
                    side,
                    stack.method,
                    stack.bits,
                    nc,
                    *(end for one in three for end in one),
                ]
            )
    return Table([*map(Column, ("model", "stack", "method", "bits", "nc", *ends))], rows)


def _columns(first: RobustnessSummary) -> dict[str, Path]:
    """Where the figure of each column is; parts that the suite does not have are left out."""
    found: dict[str, Path] = {}
    if first.attacks is not None:
        stack = next(iter(first.attacks.stacks.values()))
        found |= {f"AR {name}": ("", "NR", name) for name in stack.ar}
        found |= worst_cases(first, "WCAR {} {}" if len(stack.wcar) > 1 else "WCAR {1}")
    if any(row.in_means for row in first.rows.values()):
        found |= {"mNR": ("", "mNR"), "mNCI": ("", "mNCI")}
    if first.sequences is not None:
        found["mFP"] = ("sequences", "mFP")
    if first.system_noise is not None:
        names = {"SR": "mean_SR", "SNI": "SNI", "std": "std"}
        found |= {title: ("system_noise", field) for title, field in names.items()}
    return found


def _means(
    summaries: Sequence[RobustnessSummary], columns: Mapping[str, Path]
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
        found = [
            [one.value for arm in members if (one := figure(*arm, path))]
            for path in columns.values()
        ]
        yield [
            f"mean of {len(members)}", method, bits,
            *(fmean(one) if len(one) == len(members) else None for one in found),
        ]  # fmt: skip
