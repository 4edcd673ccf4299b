"""The tables of robustness papers: a row per model and stack, a column per condition."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Mapping, Sequence

from simulator.report import cells
from simulator.results.robustness import Figure, RobustnessSummary

NOTHING = "-"
_MEANS = ("mFP", "mFR", "muT5D", "mT5D")
_OF_SEQUENCES = ("FP", "FP_low", "FP_high", "FR", "uT5D", "T5D")


def markdown(summaries: Sequence[RobustnessSummary]) -> str:
    """Return a Markdown table."""
    titles, *lines = _rows(summaries)
    rows = [titles, ["---"] * len(titles), *lines]
    return "".join(f"| {' | '.join(map(cells.markdown, row))} |\n" for row in rows)


def latex(summaries: Sequence[RobustnessSummary]) -> str:
    """Return a LaTeX tabular."""
    titles, *lines = _rows(summaries)
    rows = [" & ".join(map(cells.latex, row)) + r" \\" for row in [titles, *lines]]
    body = "\n".join([rows[0], r"\hline", *rows[1:]])
    return f"\\begin{{tabular}}{{ll{'r' * (len(titles) - 2)}}}\n{body}\n\\end{{tabular}}\n"


def as_csv(summaries: Sequence[RobustnessSummary]) -> str:
    """Return a row per model, stack and condition, with every figure."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    kinds = ("NR", "NCI", "CE", "relative_CE")
    head = ["model", "stack", "category", "condition", "clean", "levels", *kinds]
    effect = ["interaction", "interaction_low", "interaction_high", "p_holm"]
    writer.writerow([*head, *effect, *_OF_SEQUENCES])
    for summary in summaries:
        for side, stack in summary.stacks.items():
            for name, row in summary.rows.items():
                own = summary.interaction.get(side, {}).get(name)
                more = [own.value, *own.ci95, own.p_holm] if own else [None] * 4
                writer.writerow([
                    cells.spreadsheet(summary.model), cells.spreadsheet(side),
                    cells.spreadsheet(row.category), cells.spreadsheet(name), stack.clean.value,
                    " ".join(f"{value:.6g}" for value in stack.levels[name]),
                    *(_value(stack[kind][name]) for kind in kinds), *more,
                    *[None] * len(_OF_SEQUENCES),
                ])  # fmt: skip
            writer.writerows(_frames(summary, side))
    return out.getvalue()


def _frames(summary: RobustnessSummary, side: str) -> Iterator[list[object]]:
    """A row for each sequence; the figures of conditions are empty in it."""
    if summary.sequences is None:
        return
    stack = summary.sequences.stacks[side]
    for name, fp in stack.fp.items():
        own = summary.sequences.interaction.get(side, {}).get(name)
        more = [own.value, *own.ci95, own.p_holm] if own else [None] * 4
        yield [
            cells.spreadsheet(summary.model), cells.spreadsheet(side), "sequence",
            cells.spreadsheet(name), summary.stacks[side].clean.value, *[None] * 5, *more,
            fp.value, *fp.ci95, _value(stack.fr[name]), _value(stack.ut5d[name]),
            _value(stack.t5d[name]),
        ]  # fmt: skip


FORMS: Mapping[str, Callable[[Sequence[RobustnessSummary]], str]] = {
    "markdown": markdown, "latex": latex, "csv": as_csv,
}  # fmt: skip


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
            found = [stack.clean, *(stack.nr[name] for name in names), *means]
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
            yield [summary.model, side, *row]


def _worst(summary: RobustnessSummary) -> list[str]:
    """The titles of WCAR, one for each budget of each category of attacks."""
    if summary.attacks is None:
        return []
    by = next(iter(summary.attacks.stacks.values())).wcar
    return [f"WCAR {name} {at}" for name, budgets in by.items() for at in budgets]


def _percent(figure: Figure | None) -> str:
    return NOTHING if figure is None else f"{100 * figure.value:.2f}"


def _number(figure: Figure | None) -> str:
    return NOTHING if figure is None else f"{figure.value:.2f}"


def _value(figure: Figure | None) -> float | None:
    return None if figure is None else figure.value
