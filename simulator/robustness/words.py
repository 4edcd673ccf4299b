"""Sentences that the screen and the page of a robustness run share."""

from __future__ import annotations

from collections.abc import Iterator

from simulator.results.robustness import RobustnessSummary, SystemNoise

NC = "NC"
"""What stands in the place of the clean metric of a stack that did not converge."""

NOTHING = "-"
"""What tables have for a figure that is not defined."""


def own_pipeline(found: SystemNoise) -> str:
    """Return whether the pipeline that SNI is relative to is one of the options."""
    first, stack = next(iter(found.stacks.items()))
    options = len(stack.sr)
    if not stack.same:
        return f"The preparation of {first} itself is none of its {options} options."
    return f"The preparation of {first} itself is, of its {options} options, {_all(stack.same)}."


def not_converged(summary: RobustnessSummary) -> Iterator[str]:
    """Yield a sentence for each stack without figures."""
    for side, why in summary.nc.items():
        yield f"{side} is NC, not converged, and in no mean: {why}."


def _all(names: list[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
