"""Figures of Algorithm 2: the quality of a stack when a late answer counts as wrong."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simulator.latency.figures import Floats
from simulator.latency.quality import BATCH, Mask, Quality
from simulator.latency.stopping import Rule, Stopping
from simulator.latency.times import Times
from simulator.statistics.bootstrap import ROUNDING
from simulator.statistics.density import divergence, fit, pooled_divergence
from simulator.statistics.percentiles import MS, cannot_carry, mlperf_queries, percentile

TAILS = (0.99, 0.95, 0.9)
"""The percentiles of the latency that are used as thresholds, as in the paper's Table 3."""
SHARES = np.concatenate([np.linspace(0, 1, 41), 1 - np.geomspace(0.0001, 0.02, 12)])
"""The quantiles of a stack's latencies that are points of its curve of quality over deadline."""


def tail(
    times: Mapping[str, Times],
    qualities: Mapping[str, Quality],
    deadlines_ms: Sequence[float],
    seed: int,
    number: int,
) -> tuple[dict[str, Any], dict[str, str]]:
    """Compute Algorithm 2 for every stack.

    Args:
        times: by stack.
        qualities: by stack.
        deadlines_ms: the user's deadlines, used as thresholds.
        seed: of the forecast.
        number: how many rounds the forecast simulates.

    Returns:
        ``tail`` of the summary, and why some of its figures are None, by their paths. For each
        stack: ``quality`` without a deadline; ``thresholds``, see ``_Judge.under``, whose names are
        ``99``, ``95``, ``90`` (of the latencies of all rounds together) and ``12ms`` for a
        deadline; ``tail_quality@NAME``, the worst round under each; ``curve``; and ``split``, see
        ``_Judge.halves``, None with a single round.

    Source:
        Yang et al., Quality at the Tail of Machine Learning Inference, arXiv 2212.13925,
        Algorithm 2 and Table 3.
    """
    limits = {side: thresholds(own, deadlines_ms) for side, own in times.items()}
    grid = _grid(times.values(), [ms for own in limits.values() for ms in own.values()])
    found: dict[str, Any] = {}
    why: dict[str, str] = {}
    for side, own in times.items():
        judge = _Judge(qualities[side], seed, number)
        under = {name: judge.under(own, ms) for name, ms in limits[side].items()}
        found[side] = {
            "quality": qualities[side].whole,
            "thresholds": under,
            **{f"tail_quality@{name}": one and one["worst"] for name, one in under.items()},
            "curve": judge.curve(own, grid),
            "split": judge.halves(own, deadlines_ms),
        }
        why |= {f"tail.{side}.{key}": reason for key, reason in _missing(own, found[side]).items()}
    return found, why


def _missing(times: Times, found: Mapping[str, Any]) -> dict[str, str]:
    """Return why figures of one stack are None."""
    why: dict[str, str] = {}
    for p in TAILS:
        key = _percent(p)
        reason = cannot_carry(times.answered().size, p)
        if found["thresholds"][key] is None:
            why |= dict.fromkeys((f"thresholds.{key}", f"tail_quality@{key}"), reason)
        if found["split"] and found["split"]["thresholds"][key] is None:
            train = times.split(0, found["split"]["rounds"])
            why[f"split.thresholds.{key}"] = cannot_carry(train.answered().size, p)
    if found["split"] is None:
        why["split"] = "one round cannot be split into training and test rounds"
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

    def under(self, times: Times, ms: float | None) -> dict[str, Any] | None:
        """Return the quality with the threshold *ms*; None if that is None.

        Returns:
            ``ms``; ``late``, the share of late answers; ``best``, ``worst`` and ``mean`` of the
            headline metric over the rounds; ``metrics``, the same for every metric; ``forecast``.
        """
        if ms is None:
            return None
        late = _late(times, ms)
        each = {name: _over(values) for name, values in self._quality.each(late).items()}
        return {
            "ms": ms,
            "late": float(late.mean()),
            **next(iter(each.values())),
            "metrics": each,
            "forecast": self._forecast(late, times.rounds),
        }

    def curve(self, times: Times, grid: Floats) -> dict[str, Any]:
        """Return best, worst and mean over rounds at each deadline of the grid, ``ms``."""
        found: dict[str, list[float]] = {"best": [], "worst": [], "mean": []}
        step = max(1, 10 * BATCH // times.total.size)
        for at in range(0, len(grid), step):
            late = np.concatenate([_late(times, ms) for ms in grid[at : at + step]])
            for values in self._quality.of(late).reshape(-1, times.rounds):
                for key, value in _over(values).items():
                    found[key].append(value)
        return {"ms": grid.tolist(), **found}

    def halves(self, times: Times, deadlines_ms: Sequence[float]) -> dict[str, Any] | None:
        """Predict the later half of the rounds from the earlier half, and compare the two.

        The thresholds are computed from the training rounds. Both halves have the same number of
        rounds: the worst of more rounds is worse, so that the paper's split of 70 to 30 biases its
        delta below zero.

        Returns:
            ``rounds`` of each half; for each of ``thresholds`` its ``ms``, ``train`` and ``test``
            (best, worst and mean), ``delta`` (test - train) and ``forecast`` from the training
            rounds, or None where these have too few answers; and ``rjsd``: of the two halves'
            latencies all together (``pooled``), of the two halves of each instance (its mean
            ``test`` and its ``median``), and ``train``, see ``_settling``.

        Source:
            ``train`` and ``test`` are the columns of the paper's Table 2, section 3.2: means over
            instances; ``thresholds`` hold its Table 3, whose delta is train - test.
        """
        half = times.rounds // 2
        if not half:
            return None
        train, test = times.split(0, half), times.split(times.rounds - half, half)
        under: dict[str, Any] = {}
        for name, ms in thresholds(train, deadlines_ms).items():
            if ms is None:
                under[name] = None
                continue
            old, new = (_over(self._quality.of(_late(part, ms))) for part in (train, test))
            delta = {key: new[key] - old[key] for key in old}
            forecast = self._forecast(_late(train, ms), half)
            under[name] = {
                "ms": ms, "train": old, "test": new, "delta": delta, "forecast": forecast,
            }  # fmt: skip
        one, other = train.finite(), test.finite()
        pooled = pooled_divergence(*(fit(ns.reshape(-1, 1)) for ns in (one, other)))
        each = divergence(fit(one), fit(other))
        return {
            "rounds": half,
            "thresholds": under,
            "rjsd": {
                "pooled": pooled,
                "median": float(np.median(each)),
                "train": _settling(one),
                "test": float(each.mean()),
            },
        }

    def _forecast(self, late: Mask, rounds: int) -> dict[str, Any]:
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

        Returns:
            ``mean`` quality; ``worst``, the median of the worst round's quality, with ``ci95``.

        Source:
            H. A. David and H. N. Nagaraja, Order Statistics, 3rd ed., 2.1: the smallest of R draws
            from F is below x with probability 1 - (1 - F(x))**R.
        """
        chance = late.mean(axis=0)
        drawn = np.sort(np.concatenate([self._quality.of(rows) for rows in self._draws(chance)]))
        low, middle, high = (
            float(np.quantile(drawn, 1 - (1 - q) ** (1 / rounds), method="inverted_cdf"))
            for q in (0.025, 0.5, 0.975)
        )
        return {"mean": float(drawn.mean()), "worst": middle, "ci95": [low, high]}

    def _draws(self, chance: Floats) -> Iterator[Mask]:
        """Yield batches (r, n) of which answers are late, drawn with (n,) probabilities."""
        rng = np.random.default_rng(self._seed)
        uncertain = np.flatnonzero((chance > 0) & (chance < 1))
        step = max(1, BATCH // len(chance))
        for at in range(0, self._number, step):
            rows = np.tile(chance == 1, (min(step, self._number - at), 1))
            rows[:, uncertain] = rng.random((len(rows), len(uncertain))) < chance[uncertain]
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


def _over(values: Floats) -> dict[str, float]:
    return {
        "best": float(values.max()), "worst": float(values.min()), "mean": float(values.mean()),
    }  # fmt: skip


def _grid(times: Iterable[Times], limits: Sequence[float | None]) -> Floats:
    """The deadlines of the curves, in ms: quantiles of all stacks' latencies, and thresholds."""
    own = [
        np.quantile(one.answered(), SHARES, method="inverted_cdf") / MS
        for one in times
        if one.answered().size
    ]
    given = np.array([ms for ms in limits if ms is not None], np.float64)
    return np.unique(np.concatenate([*own, given]))


def better(found: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the ranges of deadlines in which one of two stacks has the higher mean quality.

    Args:
        found: ``tail`` of the summary.

    Returns:
        Ranges of the curve's deadlines, ascending: ``stack``, the better one; ``from_ms``;
        ``to_ms``, None for a range without an end; and ``by``, the largest lead. Ranges in which
        both are equal are left out. Empty where there are not exactly two stacks.
    """
    if len(found) != 2:
        return []
    ms = next(iter(found.values()))["curve"]["ms"]
    one, other = (np.array(side["curve"]["mean"]) for side in found.values())
    lead = np.where(np.abs(one - other) < ROUNDING, 0, one - other)
    ranges: list[dict[str, Any]] = []
    starts = np.flatnonzero(np.diff(np.sign(lead), prepend=0))
    for start, end in pairwise([*starts, len(ms)]):
        if lead[start]:
            ranges.append(
                {
                    "stack": list(found)[0 if lead[start] > 0 else 1],
                    "from_ms": ms[start],
                    "to_ms": ms[end - 1] if end < len(ms) else None,
                    "by": float(np.abs(lead[start:end]).max()),
                }
            )
    return ranges


def convergence(times: Mapping[str, Times], rule: Rule) -> dict[str, Any]:
    """Return the result of Algorithm 1 for the rounds, and how many queries MLPerf asks for.

    Returns:
        For each stack ``rounds``, ``instances``, ``settled`` (how many instances settled),
        ``done_after`` (the number of rounds after which all had settled, else None),
        ``inferences`` and ``mlperf``, the queries that MLPerf's rules ask for a p99.
    """
    found = {}
    for side, one in times.items():
        stopping = Stopping(rule, one.total.shape[1])
        done = stopping.add(one.finite())
        found[side] = {
            "rounds": one.rounds,
            "instances": one.total.shape[1],
            "settled": int(np.count_nonzero(stopping.settled)),
            "done_after": int(stopping.settled.max()) if done else None,
            "inferences": int(one.total.size),
            "mlperf": mlperf_queries(0.99).rounded,
        }
    return found
