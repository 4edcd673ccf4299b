"""Figures of measured latencies: percentiles, ratios, spread between rounds, disturbances."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from simulator.latency.stream import Round
from simulator.latency.times import NEVER, TOTAL, Times
from simulator.results.shared import Latency
from simulator.results.timed import Collections, Conditions, Percentile, Ratio, Spread
from simulator.results.times import Ints
from simulator.statistics.percentiles import (
    MS,
    PERCENTILES,
    early_stopping,
    figures,
    interval,
    name,
    not_carried,
    percentile,
    samples_needed,
)

Floats = NDArray[np.float64]


def table(times: Mapping[str, Times]) -> dict[str, dict[str, Latency]]:
    """Return the latencies by stack and stage, of all answers in all rounds."""
    return {
        side: {
            stage: Latency.model_validate(figures(found.answered(stage)))
            for stage in (TOTAL, *found.stages)
        }
        for side, found in times.items()
    }


def missing(times: Mapping[str, Times]) -> dict[str, str]:
    """Return why figures of :func:`table` are None, by their path in the summary."""
    why: dict[str, str] = {}
    for side, found in times.items():
        answers = found.answered().size
        reasons = not_carried(answers)
        if not answers:
            reasons |= dict.fromkeys(("mean", "min", "max"), "every inference failed")
        for stage in (TOTAL, *found.stages):
            why |= {f"latency_ms.{side}.{stage}.{key}": reason for key, reason in reasons.items()}
    return why


def percentiles(times: Mapping[str, Times]) -> dict[str, dict[str, Percentile]]:
    """Return the percentiles of each stack's total time, with their bounds."""
    return {
        side: {name(p): _bounded(np.sort(found.answered()), p) for p in PERCENTILES}
        for side, found in times.items()
    }


def _bounded(ranked: Ints, p: float) -> Percentile:
    value, bound, ends = percentile(ranked, p), early_stopping(ranked, p), interval(ranked, p)
    return Percentile(
        ms=None if value is None else value / MS,
        ci95=[end / MS for end in ends] if ends and value is not None else None,
        early_stopping_ms=None if bound is None else bound / MS,
        needs=max(0, samples_needed(p) - len(ranked)),
    )


def ratios(times: Mapping[str, Times]) -> dict[str, Ratio]:
    """Compare each further stack's time for a round with the first stack's for the same round.

    Stacks take turns within a round, so that a slow phase of the machine affects all of them.
    Samples that failed in either stack are left out, and so are stacks that were not measured
    together with the first.

    Source:
        Student's t on the logarithms; rounds are the units, because neighbouring samples are not
        independent: Georges, Buytaert and Eeckhout, OOPSLA 2007, section 3.
    """
    (first, base), *others = times.items()
    found = {}
    for side, other in others:
        if not (base.measured and other.measured and base.rounds == other.rounds):
            continue
        both = (base.total != NEVER) & (other.total != NEVER)
        sums = [np.where(both, one.total, 0).sum(axis=1, dtype=np.float64) for one in (base, other)]
        kept = (sums[0] > 0) & (sums[1] > 0)
        logs = np.log(sums[1][kept] / sums[0][kept])
        if logs.size:
            found[side] = Ratio(
                to=first, value=float(np.exp(logs.mean())), ci95=_student(logs), rounds=logs.size
            )
    return found


def spread(times: Mapping[str, Times]) -> dict[str, Spread]:
    """Return how far rounds differ, due to clock frequency, heat and other programs."""
    found = {}
    for side, time in times.items():
        rounds = [row[row != NEVER] for row in time.total]
        medians = np.array([np.median(row) for row in rounds if row.size]) / MS
        known = len(medians) > 1 and np.median(medians) > 0
        wide = float(np.ptp(medians) / np.median(medians)) if known else None
        found[side] = Spread(medians_ms=medians.tolist(), range=wide)
    return found


def conditions(rounds: Sequence[Round]) -> Conditions | None:
    """Sum up what may have disturbed the rounds; None where nothing was measured here."""
    if not rounds:
        return None
    every = [one.conditions for one in rounds]
    pauses = [one["collections"] for one in every]
    mhz = [value for one in every for value in one["mhz"]]
    loads = [one["load"] for one in every]
    return Conditions(
        collections=Collections(
            count=sum(pause["count"] for pause in pauses),
            ms=sum(pause["ms"] for pause in pauses),
            samples=sum(pause["samples"] for pause in pauses),
            longest_ms=max(pause["longest_ms"] for pause in pauses),
        ),
        preempted=sum(one["preempted"] for one in every),
        load=[min(loads), max(loads)],
        mhz=[min(mhz), max(mhz)] if mhz else None,
    )


def _student(logs: Floats) -> list[float] | None:
    """The 95 % interval of a geometric mean, from the logarithms; None with one value."""
    if logs.size < 2:
        return None
    half = stats.t.ppf(0.975, logs.size - 1) * logs.std(ddof=1) / np.sqrt(logs.size)
    return [float(np.exp(logs.mean() - half)), float(np.exp(logs.mean() + half))]
