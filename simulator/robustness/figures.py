"""The figures of a robustness run, from the records of its arms."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from simulator.analysis import robustness as analysis
from simulator.analysis.attribute import holm
from simulator.data.folder import Item
from simulator.errors import UserError
from simulator.experiments.failures import tallied, tried_in
from simulator.robustness.document import ConditionSuite, Series
from simulator.statistics.bootstrap import (
    INTERACTION,
    RATE,
    Bounds,
    Effect,
    Floats,
    Resamples,
    effect,
    interval,
)
from simulator.tasks.score import Score
from simulator.tasks.task import Task

if TYPE_CHECKING:
    from simulator.robustness.reference import Reference

CLEAN = ""
"""The arm without a condition."""
KINDS = ("NR", "NCI", "CE", "relative_CE")
"""The figures of a stack that each condition has."""
Metrics = Mapping[tuple[str, str], Floats]
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
    flips: Mapping[tuple[str, str], float]
    samples: int
    resamples: int
    skipped: Mapping[str, str]
    failed: Mapping[str, Any]


def measured(
    records: pa.Table,
    arms: Sequence[tuple[str, str]],
    stacks: Sequence[str],
    items_under: Callable[[str], Sequence[Item]],
    task: Task,
    seed: int,
    without: Collection[str] = (),
    first: Callable[[Score], None] = lambda score: None,
    only: Sequence[int] | None = None,
) -> Measured:
    """Score every arm, one after the other, so that few records are in memory at once.

    Args:
        records: a row for each sample and arm, the arms of each sample in their order.
        arms: the stack and the condition of each.
        stacks: those that are compared; the first one is the reference.
        items_under: all samples under a condition, in the order of the records.
        task: scores records.
        seed: of the resamples.
        without: conditions that are not scored: frames of sequences.
        first: called with the score of the first stack without a condition.
        only: the samples to be scored; None for all that went through.

    Raises:
        UserError: the metric cannot be measured on these samples.
    """
    kinds, ran = len(arms), only or went_through(records, len(arms))
    draws = Resamples(len(ran), seed, task.resamples)
    plain = records.drop_columns(["ns", "digest"])
    metrics, flips = {}, {}
    condition, own = CLEAN, items_under(CLEAN)
    for number, arm in enumerate(arms):
        if arm[1] in without:
            continue
        rows = plain.take(pa.array([at * kinds + number for at in ran], pa.int64())).to_pylist()
        if arm[1] != condition:  # the arms of one condition are neighbors
            condition, own = arm[1], items_under(arm[1])
        score = task.score(rows, [own[at].truth for at in ran])
        if number == 0:
            first(score)
        figure = score.figure
        if figure is None:
            raise UserError(f"robustness measures {task.headline}; give data with labels")
        metrics[arm] = draws.of(figure)
        units = sum(row["units"] for row in rows)
        flips[arm] = sum(row["changed"] for row in rows) / units if units else 0.0
    reasons = _reasons(records, kinds)
    items = items_under(CLEAN)
    failed, broken = _failing(records, stacks, len(ran))
    every = {items[at].name: why for at, why in enumerate(reasons) if why is not None}
    skipped = {name: why for name, why in every.items() if name not in broken}
    return Measured(metrics, flips, len(ran), draws.number, skipped, failed)


def _failing(records: pa.Table, stacks: Sequence[str], ran: int) -> tuple[dict[str, Any], set[str]]:
    """``failed`` and ``failures`` of the summary, and the samples that they are of.

    A stack fails on a sample where it does under any condition.
    """
    left_out = tried_in(records.filter(pc.is_valid(records["skipped"])), stacks)
    broken = [one for one in left_out if 0 < len(one.failed) < len(stacks)]
    failed = tallied(broken, stacks, stacks[0], dict.fromkeys(stacks, ran))
    return failed, {one.sample for one in broken}


def went_through(records: pa.Table, arms: int) -> list[int]:
    """Return which samples were not skipped, of records with a row for each sample and arm."""
    return [at for at, why in enumerate(_reasons(records, arms)) if why is None]


def _reasons(records: pa.Table, arms: int) -> list[str | None]:
    found: list[str | None] = (
        records["skipped"].take(pa.array(range(0, len(records), arms))).to_pylist()
    )
    return found


def table(
    found: Measured,
    suite: ConditionSuite,
    stacks: Sequence[str],
    nc: Collection[str] = (),
    against: Reference | None = None,
) -> dict[str, Any]:
    """Return the figures of the summary; see :class:`simulator.results.robustness`.

    Args:
        found: the metrics.
        suite: the conditions.
        stacks: their names; the first one is compared with the others.
        nc: stacks that did not converge; they are compared with none, and have no figures.
        against: the reference model; by default CE is relative to the first stack.
    """
    rows = _Rows(found, suite, stacks, nc, against)
    first, others = stacks[0], converged(stacks, nc)[1:]
    effects = {side: rows.interactions(first, side) for side in others if suite.series}
    return {
        "reference": rows.reference_name,
        "rows": {
            one.name: {
                "category": one.category,
                "levels": [level.described() for level in one.levels],
                "in_means": one.name not in rows.without,
            }
            for one in suite.series
        },
        "stacks": {side: rows.figures(side) for side in stacks},
        "flips": {
            side: {
                one.name: float(
                    np.mean([found.flips[side, level.condition.text] for level in one.counted])
                )
                for one in suite.series
            }
            for side in others
        },
        **compared(effects, rows.without, found.resamples),
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
) -> dict[str, Any]:
    """Return ``interaction``, ``mean_interaction`` and ``family`` of the summary.

    Args:
        effects: how a stack differs from the first one, by stack and condition.
        without: conditions that are not in the mean.
        number: of resamples.
        bounds: of the differences.
    """
    found = {
        (side, name): effect(one, number, bounds)
        for side, by in effects.items()
        for name, one in by.items()
    }
    adjusted = holm({at: one.p for at, one in found.items()})
    means = {
        side: effect(analysis.mean_over(by, without), number, bounds)
        for side, by in effects.items()
    }
    adjusted_means = holm({side: one.p for side, one in means.items()})
    return {
        "interaction": {
            side: {name: _described(found[side, name], adjusted[side, name]) for name in by}
            for side, by in effects.items()
        },
        "mean_interaction": {
            side: _described(one, adjusted_means[side]) for side, one in means.items()
        },
        "family": len(found),
    }


class _Rows:
    """The figures of each stack for each condition."""

    def __init__(
        self,
        found: Measured,
        suite: ConditionSuite,
        stacks: Sequence[str],
        nc: Collection[str],
        against: Reference | None,
    ) -> None:
        self._metrics, self._number = found.metrics, found.resamples
        self._against = against
        self._paired = against.own.metrics if against else found.metrics
        self._series, self._stacks, self._nc = suite.series, stacks, nc
        self.without = suite.spec.left_out_of_means
        self._published = suite.spec.reference

    @property
    def reference_name(self) -> str:
        if self._published:
            return self._published.name
        return self._against.words if self._against else self._stacks[0]

    def figures(self, side: str) -> dict[str, Any]:
        """The fields of a stack but its name."""
        clean = self._metrics[side, CLEAN]
        if side in self._nc:
            return self._without_figures(clean)
        nr = {
            one.name: analysis.natural_robustness(one.over(self._metrics, side))
            for one in self._series
        }
        nci = {name: analysis.impact(clean, one) for name, one in nr.items()}
        ce, relative = {}, {}
        for one in self._series:
            base_clean, base = self._reference(one)
            mine, own = one.over(self._paired, side), self._paired[side, CLEAN]
            ce[one.name] = analysis.degradation_ratio(mine, base)
            relative[one.name] = analysis.relative_degradation_ratio(own, mine, base_clean, base)
        kinds = dict(zip(KINDS, (nr, nci, ce, relative), strict=True))
        return {
            "clean": figured(clean, self._number, RATE),
            "levels": {
                one.name: [
                    float(self._metrics[side, level.condition.text][0]) for level in one.levels
                ]
                for one in self._series
            },
            **{
                kind: {name: self._figured(kind, one) for name, one in by.items()}
                for kind, by in kinds.items()
            },
            **{
                _mean_name(kind): self._figured(kind, analysis.mean_over(by, self.without))
                for kind, by in kinds.items()
            },
        }

    def _figured(self, kind: str, one: Floats) -> dict[str, Any] | None:
        return figured(one, self._number, RATE if kind == "NR" else None)

    def _without_figures(self, clean: Floats) -> dict[str, Any]:
        names = [one.name for one in self._series]
        return {
            "clean": figured(clean, self._number, RATE),
            "levels": {name: [] for name in names},
            **{kind: dict.fromkeys(names) for kind in KINDS},
            **{_mean_name(kind): None for kind in KINDS},
        }

    def interactions(self, first: str, side: str) -> dict[str, Floats]:
        """How much more each condition moves the metric of a stack than that of the first."""
        return {
            one.name: analysis.interaction(
                self._metrics[first, CLEAN],
                analysis.natural_robustness(one.over(self._metrics, first)),
                self._metrics[side, CLEAN],
                analysis.natural_robustness(one.over(self._metrics, side)),
            )
            for one in self._series
        }

    def _reference(self, one: Series) -> tuple[Floats, Floats]:
        """The clean metric, and that at each severity, of what CE is relative to."""
        if self._published is None:
            first, base = self._stacks[0], self._metrics
            if self._against is not None:
                first, base = self._against.stack, self._against.base.metrics
            elif first in self._nc:
                return np.full(1, np.nan), np.full((len(one.counted), 1), np.nan)
            return base[first, CLEAN], one.over(base, first)
        clean, error = self._published.clean, self._published.errors[one.name]
        return np.array([1 - clean]), np.full((len(one.counted), 1), 1 - error)


def _mean_name(kind: str) -> str:
    return "relative_mCE" if kind == "relative_CE" else f"m{kind}"


def figured(resampled: Floats, number: int, bounds: Bounds | None) -> dict[str, Any] | None:
    """Return a figure's value and interval; None where it is not defined.

    Args:
        resampled: (1 + R + n,).
        number: R.
        bounds: see :func:`simulator.statistics.bootstrap.interval`.
    """
    if np.isnan(resampled[0]):
        return None
    return {"value": float(resampled[0]), "ci95": list(_known(interval(resampled, number, bounds)))}


def _described(found: Effect, p_holm: float) -> dict[str, Any]:
    """Return an effect's value, its interval, and p before and after Holm's correction."""
    ends = list(_known(found.ci95))
    return {"value": found.value, "ci95": ends, "p": found.p, "p_holm": p_holm}


def _known(ends: Sequence[float]) -> Iterator[float | None]:
    return (None if np.isnan(end) else end for end in ends)
