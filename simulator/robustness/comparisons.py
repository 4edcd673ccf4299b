"""Resampled figures as results have them, and how much more a condition does to one stack."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TypedDict, overload

import numpy as np

from simulator.analysis import robustness as analysis
from simulator.analysis.attribute import holm
from simulator.results.robustness import Figure
from simulator.results.suites import AdjustedEffect
from simulator.robustness.document import ConditionSuite
from simulator.robustness.records import CLEAN, RunArm
from simulator.statistics.bootstrap import INTERACTION, Bounds, Effect, Floats, effect, interval

Metrics = Mapping[RunArm, Floats]
"""The headline metric, resampled, (1 + R + n,), by stack and condition."""


class Compared(TypedDict):
    """Fields of a summary: how much more conditions do to a stack, and Holm's family."""

    interaction: dict[str, dict[str, AdjustedEffect]]
    mean_interaction: dict[str, AdjustedEffect]
    family: int


def interactions(
    suite: ConditionSuite, metrics: Metrics, side: str, others: Metrics, other: str
) -> dict[str, Floats]:
    """Return how much more each condition moves the metric of another stack than that of one."""
    return {
        series.name: analysis.interaction(
            metrics[side, CLEAN],
            analysis.natural_robustness(series.over(metrics, side)),
            others[other, CLEAN],
            analysis.natural_robustness(series.over(others, other)),
        )
        for series in suite.series
    }


def converged(stacks: Sequence[str], nc: Collection[str]) -> list[str]:
    """Return the first stack and those that can be compared with it; none if it did not converge.

    Args:
        stacks: their names.
        nc: those that did not converge.
    """
    return [] if stacks[0] in nc else [side for side in stacks if side not in nc]


def compared(
    effects: Mapping[str, Mapping[str, Floats]],
    without: Sequence[str],
    number: int,
    bounds: Bounds = INTERACTION,
) -> Compared:
    """Return how much stacks differ from what they are compared with.

    Args:
        effects: the differences, by stack and condition.
        without: conditions that are not in the mean.
        number: of resamples.
        bounds: of the differences.
    """
    found = {
        (side, name): effect(one, number, bounds)
        for side, by in effects.items()
        for name, one in by.items()
    }
    means = {
        side: effect(analysis.mean_over(by, without), number, bounds)
        for side, by in effects.items()
    }
    ps = holm({at: one.p for at, one in found.items()})
    ps_of_means = holm({side: one.p for side, one in means.items()})
    return {
        "interaction": {
            side: {name: adjusted(found[side, name], ps[side, name]) for name in by}
            for side, by in effects.items()
        },
        "mean_interaction": {side: adjusted(one, ps_of_means[side]) for side, one in means.items()},
        "family": len(found),
    }


def figured_each(
    by: Mapping[str, Floats], mean: Floats, number: int, bounds: Bounds | None
) -> tuple[dict[str, Figure | None], Figure | None]:
    """Return figures by condition, and their mean; see :func:`figured`."""
    each = {name: figured(one, number, bounds) for name, one in by.items()}
    return each, figured(mean, number, bounds)


def figured(resampled: Floats, number: int, bounds: Bounds | None) -> Figure | None:
    """Return a figure's value and interval; None where it is not defined.

    Args:
        resampled: (1 + R + n,).
        number: R.
        bounds: see :func:`simulator.statistics.bootstrap.interval`.
    """
    if np.isnan(resampled[0]):
        return None
    ends = list(_known(interval(resampled, number, bounds)))
    return Figure(value=float(resampled[0]), ci95=ends)


@overload
def adjusted(found: Effect, p_holm: float) -> AdjustedEffect: ...
@overload
def adjusted(found: Effect | None, p_holm: float | None) -> AdjustedEffect | None: ...
def adjusted(found: Effect | None, p_holm: float | None) -> AdjustedEffect | None:
    """Return an effect with its p after Holm's correction; None where there is none."""
    if found is None or p_holm is None:
        return None
    ends = list(_known(found.ci95))
    return AdjustedEffect(value=found.value, ci95=ends, p=found.p, p_holm=p_holm)


def _known(ends: Sequence[float]) -> Iterator[float | None]:
    return (None if np.isnan(end) else end for end in ends)
