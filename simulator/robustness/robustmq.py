"""The table of RobustMQ: a row for each model, method and bit-width, its four parts as columns."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from statistics import fmean
from typing import Any

from simulator.report.table import NOTHING, Cell, Column, Table
from simulator.results.robustness import Figure, RobustnessSummary
from simulator.robustness.rows import NC, clean, value
from simulator.typed import Unit

Path = tuple[str, ...]
"""Where a figure of a stack is: the part of a summary, empty for the summary itself, and names."""
NOISE: Mapping[str, Path] = {
    "SR": ("system_noise", "mean_SR"), "SNI": ("system_noise", "SNI"),
    "std": ("system_noise", "std"),
}  # fmt: skip
"""Where the figures over all options of system noise are."""
FULL = 32
"""Bits of a stack in floating point."""


def figure(summary: RobustnessSummary, side: str, path: Path) -> Figure | None:
    """Return a figure of a stack; None where the run has no such part."""
    part, *names = path
    found: Any = summary[part] if part else summary
    if found is None:
        return None
    found = found["stacks"][side]
    for name in names:
        found = found.get(name) if isinstance(found, Mapping) else found[name]
    assert found is None or isinstance(found, Figure)
    return found


def spread(one: Figure) -> str:
    """Return a figure in % with its interval in brackets."""
    low, high = (NOTHING if end is None else f"{100 * end:.1f}" for end in one.ci95)
    return f"{100 * one.value:.1f} ({low} to {high})"


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


def table(summaries: Sequence[RobustnessSummary], wide: bool = False) -> Table:
    """Return the table, in %.

    AR and AAI are of the mean over the budgets of an attack, WCAR one for each budget. Of several
    models a row follows with the mean for each method and bit-width; a model that did not converge
    is not in it.

    Args:
        summaries: one for each model, of one suite.
        wide: as fractions, each with the ends of its 95 % interval.
    """
    if wide:
        return _with_ends(summaries)
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


def _with_ends(summaries: Sequence[RobustnessSummary]) -> Table:
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
        for name in stack.ar:
            found |= {f"AR {name}": ("", "NR", name), f"AAI {name}": ("attacks", "mean_AAI", name)}
        found |= worst_cases(first, "WCAR {} {}" if len(stack.wcar) > 1 else "WCAR {1}")
    if any(row.in_means for row in first.rows.values()):
        found |= {"mNR": ("", "mNR"), "mNCI": ("", "mNCI")}
    if first.sequences is not None:
        found["mFP"] = ("sequences", "mFP")
    if first.system_noise is not None:
        found |= NOISE
    return found


def by_bits(summaries: Sequence[RobustnessSummary], wide: bool = False) -> Table:
    """Return each figure with a column for each bit-width, as RobustMQ's Tables 1 to 5, 7 and 9.

    The stack in FP32 stands in the row of every method.

    Args:
        summaries: one for each model, of one suite.
        wide: the same, as other programs want it.
    """
    bits = sorted({stack.bits for one in summaries for stack in one.stacks.values()})
    rows: list[Sequence[Cell]] = []
    for summary in summaries:
        of = methods(summary)
        for name, path in _every(summary).items():
            rows += [
                [summary.model, method, name, *(_cell(summary, by.get(one), path) for one in bits)]
                for method, by in of.items()
            ]
    head = [Column(name) for name in ("model", "method", "figure")]
    return Table([*head, *(Column(f"{one} bits", Unit.SHARE) for one in bits)], rows)


def methods(summary: RobustnessSummary, without: Collection[str] = ()) -> dict[str, dict[int, str]]:
    """Return the stacks by method and bit-width: the first of 32 bits in every method, or alone."""
    known = {side: stack for side, stack in summary.stacks.items() if side not in without}
    full = next((side for side, stack in known.items() if stack.bits == FULL), None)
    always: dict[int, str] = {} if full is None else {FULL: full}
    found: dict[str, dict[int, str]] = {}
    for side, stack in known.items():
        if stack.bits != FULL:
            found.setdefault(stack.method, dict(always))[stack.bits] = side
    return found or ({} if full is None else {known[full].method: always})


def _cell(summary: RobustnessSummary, side: str | None, path: Path) -> Cell:
    if side is None or side in summary.nc:
        return None if side is None else NC
    return value(figure(summary, side, path))


def _every(summary: RobustnessSummary) -> dict[str, Path]:
    """Where each figure is, those of every budget of an attack among them."""
    found: dict[str, Path] = {"clean": ("", "clean")}
    if summary.attacks is not None:
        stack = next(iter(summary.attacks.stacks.values()))
        found |= worst_cases(summary, "WCAR {} {}")
        for name, budgets in stack.ar.items():
            for at in budgets:
                found |= {f"{kind} {name} {at}": ("attacks", kind, name, at)
                          for kind in ("AR", "AAI")}  # fmt: skip
    later = {"mNR", "mNCI", "mFP", *NOISE}
    return found | {name: path for name, path in _columns(summary).items() if name in later}


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
