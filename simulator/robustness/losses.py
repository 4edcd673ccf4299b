"""What each kind of noise takes from a stack, and whether that is more than from the first one.

It is the question of RobustMQ: does a quantized network lose more than the one in FP32, under
attacks, corruptions, system noise and from frame to frame?
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from simulator.analysis import robustness as analysis
from simulator.analysis.attribute import holm
from simulator.results.robustness import NoiseLoss
from simulator.robustness.attacked import baseline
from simulator.robustness.comparisons import adjusted, converged, figured
from simulator.robustness.document import (
    CORRUPTIONS,
    NOISE,
    SEQUENCES,
    ConditionSuite,
    Series,
    attacks,
)
from simulator.robustness.figures import Measured
from simulator.robustness.noise import Options, arm
from simulator.robustness.records import CLEAN
from simulator.robustness.sequences import Moved
from simulator.statistics.bootstrap import DIFFERENCE, RATE, Floats, effect


@dataclass(frozen=True, slots=True)
class _Loss:
    """Resampled figures; ``left`` is None where answers are compared with no truth."""

    left: Floats | None
    lost: Floats


def kinds(suite: ConditionSuite) -> dict[str, list[Series]]:
    """Return the kinds of noise of a suite, each with its conditions, if it has some.

    Every category of attacks is one, and all that means count are one.
    """
    found = dict(attacks(suite.series))
    counted = [name for names in suite.categories().values() for name in names]
    others = [one for one in suite.series if one.name in counted and one.category not in found]
    found |= {CORRUPTIONS: others} if others else {}
    found |= {NOISE: []} if suite.noise else {}
    return found | ({SEQUENCES: []} if suite.sequences else {})


def losses(
    found: Measured,
    suite: ConditionSuite,
    stacks: Sequence[str],
    nc: Collection[str],
    options: Mapping[str, Options],
    moved: Mapping[str, Moved],
) -> dict[str, dict[str, NoiseLoss]]:
    """Return the ``losses`` of the summary."""
    known = {
        side: dict(_measured(found, suite, side, options, moved))
        for side in stacks
        if side not in nc
    }
    first, number = stacks[0], found.resamples
    left, lost = {}, {}
    for side in converged(stacks, nc)[1:]:
        for kind, own in known[side].items():
            base = known[first][kind]
            lost[side, kind] = effect(own.lost - base.lost, number, _bounds(kind))
            if own.left is not None and base.left is not None:
                left[side, kind] = effect(own.left - base.left, number, DIFFERENCE)
    p_left, p_lost = (holm({at: one.p for at, one in by.items()}) for by in (left, lost))
    return {
        side: {
            kind: NoiseLoss(
                left=None if own.left is None else figured(own.left, number, RATE),
                lost=figured(own.lost, number, RATE if kind == SEQUENCES else None),
                more_left=adjusted(left.get((side, kind)), p_left.get((side, kind))),
                more_lost=adjusted(lost.get((side, kind)), p_lost.get((side, kind))),
            )
            for kind, own in by.items()
        }
        for side, by in known.items()
    }


def _bounds(kind: str) -> tuple[float, float] | None:
    """A share of what is clean has no bounds: a condition may repair."""
    return DIFFERENCE if kind == SEQUENCES else None


def _measured(
    found: Measured,
    suite: ConditionSuite,
    side: str,
    options: Mapping[str, Options],
    moved: Mapping[str, Moved],
) -> Iterator[tuple[str, _Loss]]:
    metrics = found.metrics
    for kind, rows in kinds(suite).items():
        if kind == SEQUENCES:
            without = suite.spec.left_out_of_means
            yield kind, _Loss(None, analysis.mean_over(moved[side].fp, without))
            continue
        clean = metrics[side, CLEAN]
        if kind == NOISE:
            under = [metrics[arm(side, name), CLEAN] for name in options[side].stacks]
        else:
            under = [analysis.natural_robustness(row.over(metrics, side)) for row in rows]
        if kind in attacks(suite.series):
            bases = [metrics[side, baseline(row.levels[0]).condition.text] for row in rows]
            clean = np.mean(bases, axis=0)
        left: Floats = np.mean(under, axis=0)
        yield kind, _Loss(left, analysis.impact(clean, left))
