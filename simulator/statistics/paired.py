"""Intervals and tests for rates and for paired differences of rates.

In this module ``b`` is the number of pairs that were right with train and wrong with deploy, ``c``
the number that were wrong and became right. A delta is always deploy minus train, so
``delta = (c - b) / n``: negative means that deployment loses accuracy.
"""

from __future__ import annotations

import math
from statistics import NormalDist

from simulator.statistics import special

MIN_DISCORDANT = 6
"""With fewer discordant pairs McNemar's exact test cannot reach 0.05: 2 * 0.5**5 = 0.0625."""


def wilson(k: int, n: int) -> tuple[float, float]:
    """Score interval of a proportion, 95 %: short, with the nominal coverage on average; for plots.

    Args:
        k: successes, 0 to n.
        n: trials, at least 1.

    Returns:
        Lower and upper end, within [0, 1].

    Raises:
        ValueError: an argument is outside its range.

    Source:
        E. B. Wilson, JASA 22 (1927) 209-212.
    """
    _check_rate(k, n)
    z = _z(0.95)
    shrink = 1 + z * z / n
    middle = (k / n + z * z / (2 * n)) / shrink
    half = z / shrink * math.sqrt(k / n * (1 - k / n) / n + z * z / (4 * n * n))
    return (0.0 if k == 0 else max(0.0, middle - half), 1.0 if k == n else min(1.0, middle + half))


def clopper_pearson(k: float, n: float, confidence: float = 0.95) -> tuple[float, float]:
    """Exact interval of a proportion: its coverage is at least the confidence; for claims.

    Args:
        k: successes, 0 to n; need not be whole.
        n: trials, at least 1; need not be whole.
        confidence: two-sided, above 0 and below 1.

    Returns:
        Lower and upper end, within [0, 1].

    Raises:
        ValueError: an argument is outside its range.

    Source:
        C. J. Clopper and E. S. Pearson, Biometrika 26 (1934) 404-413.
    """
    _check_rate(k, n)
    _check_confidence(confidence)
    tail = (1 - confidence) / 2
    if k in (0, n):  # the inverse of the beta distribution has a closed form there
        power = math.log(tail) / n
        return (math.exp(power), 1.0) if k else (0.0, -math.expm1(power))
    return (
        float(special.betaincinv(k, n - k + 1, tail)),
        float(special.betaincinv(k + 1, n - k, 1 - tail)),
    )


def bonett_price(b: float, c: float, n: int, confidence: float = 0.95) -> tuple[float, float]:
    """Interval of the paired difference of proportions, deploy minus train.

    The adjusted Wald interval: one is added to each discordant cell and two to n. It is centred on
    ``(c - b) / (n + 2)`` and estimates ``delta = (c - b) / n``.

    Args:
        b: number of pairs right with train and wrong with deploy.
        c: number of pairs wrong with train and right with deploy.
        n: all pairs, concordant ones included; at least 1 and at least b + c.
        confidence: two-sided, above 0 and below 1.

    Returns:
        Lower and upper end, clipped to [-1, 1].

    Raises:
        ValueError: an argument is outside its range.

    Source:
        D. G. Bonett and R. M. Price, J. Educ. Behav. Stat. 37 (2012) 479-488.
    """
    _check_pairs(b, c)
    if n < 1 or b + c > n:
        raise ValueError(f"b + c must be at most n, and n at least 1; got b={b}, c={c}, n={n}")
    z = _z(confidence)
    lost, won = (b + 1) / (n + 2), (c + 1) / (n + 2)
    delta = won - lost
    half = z * math.sqrt((won + lost - delta * delta) / (n + 2))
    return max(-1.0, delta - half), min(1.0, delta + half)


def mcnemar_exact(b: int, c: int) -> float:
    """Two-sided p-value of McNemar's exact conditional test: twice the smaller binomial tail.

    Args:
        b: pairs right on the train side and wrong on the deploy side.
        c: pairs wrong on the train side and right on the deploy side.

    Returns:
        A p-value in (0, 1]; 1.0 where no pair is discordant.

    Raises:
        ValueError: a count is negative.

    Source:
        Q. McNemar, Psychometrika 12 (1947) 153-157; M. W. Fagerland et al., BMC Med. Res.
        Methodol. 13 (2013) 91.
    """
    _check_pairs(b, c)
    return min(1.0, 2 * _tail(min(b, c), b + c))


def mcnemar_midp(b: int, c: int) -> float:
    """Two-sided mid-p-value of McNemar's test: the exact one minus the point probability.

    Where both counts are equal it is the exact one minus half of that, ``1 - P(X = b) / 2``.

    Args:
        b: pairs right on the train side and wrong on the deploy side.
        c: pairs wrong on the train side and right on the deploy side.

    Returns:
        A p-value in (0, 1], never above the exact one; 1.0 where no pair is discordant.

    Raises:
        ValueError: a count is negative.

    Source:
        M. W. Fagerland, S. Lydersen, P. Laake, BMC Med. Res. Methodol. 13 (2013) 91, and its
        supplement "How to calculate the McNemar mid-p test" for equal counts.
    """
    _check_pairs(b, c)
    if b + c == 0:
        return 1.0
    fewer = min(b, c)
    # 2 P(X <= m) - P(X = m), written as a sum to avoid cancellation. With b = c the exact p is 1,
    # not twice its tail, and 1 - P(X = b) / 2 is 1/2 + P(X < b).
    below = _tail(fewer - 1, b + c)
    return min(1.0, below + (0.5 if b == c else _tail(fewer, b + c)))


def samples_needed(psi: float, d: float) -> int:
    """Return how many pairs McNemar's test at 5 % needs to detect a delta with a power of 80 %.

    Args:
        psi: rate of discordant pairs, (b + c) / n, at most 1.
        d: the delta to detect, as a fraction (0.001 is 0.1 points), above 0 and at most psi.

    Returns:
        The number of pairs.

    Raises:
        ValueError: an argument is outside its range, for example a delta larger than the rate of
            discordant pairs, which cannot occur.

    Source:
        R. J. Connor, Biometrics 43 (1987) 207-211:
        n = (z_{1-alpha/2} sqrt(psi) + z_power sqrt(psi - d**2))**2 / d**2.
    """
    if not 0 < d <= 1 or not psi <= 1:
        raise ValueError(f"d must be above 0 and psi at most 1; got d={d}, psi={psi}")
    if psi < d:
        raise ValueError(
            f"a delta of {d} cannot occur where only {psi} of the pairs are discordant"
        )
    z_alpha, z_power = map(NormalDist().inv_cdf, (0.975, 0.8))
    root = z_alpha * math.sqrt(psi) + z_power * math.sqrt(psi - d * d)
    return math.ceil(root * root / (d * d))


def _z(confidence: float) -> float:
    _check_confidence(confidence)
    return NormalDist().inv_cdf((1 + confidence) / 2)


def _tail(k: int, n: int) -> float:
    """P(X <= k) for the number of heads X in n tosses of a fair coin."""
    if k < 0:
        return 0.0
    return float(special.bdtr(k, n, 0.5)) if n else 1.0


def _check_rate(k: float, n: float) -> None:
    if n < 1 or not 0 <= k <= n:
        raise ValueError(f"k must be 0 to n, and n at least 1; got k={k}, n={n}")


def _check_pairs(b: float, c: float) -> None:
    if b < 0 or c < 0:
        raise ValueError(f"counts cannot be negative; got b={b}, c={c}")


def _check_confidence(confidence: float) -> None:
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must be above 0 and below 1; got {confidence}")
