"""How many more samples would decide something, if the figures stay as they are.

That is an assumption, and the answer an estimate: with other samples comes another figure. A figure
that lies at the limit itself is never decided; then the answer is None.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from statistics import NormalDist

from simulator.statistics.paired import bonett_price, clopper_pearson

MOST = 10**12
"""More samples than these are none."""
_TINY = 1e-12
_Z = NormalDist().inv_cdf(0.975)


def first(holds: Callable[[int], bool], start: int) -> int | None:
    """Return the least number from *start* on for which something holds, that then stays so.

    Args:
        holds: whether it does.
        start: at least 1.

    Returns:
        None: it does not up to :data:`MOST`.
    """
    if holds(start):
        return start
    wrong, right = start, 2 * start
    while not holds(right):
        wrong, right = right, 2 * right
        if wrong > MOST:
            return None
    while right - wrong > 1:
        middle = (wrong + right) // 2
        wrong, right = (wrong, middle) if holds(middle) else (middle, right)
    return right


def for_rate(events: float, trials: int, limit: float) -> int | None:
    """Return how many more trials bring Clopper and Pearson's interval to one side of a limit.

    Args:
        events: so far.
        trials: so far, at least 1.
        limit: of the rate.
    """
    if events / trials == limit:
        return None
    return _more(lambda n: clopper_pearson(events / trials * n, n), trials, limit)


def for_difference(value: float, ci95: tuple[float, float], pairs: int, limit: float) -> int | None:
    """Return how many more pairs bring Bonett and Price's interval to one side of a limit.

    Args:
        value: the difference so far.
        ci95: its interval, from which the rate of discordant pairs follows.
        pairs: so far, at least 1.
        limit: of the difference.
    """
    if value == limit:
        return None
    wide = pairs + 2  # Bonett and Price add two pairs, one each way
    half, middle = (ci95[1] - ci95[0]) / 2, value * pairs / wide
    apart = wide * (wide * (half / _Z) ** 2 + middle**2) - 2
    apart = min(max(apart / pairs, abs(value)), 1 - _TINY)
    lost, won = ((apart + sign * value * (1 - _TINY)) / 2 for sign in (-1, 1))
    return _more(lambda n: bonett_price(lost * n, won * n, n), pairs, limit)


def by_root(value: float, ci95: tuple[float, float], samples: int, limit: float) -> int | None:
    """Return the same of an interval that narrows with the root of the number of samples."""
    if value == limit:
        return None
    end = ci95[0] if limit < value else ci95[1]
    return max(0, math.ceil(samples * ((end - value) / (limit - value)) ** 2) - samples)


def _more(ends: Callable[[int], tuple[float, float]], seen: int, limit: float) -> int | None:
    """How many more samples leave a limit outside an interval."""

    def decided(samples: int) -> bool:
        low, high = ends(samples)
        return not low <= limit <= high

    found = first(decided, seen)
    return None if found is None else found - seen
