"""The tables of robustness papers: a row per model and stack, a column per condition."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Mapping, Sequence

from simulator.report import cells
from simulator.results.robustness import Figure, RobustnessSummary
from simulator.results.suites import AdjustedEffect
from simulator.robustness import robustmq
from simulator.robustness.words import NC, NOTHING
from simulator.robustness.words import cells as cells_of

_MEANS = ("mFP", "mFR", "muT5D", "mT5D")
Rows = Callable[[Sequence[RobustnessSummary]], Iterator[list[str]]]
AsCsv = Callable[[Sequence[RobustnessSummary]], str]
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
    if any(summary.early for summary in summaries):
        return _cells(summaries, form)
    rows, as_csv = TABLES[table]
    return as_csv(summaries) if form == "csv" else FORMS[form](list(rows(summaries)))


def _cells(summaries: Sequence[RobustnessSummary], form: str) -> str:
    """A row for each stack and condition of runs that dropped some: there are no means."""
    rows = [["model", *cells_of(summaries[0])[0]]]
    rows += [[one.model, *row] for one in summaries for row in cells_of(one)[1:]]
    if form != "csv":
        return FORMS[form](rows)
    out = io.StringIO()
    plain = ([cells.spreadsheet(cell) for cell in row] for row in rows)
    csv.writer(out, lineterminator="\n").writerows(plain)
    return out.getvalue()


def markdown(rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table; the first row has the titles."""
    titles, *lines = rows
    whole = [titles, ["---"] * len(titles), *lines]
    return "".join(f"| {' | '.join(map(cells.markdown, row))} |\n" for row in whole)


def latex(rows: Sequence[Sequence[str]]) -> str:
    """Return a LaTeX tabular; the first row has the titles."""
    titles, *lines = (" & ".join(map(cells.latex, row)) + r" \\" for row in rows)
    body = "\n".join([titles, r"\hline", *lines])
    return f"\\begin{{tabular}}{{ll{'r' * (len(rows[0]) - 2)}}}\n{body}\n\\end{{tabular}}\n"


def as_csv(summaries: Sequence[RobustnessSummary]) -> str:
    """Return a row per model, stack and condition, with every figure.

    WCAR has a row for each budget of a category of attacks, and system noise one for each option.
    """
    out = io.StringIO()
    writer = csv.DictWriter(out, COLUMNS, restval=None, lineterminator="\n")
    writer.writeheader()
    for summary in summaries:
        for side in summary.stacks:
            common = {
                "model": cells.spreadsheet(summary.model),
                "stack": cells.spreadsheet(side),
                "clean": _clean(summary, side),
            }
            for row in _every(summary, side):
                row["condition"] = cells.spreadsheet(str(row["condition"]))
                writer.writerow(common | row)
    return out.getvalue()


def _every(summary: RobustnessSummary, side: str) -> Iterator[dict[str, object]]:
    """The rows of a stack: conditions, sequences, WCAR, system noise."""
    stack = summary.stacks[side]
    for name, row in summary.rows.items():
        yield {
            "category": cells.spreadsheet(row.category), "condition": name,
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


def _more(own: AdjustedEffect | None) -> dict[str, object]:
    """How much more a condition does to a stack than to the first one."""
    if own is None:
        return {}
    return {**_ends("interaction", own), "p_holm": own.p_holm}


def _ends(name: str, one: Figure | AdjustedEffect | None) -> dict[str, object]:
    if one is None:
        return {}
    low, high = one.ci95
    return {name: one.value, f"{name}_low": low, f"{name}_high": high}


def _rows(summaries: Sequence[RobustnessSummary]) -> Iterator[list[str]]:
    """The metric in %, means over severities, as RobustMQ's and Kamann's tables have it.

    Then the share of answers in % that flip from frame to frame of each sequence, and how far the
    five best classes move, 0 to 15.
    """
    names, sequences = list(summaries[0].rows), summaries[0].sequences
    mce = "mCD" if summaries[0].metric == "mIoU" else "mCE"
    averages = ["mNR", "mNCI", mce, f"relative {mce}"] if names else []
    flips = [*(f"FP {name}" for name in sequences.rows), *_MEANS] if sequences else []
    worst = _worst(summaries[0])
    yield ["model", "stack", "clean", *names, *averages, *flips, *worst]
    for summary in summaries:
        for side, stack in summary.stacks.items():
            means = (stack.mnr, stack.mnci, stack.mce, stack.relative_mce) if names else ()
            found = [*(stack.nr[name] for name in names), *means]
            row = [*map(_percent, found)]
            if summary.sequences:
                own = summary.sequences.stacks[side]
                row += [*map(_percent, (*own.fp.values(), own.mfp, own.mfr))]
                row += [_number(own.mut5d), _percent(own.mt5d)]
            if summary.attacks is not None:
                row += [
                    _percent(one)
                    for by in summary.attacks.stacks[side].wcar.values()
                    for one in by.values()
                ]
            yield [summary.model, side, _shown(summary, side), *row]


def _worst(summary: RobustnessSummary) -> list[str]:
    """The titles of WCAR, one for each budget of each category of attacks."""
    if summary.attacks is None:
        return []
    by = next(iter(summary.attacks.stacks.values())).wcar
    return [f"WCAR {name} {at}" for name, budgets in by.items() for at in budgets]


def _shown(summary: RobustnessSummary, side: str) -> str:
    return NC if side in summary.nc else _percent(summary.stacks[side].clean)


def _clean(summary: RobustnessSummary, side: str) -> object:
    return NC if side in summary.nc else summary.stacks[side].clean.value


def _percent(figure: Figure | None) -> str:
    return NOTHING if figure is None else f"{100 * figure.value:.2f}"


def _number(figure: Figure | None) -> str:
    return NOTHING if figure is None else f"{figure.value:.2f}"


def _value(figure: Figure | None) -> float | None:
    return None if figure is None else figure.value


FORMS: Mapping[str, Callable[[Sequence[Sequence[str]]], str]] = {
    "markdown": markdown, "latex": latex,
}  # fmt: skip
TABLES: Mapping[str, tuple[Rows, AsCsv]] = {
    "conditions": (_rows, as_csv), "robustmq": (robustmq.rows, robustmq.as_csv),
}  # fmt: skip
"""By the name of the table: its rows, and its CSV."""
