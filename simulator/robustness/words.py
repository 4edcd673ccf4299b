"""Sentences that the screen and the page of a robustness run share."""

from __future__ import annotations

from collections.abc import Iterator

from simulator.report.words import ends, moved, share, title, turned
from simulator.results.robustness import Attacks, RobustnessSummary, SystemNoise

NC = "NC"
"""What stands in the place of the clean metric of a stack that did not converge."""


def cells(summary: RobustnessSummary) -> list[list[str]]:
    """Return a table of the cells of a run that dropped some; the first row has the titles."""
    metric = title(summary.task, summary.metric)
    head = ["cell", f"{metric} %", "change, points", "95 % interval", "flips", "flip rate", "n"]
    return [
        head,
        *(
            [
                name, f"{100 * one[summary.metric]:.2f}", moved(one.drop),
                ends(turned(one.drop_ci95)), f"{one.flips:,} of {one.units:,}",
                share(one.flip_rate, 2), f"{one.samples:,}",
            ]
            for name, one in summary.cells.items()
        ),
    ]  # fmt: skip


def own_pipeline(found: SystemNoise) -> str:
    """Return whether the pipeline that SNI is relative to is one of the options."""
    first, stack = next(iter(found.stacks.items()))
    options = len(stack.sr)
    if not stack.same:
        return f"The preparation of {first} itself is none of its {options} options."
    return f"The preparation of {first} itself is, of its {options} options, {_all(stack.same)}."


def not_carried(attacks: Attacks) -> Iterator[str]:
    """Yield a sentence on the attacks of which nothing reached a stack."""
    if attacks.not_carried:
        yield (
            f"{', '.join(attacks.not_carried)}: cannot be carried by 8 bits, since the budget is "
            "below one level; in no figure of a stack and in no mean."
        )


def not_converged(summary: RobustnessSummary) -> Iterator[str]:
    """Yield a sentence for each stack without figures."""
    for side, why in summary.nc.items():
        yield f"{side} is NC, not converged, and in no mean: {why}."


def _all(names: list[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
