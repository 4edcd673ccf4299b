"""Rates of fault campaigns, as pure functions of what each fault did.

A rate is of faults, one inference each. Its exact interval takes them as independent, which they
are where each is drawn anew and every image has few. Several faults on one image, or several frames
under one permanent fault, are not: use :func:`clustered` by image, or by fault.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from math import isfinite

import numpy as np

from simulator.statistics import planning
from simulator.statistics.bootstrap import Effect, Floats, Ratio, Resamples, effect
from simulator.statistics.paired import bonett_price, clopper_pearson, mcnemar_midp

RESAMPLES = 2000
FEW = 20
"""Fewer faults with an event give no bootstrap."""


@dataclass(frozen=True, slots=True)
class Rate:
    """How often something happened.

    Attributes:
        value: events by trials.
        ci95: Clopper and Pearson's exact interval; its coverage is at least 95 %.
        events: how often it happened.
        trials: how often it could have.
    """

    value: float
    ci95: tuple[float, float]
    events: int
    trials: int


@dataclass(frozen=True, slots=True)
class Mean:
    """The mean of a severity over events.

    Attributes:
        value: None where it is defined for no event.
        ci95: of the bootstrap over clusters; None with fewer than two of them.
        events: how many it is defined for.
        undefined: how many it is not defined for, for example a share of what was found where
            nothing was.
    """

    value: float | None
    ci95: tuple[float, float] | None
    events: int
    undefined: int


@dataclass(frozen=True, slots=True)
class Paired:
    """The same faults on two stacks.

    Attributes:
        both: faults that did it on both stacks.
        only_first: on the first one only.
        only_second: on the second one only.
        neither: on none.
        delta: the second stack's rate less the first one's.
        ci95: Bonett and Price's interval of it.
        p: McNemar's mid-p value.
    """

    both: int
    only_first: int
    only_second: int
    neither: int
    delta: float
    ci95: tuple[float, float]
    p: float


def rate(events: int, trials: int) -> Rate:
    """Return a rate with its exact interval.

    Raises:
        ValueError: there is no trial, or more events than trials.
    """
    return Rate(events / max(trials, 1), clopper_pearson(events, trials), events, trials)


def further(events: int, trials: int, width: float, confidence: float = 0.95) -> int:
    """Return after how many more faults an exact interval will be no wider than asked.

    Args:
        events: so far.
        trials: so far, at least 1; the rate is taken to stay as it is.
        width: from the lower to the upper end, above 0.
        confidence: two-sided.

    Returns:
        0 where the interval is narrow enough.

    Raises:
        ValueError: an argument is outside its range.
    """
    clopper_pearson(events, trials, confidence)  # checks them
    if not width > 0:
        raise ValueError(f"width must be above 0; got {width}")

    def narrow(wanted: int) -> bool:
        low, high = clopper_pearson(events / trials * wanted, wanted, confidence)
        return high - low <= width

    found = planning.first(narrow, trials)
    return (planning.MOST if found is None else found) - trials


def clustered(
    happened: Sequence[float],
    clusters: Sequence[Hashable],
    number: int = RESAMPLES,
    seed: int = 0,
    weights: Sequence[float] | None = None,
) -> Effect:
    """Return a rate or mean with a bootstrap interval over clusters.

    Args:
        happened: 0 or 1, or a number, one an inference.
        clusters: what its inference depends on: the image for transient faults, the fault for
            permanent ones.
        number: of resamples.
        seed: of the draws.
        weights: of the inferences; each counts 1 where None.
    """
    sums, sizes = _sums(np.asarray(happened, np.float64), clusters, weights)
    drawn = Resamples(len(sizes), seed, number).of(Ratio(sums, sizes))
    return effect(drawn, number, None)


def lasting(
    happened: Sequence[bool], clusters: Sequence[Hashable], number: int = RESAMPLES, seed: int = 0
) -> Rate:
    """Return the rate of faults of which each lasts for several inferences.

    Its interval is the bootstrap over faults; where fewer than :data:`FEW` faults did it at all, or
    fewer than that missed it once, it is Clopper and Pearson's with the rate times the number of
    faults as the number of events: a bootstrap of few faults is too narrow, and of none a point.
    A share between 0 and 1 varies less from fault to fault than 0 or 1 would, so this one covers.

    Args:
        happened: one an inference, at least one.
        clusters: the fault of each.
        number: of resamples.
        seed: of the draws.
    """
    sums, sizes = _sums(np.asarray(happened, np.float64), clusters)
    value, faults = float(sums.sum() / sizes.sum()), len(sizes)
    if min(np.count_nonzero(sums), np.count_nonzero(sums < sizes)) < FEW:
        ends = clopper_pearson(value * faults, faults)
    else:
        ends = clustered(happened, clusters, number, seed).ci95
    return Rate(value, ends, int(sums.sum()), len(happened))


def paired(first: Sequence[bool], second: Sequence[bool]) -> Paired:
    """Compare two stacks on the same faults; both sequences in one order.

    Raises:
        ValueError: there is no fault, or not as many of each.
    """
    one, two = np.asarray(first, bool), np.asarray(second, bool)
    if one.shape != two.shape or not one.size:
        raise ValueError(f"{one.size} faults on the first stack and {two.size} on the second")
    lost, won = int((one & ~two).sum()), int((two & ~one).sum())
    return Paired(
        both=int((one & two).sum()),
        only_first=lost,
        only_second=won,
        neither=int((~one & ~two).sum()),
        delta=(won - lost) / one.size,
        ci95=bonett_price(lost, won, one.size),
        p=mcnemar_midp(lost, won),
    )


def mean(
    values: Sequence[float | None],
    clusters: Sequence[Hashable] | None = None,
    number: int = RESAMPLES,
    seed: int = 0,
    weights: Sequence[float] | None = None,
) -> Mean:
    """Return the mean of the values that are not None; its interval is a bootstrap over clusters.

    Args:
        values: one an event.
        clusters: see :func:`clustered`; each event by itself where None.
        number: of resamples.
        seed: of the draws.
        weights: of the events; each counts 1 where None.
    """
    rows = [at for at, value in enumerate(values) if value is not None]
    known = np.array([values[at] for at in rows], np.float64)
    undefined = len(values) - len(rows)
    if not rows:
        return Mean(None, None, 0, undefined)
    keys = rows if clusters is None else [clusters[at] for at in rows]
    heavy = None if weights is None else [weights[at] for at in rows]
    found = clustered(known.tolist(), keys, number, seed, heavy)
    interval = found.ci95 if len(set(keys)) > 1 and isfinite(found.ci95[0]) else None
    return Mean(found.value, interval, len(rows), undefined)


def exceeding(severities: Sequence[float], levels: Sequence[float]) -> list[Rate]:
    """Return the share of faults whose severity is above each level; for 0, above nothing."""
    found = np.asarray(severities, np.float64)
    return [rate(int((found > level).sum()), len(found)) for level in levels]


def _sums(
    values: Floats, clusters: Sequence[Hashable], weights: Sequence[float] | None = None
) -> tuple[Floats, Floats]:
    """The sum of the weighted values of each cluster, and that of the weights."""
    if len(values) != len(clusters):
        raise ValueError(f"{len(values)} values and {len(clusters)} clusters")
    places: dict[Hashable, int] = {}
    which = np.array([places.setdefault(cluster, len(places)) for cluster in clusters], np.intp)
    sums, sizes = np.zeros((2, len(places)))
    each = np.ones(len(values)) if weights is None else np.asarray(weights, np.float64)
    np.add.at(sums, which, values * each)
    np.add.at(sizes, which, each)
    return sums, sizes
