"""Figures of Algorithm 2: the quality of a stack when a late answer counts as wrong."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from simulator.latency.figures import Floats
from simulator.latency.quality import BATCH, Mask, Quality
from simulator.latency.stopping import Rule, Stopping
from simulator.latency.times import Times
from simulator.results.tail import (
    Better,
    Convergence,
    Curve,
    Divergence,
    Forecast,
    Over,
    Split,
    SplitThreshold,
    Tail,
    Threshold,
)
from simulator.statistics.bootstrap import ROUNDING
from simulator.statistics.density import divergence, fit, pooled_divergence
from simulator.statistics.percentiles import MS, cannot_carry, mlperf_queries, percentile

TAILS = (0.99, 0.95, 0.9)
"""The percentiles of the latency that are used as thresholds, as in the paper's Table 3."""
SHARES = np.concatenate([np.linspace(0, 1, 41), 1 - np.geomspace(0.0001, 0.02, 12)])
"""The quantiles of a stack's latencies that are points of its curve of quality over deadline."""

HALF_A_ROUND = "a half is one round, which has no distribution of a sample; it needs 4 rounds"
ONE_ROUND = "one round cannot be split into training and test rounds"


def tail(
    times: Mapping[str, Times],
    qualities: Mapping[str, Quality],
    deadlines_ms: Sequence[float],
    seed: int,
    number: int,
) -> tuple[dict[str, Tail], dict[str, str]]:
    """Compute Algorithm 2 for every stack.

    Args:
        times: by stack.
        qualities: by stack.
        deadlines_ms: the user's deadlines, used as thresholds.
        seed: of the forecast.
        number: how many rounds the forecast simulates.

    Returns:
        ``tail`` of the summary, and why some of its figures are None, by their paths. Thresholds
        are percentiles of the latencies of all rounds together, and the deadlines.

    Source:
        Yang et al., Quality at the Tail of Machine Learning Inference, arXiv 2212.13925,
        Algorithm 2 and Table 3.
    """
    limits = {side: thresholds(own, deadlines_ms) for side, own in times.items()}
    grid = _grid(times.values(), [ms for own in limits.values() for ms in own.values()])
    found: dict[str, Tail] = {}
    why: dict[str, str] = {}
    for side, own in times.items():
        judge = _Judge(qualities[side], seed, number)
        under = {
            name: None if ms is None else judge.under(own, ms) for name, ms in limits[side].items()
        }
        found[side] = Tail(
            quality=qualities[side].whole,
            thresholds=under,
            **{f"tail_quality@{name}": one and one.worst for name, one in under.items()},
            curve=judge.curve(own, grid),
            split=judge.halves(own, deadlines_ms),
        )
        why |= {f"tail.{side}.{key}": reason for key, reason in _missing(own, found[side]).items()}
    return found, why


def _missing(times: Times, found: Tail) -> dict[str, str]:
    """Return why figures of one stack are None."""
    why: dict[str, str] = {}
    for p in TAILS:
        key = _percent(p)
        reason = cannot_carry(times.answered().size, p)
        if found.thresholds[key] is None:
            why |= dict.fromkeys((f"thresholds.{key}", f"tail_quality@{key}"), reason)
        if found.split and found.split.thresholds[key] is None:
            train = times.split(0, found.split.rounds)
            why[f"split.thresholds.{key}"] = cannot_carry(train.answered().size, p)
    if found.split is None:
        why["split"] = ONE_ROUND
    elif found.split.rjsd.test is None:
        why |= {f"split.rjsd.{key}": HALF_A_ROUND for key in ("test", "median", "alternating")}
    return why


def names(deadlines_ms: Sequence[float]) -> list[str]:
    """Return the names of the thresholds: ``99``, ``95``, ``90``, then deadlines as ``12ms``."""
    return [*map(_percent, TAILS), *map(_deadline, deadlines_ms)]


def thresholds(times: Times, deadlines_ms: Sequence[float]) -> dict[str, float | None]:
    """Return the thresholds in ms by name; None for a percentile with too few answers."""
    answered = times.answered()
    found: dict[str, float | None] = {}
    for p in TAILS:
        ns = percentile(answered, p)
        found[_percent(p)] = None if ns is None else ns / MS
    return found | {_deadline(ms): ms for ms in deadlines_ms}


def _percent(p: float) -> str:
    return f"{100 * p:g}"


def _deadline(ms: float) -> str:
    return f"{ms:.15g}ms"


def _late(times: Times, ms: float) -> Mask:
    """Return (R, n) which answers are late, comparing whole nanoseconds.

    A percentile that was converted to ms may not convert back: 1.000001 * 1e6 is below 1000001.
    """
    return times.late(round(ms * MS))


class _Judge:
    """Computes the quality of the rounds of one stack for any threshold."""

    def __init__(self, quality: Quality, seed: int, number: int) -> None:
        self._quality, self._seed, self._number = quality, seed, number

    def under(self, times: Times, ms: float) -> Threshold:
        """Return the quality with the threshold *ms*."""
        late = _late(times, ms)
        each = {name: _over(values) for name, values in self._quality.each(late).items()}
        return Threshold(
            ms=ms,
            late=late.mean(),
            **next(iter(each.values())),
            metrics=each,
            forecast=self._forecast(late, times.rounds, times.together),
        )

    def curve(self, times: Times, grid: Floats) -> Curve:
        """Return best, worst and mean over rounds at each deadline of the grid, ms."""
        found: list[Over] = []
        step = max(1, 10 * BATCH // times.total.size)
        for at in range(0, len(grid), step):
            late = np.concatenate([_late(times, ms) for ms in grid[at : at + step]])
            found += map(_over, self._quality.of(late).reshape(-1, times.rounds))
        columns = {key: [over[key] for over in found] for key in Over.model_fields}
        return Curve(ms=grid.tolist(), **columns)

    def halves(self, times: Times, deadlines_ms: Sequence[float]) -> Split | None:
        """Predict the later half of the rounds from the earlier half, and compare the two.

        The thresholds are computed from the training rounds. Both halves have the same number of
        rounds: the worst of more rounds is worse, so that the paper's split of 70 to 30 biases its
        delta below zero. None with a single round.

        Source:
            ``train`` and ``test`` of the divergence are the columns of the paper's Table 2,
            section 3.2: means over instances; ``thresholds`` hold its Table 3, whose delta is
            train - test.
        """
        half = times.rounds // 2
        if not half:
            return None
        train, test = times.split(0, half), times.split(times.rounds - half, half)
        under: dict[str, SplitThreshold | None] = {}
        for name, ms in thresholds(train, deadlines_ms).items():
            if ms is None:
                under[name] = None
                continue
            old, new = (_over(self._quality.of(_late(part, ms))) for part in (train, test))
            under[name] = SplitThreshold(
                ms=ms,
                train=old,
                test=new,
                delta=Over(**{key: new[key] - old[key] for key in old}),
                forecast=self._forecast(_late(train, ms), half, times.together),
            )
        one, other = train.finite(), test.finite()
        alone = half < 2
        each = divergence(fit(one), fit(other))
        odd, even = (times.finite()[at : 2 * half : 2] for at in (0, 1))
        rjsd = Divergence(
            pooled=pooled_divergence(*(fit(ns.reshape(-1, 1)) for ns in (one, other))),
            median=None if alone else float(np.median(each)),
            train=_settling(one),
            test=None if alone else each.mean(),
            alternating=None if alone else divergence(fit(odd), fit(even)).mean(),
        )
        return Split(rounds=half, thresholds=under, rjsd=rjsd)

    def _forecast(self, late: Mask, rounds: int, together: int) -> Forecast:
        """Return the expected quality of *rounds* further rounds.

        Each instance is late independently, with the share of its known rounds in which it was
        late. Slow phases of the machine and rare events are not modelled, so that the interval is
        too narrow where rounds differ or are few. (A kernel density would predict too many late
        instances: it widens each by a tenth of its spread, and by far more where one outlier
        determines the bandwidth.) Rounds are simulated, and the worst of R rounds follows from
        their order statistics.

        Args:
            late: (R, n) which answers were late in the known rounds.
            rounds: how many further rounds.
            together: how many samples in a row are late together.

        Source:
            H. A. David and H. N. Nagaraja, Order Statistics, 3rd ed., 2.1: the smallest of R draws
            from F is below x with probability 1 - (1 - F(x))**R.
        """
        chance = late.mean(axis=0)
        drawn = np.sort(
            np.concatenate([self._quality.of(rows) for rows in self._draws(chance, together)])
        )
        low, middle, high = (
            float(np.quantile(drawn, 1 - (1 - q) ** (1 / rounds), method="inverted_cdf"))
            for q in (0.025, 0.5, 0.975)
        )
        return Forecast(mean=drawn.mean(), worst=middle, ci95=[low, high])

    def _draws(self, chance: Floats, together: int) -> Iterator[Mask]:
        """Yield batches (r, n) of which answers are late, drawn with (n,) probabilities."""
        rng = np.random.default_rng(self._seed)
        uncertain = np.flatnonzero((chance > 0) & (chance < 1))
        drawn, of = np.unique(uncertain // together, return_inverse=True)
        step = max(1, BATCH // len(chance))
        for at in range(0, self._number, step):
            rows = np.tile(chance == 1, (min(step, self._number - at), 1))
            rows[:, uncertain] = rng.random((len(rows), len(drawn)))[:, of] < chance[uncertain]
            yield rows


def _settling(ns: NDArray[np.int64]) -> float | None:
    """How far the fits of growing numbers of rounds are from the last, as Algorithm 1 makes them.

    Args:
        ns: (R, n) latencies of the training rounds.

    Returns:
        The mean rJSD, over instances, of the fit of all R rounds from those of R - 5, R - 10, ...,
        up to five of them with at least two rounds; None where there is none. Algorithm 1 itself
        fits no fewer than 30 rounds.
    """
    rule, rounds = Rule(), len(ns)
    earlier = [rounds - back * rule.every for back in range(1, rule.window + 1)]
    last = fit(ns)
    apart = [divergence(last, fit(ns[:some])).mean() for some in earlier if some >= 2]
    return float(np.mean(apart)) if apart else None


def _over(values: Floats) -> Over:
    return Over(best=values.max(), worst=values.min(), mean=values.mean())


def _grid(times: Iterable[Times], limits: Sequence[float | None]) -> Floats:
    """The deadlines of the curves, in ms: quantiles of all stacks' latencies, and thresholds."""
    own = [
        np.quantile(time.answered(), SHARES, method="inverted_cdf") / MS
        for time in times
        if time.answered().size
    ]
    given = np.array([ms for ms in limits if ms is not None], np.float64)
    return np.unique(np.concatenate([*own, given]))


def better(curves: Mapping[str, Curve]) -> list[Better]:
    """Return the ranges of deadlines in which one of two stacks has the higher mean quality.

    Args:
        curves: by stack, at the same deadlines.

    Returns:
        Ranges of the curves' deadlines, ascending. Ranges in which both are equal are left out.
        Empty where there are not exactly two stacks.
    """
    if len(curves) != 2:
        return []
    ms = next(iter(curves.values())).ms
    one, other = (np.array(curve.mean) for curve in curves.values())
    lead = np.where(np.abs(one - other) < ROUNDING, 0, one - other)
    starts = np.flatnonzero(np.diff(np.sign(lead), prepend=0))
    return [
        Better(
            stack=list(curves)[0 if lead[start] > 0 else 1],
            from_ms=ms[start],
            to_ms=ms[end - 1] if end < len(ms) else None,
            by=np.abs(lead[start:end]).max(),
        )
        for start, end in pairwise([*starts, len(ms)])
        if lead[start]
    ]


def convergence(times: Mapping[str, Times]) -> dict[str, Convergence]:
    """Return the result of Algorithm 1 for the rounds, and how many queries MLPerf asks for."""
    found = {}
    for side, time in times.items():
        stopping = Stopping(Rule(), time.inferences)
        done = stopping.add(time.finite()[:, :: time.together])
        found[side] = Convergence(
            rounds=time.rounds,
            instances=time.inferences,
            settled=np.count_nonzero(stopping.settled),
            done_after=int(stopping.settled.max()) if done else None,
            inferences=time.rounds * time.inferences,
            mlperf=mlperf_queries(0.99),
        )
    return found
