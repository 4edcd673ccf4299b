"""The figures of a robustness run, from the records of its arms."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypedDict, overload

import numpy as np
import pyarrow.compute as pc

from simulator.analysis import robustness as analysis
from simulator.analysis.attribute import holm
from simulator.errors import UserError
from simulator.experiments.failures import Tally, tallied, tried_in
from simulator.results.robustness import Figure
from simulator.results.suites import AdjustedEffect
from simulator.robustness.document import ConditionSuite
from simulator.robustness.records import CLEAN, ArmRecords, RunArm
from simulator.statistics.bootstrap import (
    INTERACTION,
    RATE,
    Bounds,
    Effect,
    Floats,
    effect,
    interval,
)
from simulator.tasks.score import Score

if TYPE_CHECKING:
    from simulator.robustness.reference import Reference

KINDS = {"NR": "mNR", "NCI": "mNCI", "CE": "mCE", "relative_CE": "relative_mCE"}
"""The figures of a stack that each condition has, and the names of their means."""
CATEGORIES = {"category_CE": "CE", "category_relative_CE": "relative_CE"}
"""The figures of a stack that each category has, and what they are the mean of."""
Fields = dict[str, Any]
"""Fields of a summary by their names in the JSON file."""
Metrics = Mapping[RunArm, Floats]
"""The headline metric, resampled, (1 + R + n,), by stack and condition."""


@dataclass(frozen=True, slots=True)
class Measured:
    """What the records of a run say.

    Attributes:
        metrics: by the name of the stack and the text of the condition.
        flips: the share of units that differ from the first stack's answers, likewise.
        samples: that went through every stack under every condition.
        resamples: R.
        skipped: those that no stack has answered, each with the reason.
        failed: ``failed`` and ``failures`` of the summary.
    """

    metrics: Metrics
    flips: Mapping[RunArm, float]
    samples: int
    resamples: int
    skipped: Mapping[str, str]
    failed: Tally


class Compared(TypedDict):
    """Fields of a summary: how much more conditions do to a stack, and Holm's family."""

    interaction: dict[str, dict[str, AdjustedEffect]]
    mean_interaction: dict[str, AdjustedEffect]
    family: int


def measured(
    records: ArmRecords,
    stacks: Sequence[str],
    without: Collection[str] = (),
    first: Callable[[Score], None] = lambda score: None,
) -> Measured:
    """Score every arm.

    Args:
        records: of the run.
        stacks: those that are compared; the first one is the reference.
        without: conditions that are not scored: frames of sequences.
        first: called with the score of the first stack without a condition.

    Raises:
        UserError: the metric cannot be measured on these samples.
    """
    draws = records.draws
    metrics: dict[RunArm, Floats] = {}
    flips = {}
    for arm, score, changed in records.scores(without):
        if not metrics:
            first(score)
        if score.figure is None:
            raise UserError(f"robustness measures {records.task.headline}; give data with labels")
        metrics[arm], flips[arm] = draws.of(score.figure), changed
    # A stack fails on a sample where it does under any condition.
    left_out = tried_in(records.table.filter(pc.is_valid(records.table["skipped"])), stacks)
    broken = [tried for tried in left_out if 0 < len(tried.failed) < len(stacks)]
    ran = len(records.ran)
    failed = tallied(broken, stacks, stacks[0], dict.fromkeys(stacks, ran))
    items, failing = records.items_under(CLEAN), {tried.sample for tried in broken}
    every = {items[at].name: why for at, why in enumerate(records.reasons) if why is not None}
    skipped = {name: why for name, why in every.items() if name not in failing}
    return Measured(metrics, flips, ran, draws.number, skipped, failed)


def table(
    found: Measured,
    suite: ConditionSuite,
    stacks: Sequence[str],
    nc: Collection[str] = (),
    against: Reference | None = None,
) -> Fields:
    """Return the figures of the summary; see :class:`simulator.results.robustness`.

    Args:
        found: the metrics.
        suite: the conditions.
        stacks: their names; the first one is compared with the others.
        nc: stacks that did not converge; they are compared with none, and have no figures.
        against: the reference model; by default CE is relative to the first stack.
    """
    first, others = stacks[0], converged(stacks, nc)[1:]
    without = suite.spec.left_out_of_means
    name, clean, levels = _base(found.metrics, suite, first, nc, against)
    paired = against.own.metrics if against else found.metrics
    shown = {
        side: _blank(found, suite, side)
        if side in nc
        else _figures(found, suite, side, paired, clean, levels)
        for side in stacks
    }
    effects = {
        side: interactions(suite, found.metrics, first, found.metrics, side)
        for side in others
        if suite.series
    }
    return {
        "reference": name,
        "rows": {
            series.name: {
                "category": series.category,
                "levels": [level.described() for level in series.levels],
                "in_means": series.name not in without,
            }
            for series in suite.series
        },
        "stacks": shown,
        "flips": {
            side: {
                series.name: float(
                    np.mean([found.flips[side, level.condition.text] for level in series.counted])
                )
                for series in suite.series
            }
            for side in others
        },
        **compared(effects, without, found.resamples),
    }


def _base(
    metrics: Metrics,
    suite: ConditionSuite,
    first: str,
    nc: Collection[str],
    against: Reference | None,
) -> tuple[str, Floats, dict[str, Floats]]:
    """What CE is relative to: its name, its clean metric, and that at each severity."""
    published = suite.spec.reference
    if published is not None:
        errors = {series.name: 1 - published.errors[series.name] for series in suite.series}
        levels = {
            series.name: np.full((len(series.counted), 1), errors[series.name])
            for series in suite.series
        }
        return published.name, np.array([1 - published.clean]), levels
    if against is None and first in nc:
        unknown = {
            series.name: np.full((len(series.counted), 1), np.nan) for series in suite.series
        }
        return first, np.full(1, np.nan), unknown
    name = first
    if against is not None:
        name, first, metrics = against.words, against.stack, against.base.metrics
    return (
        name,
        metrics[first, CLEAN],
        {series.name: series.over(metrics, first) for series in suite.series},
    )


def _blank(found: Measured, suite: ConditionSuite, side: str) -> Fields:
    """The fields of a stack that did not converge."""
    names = [series.name for series in suite.series]
    return {
        "clean": figured(found.metrics[side, CLEAN], found.resamples, RATE),
        "levels": {name: [] for name in names},
        **{kind: dict.fromkeys(names) for kind in KINDS},
        **dict.fromkeys(KINDS.values()),
        **{kind: dict.fromkeys(suite.categories()) for kind in CATEGORIES},
    }


def _figures(
    found: Measured,
    suite: ConditionSuite,
    side: str,
    paired: Metrics,
    base: Floats,
    base_levels: Mapping[str, Floats],
) -> Fields:
    """The fields of a stack but its name; ratios are of the metrics that are paired with a base."""
    clean, own = found.metrics[side, CLEAN], paired[side, CLEAN]
    kinds: dict[str, dict[str, Floats]] = {kind: {} for kind in KINDS}
    for series in suite.series:
        nr = analysis.natural_robustness(series.over(found.metrics, side))
        mine, other = series.over(paired, side), base_levels[series.name]
        figures = (
            nr,
            analysis.impact(clean, nr),
            analysis.degradation_ratio(mine, other),
            analysis.relative_degradation_ratio(own, mine, base, other),
        )
        for kind, figure in zip(KINDS, figures, strict=True):
            kinds[kind][series.name] = figure
    shown: Fields = {
        "clean": figured(clean, found.resamples, RATE),
        "levels": {
            series.name: [
                float(found.metrics[side, level.condition.text][0]) for level in series.levels
            ]
            for series in suite.series
        },
    }
    for kind, by in kinds.items():
        mean = analysis.mean_over(by, suite.spec.left_out_of_means)
        shown[kind], shown[KINDS[kind]] = figured_each(by, mean, found.resamples,
                                                       RATE if kind == "NR" else None)  # fmt: skip
    for kind, of in CATEGORIES.items():
        shown[kind] = {
            category: figured(
                analysis.mean_over({name: kinds[of][name] for name in names}),
                found.resamples,
                None,
            )
            for category, names in suite.categories().items()
        }
    return shown


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
