"""The figures of a robustness run, one row for each stack and condition: all tables choose of them.

A condition is a row of the suite, a sequence, a budget of a category of attacks, or an option of
system noise.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain

from simulator.report.table import Cell
from simulator.report.words import is_significant, points, share
from simulator.results.robustness import AgainstModel, Figure, RobustnessSummary, Sequences
from simulator.results.suites import AdjustedEffect
from simulator.robustness.figures import KINDS

NC = "NC"
"""What stands in the place of the clean metric of a stack that did not converge."""
ATTACKED = ("AR", "AR_clean_correct", "AAI")
Row = Mapping[str, Cell]


def rows_of(summary: RobustnessSummary) -> list[Row]:
    """Return all rows."""
    return [
        {"model": summary.model, "stack": side, "clean": clean(summary, side), **row}
        for side in summary.stacks
        for row in chain(
            _conditions(summary, side),
            _attacks(summary, side),
            _sequences(summary, side),
            _worst_cases(summary, side),
            _options(summary, side),
        )
    ]


def clean(summary: RobustnessSummary, side: str) -> Cell:
    """Return the metric of a stack without a condition; NC for one that did not converge."""
    return NC if side in summary.nc else summary.stacks[side].clean.value


def _conditions(summary: RobustnessSummary, side: str) -> Iterator[Row]:
    stack = summary.stacks[side]
    for name, row in summary.rows.items():
        yield {
            "category": row.category, "condition": name,
            "levels": " ".join(f"{value:.6g}" for value in stack.levels[name]),
            "severities": " ".join(share(value, 1) for value in stack.levels[name]),
            **{key: cell for kind in KINDS for key, cell in _ends(kind, stack[kind][name]).items()},
            "flips": summary.flips.get(side, {}).get(name),
            **_more(summary, side, name), **_against(summary, side, name),
        }  # fmt: skip


def _against(summary: RobustnessSummary, side: str, name: str) -> Row:
    """How much more the condition costs than the reference model."""
    own = summary.against and summary.against.interaction.get(side, {}).get(name)
    return {**_ends("against", own), "against_p_holm": own.p_holm} if own else {}


def _sequences(summary: RobustnessSummary, side: str) -> Iterator[Row]:
    if summary.sequences is None:
        return
    own = summary.sequences.stacks[side]
    for name, fp in own.fp.items():
        yield {
            "category": "sequence", "condition": name, "FR": value(own.fr[name]),
            "uT5D": value(own.ut5d[name]), "T5D": value(own.t5d[name]), **_ends("FP", fp),
            **_more(summary.sequences, side, name),
        }  # fmt: skip


def _attacks(summary: RobustnessSummary, side: str) -> Iterator[Row]:
    """A row for each budget of each attack; what the attacked model answers is of no stack."""
    if summary.attacks is None:
        return
    stack = summary.attacks.stacks[side]
    for name, unattacked in stack.unattacked.items():
        own = summary.attacks.model.get(name)
        for at, level in enumerate(summary.rows[name].levels):
            yield {
                "category": name, "condition": level.text, "unattacked": value(unattacked),
                **{key: cell for kind in ATTACKED
                   for key, cell in _ends(kind, stack[kind][name][str(at + 1)]).items()},
                "exact": own.exact[at] if own else None,
                "rounded": own.rounded[at] if own else None,
            }  # fmt: skip


def _worst_cases(summary: RobustnessSummary, side: str) -> Iterator[Row]:
    if summary.attacks is None:
        return
    for category, budgets in summary.attacks.stacks[side].wcar.items():
        for budget, figure in budgets.items():
            yield {"category": category, "condition": f"budget {budget}", **_ends("WCAR", figure)}


def _options(summary: RobustnessSummary, side: str) -> Iterator[Row]:
    if summary.system_noise is None:
        return
    for name, figure in summary.system_noise.stacks[side].sr.items():
        yield {"category": "system noise", "condition": name, **_ends("SR", figure)}


def differences(found: RobustnessSummary | AgainstModel | Sequences) -> list[Row]:
    """Return how much more a condition does to a stack than to what it is compared with.

    The last row of a stack is the mean over conditions.
    """
    return [
        {"stack": side, "category": category, "condition": name, **_difference(condition)}
        for side, by in found.interaction.items()
        for category, conditions in (("each", by), ("mean", {"mean": found.mean_interaction[side]}))
        for name, condition in conditions.items()
    ]


def _more(found: RobustnessSummary | Sequences, side: str, name: str) -> Row:
    own = found.interaction.get(side, {}).get(name)
    return {} if own is None else _difference(own)


def _difference(one: AdjustedEffect) -> Row:
    beyond = is_significant(one)
    return {
        **_ends("interaction", one), "p_holm": one.p_holm, "beyond": "yes" if beyond else "no",
        "marked": points(one) + ("*" if beyond else " "),
    }  # fmt: skip


def _ends(name: str, one: Figure | AdjustedEffect | None) -> Row:
    """A figure and its interval, whose ends CSV has in columns of their own."""
    if one is None:
        return {name: None}
    low, high = one.ci95
    return {name: one.value, f"{name}_ends": one.ci95, f"{name}_low": low, f"{name}_high": high}


def value(figure: Figure | None) -> float | None:
    """Return a figure without its interval; None where it is not defined."""
    return None if figure is None else figure.value
