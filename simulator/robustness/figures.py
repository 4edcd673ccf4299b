"""The figures of a robustness run, from the records of its arms."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow.compute as pc

from simulator.analysis import robustness as analysis
from simulator.errors import UserError
from simulator.experiments.failures import Tally, tallied, tried_in
from simulator.robustness.comparisons import (
    Metrics,
    compared,
    converged,
    figured,
    figured_each,
    interactions,
)
from simulator.robustness.document import ConditionSuite
from simulator.robustness.records import CLEAN, ArmRecords, RunArm
from simulator.statistics.bootstrap import RATE, Floats
from simulator.tasks.score import Score

if TYPE_CHECKING:
    from simulator.robustness.reference import Reference

KINDS = {"NR": "mNR", "NCI": "mNCI", "CE": "mCE", "relative_CE": "relative_mCE"}
"""The figures of a stack that each condition has, and the names of their means."""
CATEGORIES = {"category_CE": "CE", "category_relative_CE": "relative_CE"}
"""The figures of a stack that each category has, and what they are the mean of."""
Fields = dict[str, Any]
"""Fields of a summary by their names in the JSON file."""


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
                analysis.mean_over({name: kinds[of][name] for name in names}), found.resamples, None
            )
            for category, names in suite.categories().items()
        }
    return shown
