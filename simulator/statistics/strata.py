"""Rates of a population that is sampled in parts, such as the bits of a number.

A stratum is a part of the population with a known share. Faults in the exponent matter and those in
the mantissa hardly ever do, so as many samples from each bit, or most from those that vary, tell
more than samples from everywhere; every estimate then weighs the strata by their shares.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from simulator.statistics.paired import clopper_pearson


@dataclass(frozen=True, slots=True)
class Stratum:
    """One part of a population, and what was sampled from it.

    Attributes:
        share: of the population, above 0 and at most 1.
        events: of the trials, how many had the event.
        trials: samples from this part, at least 1.
    """

    share: float
    events: int
    trials: int


@dataclass(frozen=True, slots=True)
class Estimate:
    """The rate of a population.

    Attributes:
        value: the sum of the strata's rates times their shares; unbiased.
        low: the lower end of its interval.
        high: the upper end.
        variance: of the value; unbiased; None where a stratum has a single trial.
    """

    value: float
    low: float
    high: float
    variance: float | None


def stratified(strata: Sequence[Stratum]) -> Estimate:
    """Estimate a rate from samples of each stratum, with a 95 % interval.

    The interval combines Clopper and Pearson's intervals of the strata by the distances of their
    ends from the rates, as variances are combined (Zou and Donner). Strata without an event are
    taken as one, with as many trials as if all were sampled as thinly as the one that was sampled
    most thinly: the chance to see nothing in any of them is then never underrated. That is too
    short below where many strata have an event or two; there it is Clopper and Pearson's for as
    many trials from everywhere as would give the same variance (Korn and Graubard), if that is
    lower. With one stratum it is Clopper and Pearson's interval itself.

    Args:
        strata: that together are the population.

    Raises:
        ValueError: the shares do not sum to 1, or a stratum's numbers are impossible.

    Source:
        W. G. Cochran, Sampling Techniques, 1977, section 5.3 (value, variance); G. Y. Zou and
        A. Donner, Stat. Med. 27 (2008) 1693-1702 (interval); E. L. Korn and B. I.
        Graubard, Survey Methodology 24 (1998) 193-201; W. Hoeffding, Ann. Math. Stat. 27 (1956)
        713-721 (equal rates are the worst case).
    """
    _check(strata)
    value = sum(stratum.share * stratum.events / stratum.trials for stratum in strata)
    parts = [
        (stratum.share, stratum.events, float(stratum.trials))
        for stratum in strata
        if stratum.events
    ]
    silent = [stratum for stratum in strata if not stratum.events]
    if silent:
        share = sum(stratum.share for stratum in silent)
        parts.append((share, 0, share * min(stratum.trials / stratum.share for stratum in silent)))
    below = above = spread = 0.0
    for share, events, trials in parts:
        rate, (low, high) = events / trials, clopper_pearson(events, trials)
        below += (share * (rate - low)) ** 2
        above += (share * (high - rate)) ** 2
        spread += share**2 * rate * (1 - rate) / trials
    lower = value - math.sqrt(below)
    if spread:
        effective = value * (1 - value) / spread
        lower = min(lower, clopper_pearson(value * effective, effective)[0])
    upper = value + math.sqrt(above)
    return Estimate(value, max(0.0, lower), min(1.0, upper), _variance(strata))


def neyman(pilots: Sequence[Stratum]) -> list[float]:
    """Return the weights of Neyman's allocation: share times standard deviation.

    Args:
        pilots: a few samples of each stratum, or none. To each are added two with the rate of all
            pilots together, and to those half an event and half a non-event, so that no stratum
            is left out because of a small pilot.

    Source:
        J. Neyman, J. R. Stat. Soc. 97 (1934) 558-606.
    """
    events, trials = (
        sum(getattr(pilot, name) for pilot in pilots) for name in ("events", "trials")
    )
    usual = (events + 0.5) / (trials + 1)
    rates = [(pilot.events + 2 * usual) / (pilot.trials + 2) for pilot in pilots]
    return [pilot.share * math.sqrt(p * (1 - p)) for pilot, p in zip(pilots, rates, strict=True)]


def _variance(strata: Sequence[Stratum]) -> float | None:
    if any(stratum.trials < 2 for stratum in strata):
        return None
    rates = [stratum.events / stratum.trials for stratum in strata]
    return sum(
        stratum.share**2 * p * (1 - p) / (stratum.trials - 1)
        for stratum, p in zip(strata, rates, strict=True)
    )


def _check(strata: Sequence[Stratum]) -> None:
    for stratum in strata:
        if (
            not 0 < stratum.share <= 1
            or stratum.trials < 1
            or not 0 <= stratum.events <= stratum.trials
        ):
            raise ValueError(f"no such stratum is possible: {stratum}")
    total = sum(stratum.share for stratum in strata)
    if not math.isclose(total, 1, abs_tol=1e-9):
        raise ValueError(f"the shares must sum to 1, got {total}")
