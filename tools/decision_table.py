"""Simulate gates that stop when they are decided; docs/statistics.md shows some rows.

    python tools/decision_table.py [--runs 2000] [--most 50000]

Rates: flips are drawn with a true rate, and ``flip_rate > 1%`` is tested after every sample, as
``--until-decided`` does it. Deltas: answers turn wrong and right with two true rates, and
``delta.top1 < -1 point`` is tested. Beside each stands the sample of fixed size that an exact test
needs for 80 % power at that rate.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator

import numpy as np
from scipy import stats

from simulator.experiments.search.stopping import ALPHA, LEAST
from simulator.statistics.anytime import Evidence, Range

LIMIT = 0.01
RATES = (0.0, 0.002, 0.005, 0.008, 0.009, 0.01, 0.011, 0.012, 0.015, 0.02, 0.04, 0.08)
DELTAS = (
    (0.0, 0.0), (0.002, 0.002), (0.01, 0.01), (0.015, 0.01), (0.02, 0.01), (0.025, 0.01),
    (0.03, 0.01), (0.04, 0.01), (0.08, 0.01),
)  # fmt: skip
"""Shares of the answers that turn wrong, and that turn right."""
NEEDED = -math.log(ALPHA)


def rate_bounds(most: int) -> tuple[np.ndarray, np.ndarray]:
    """Return, for each number of samples, the fewest flips that fail and the most that pass."""
    fails, passes = np.full(most + 1, most + 1), np.full(most + 1, -1)
    few, many = 0, -1

    def capital(flips: int, samples: int) -> tuple[float, float]:
        found = Evidence(Range(0.0, 1.0))
        found._counts.update({1.0: flips, 0.0: samples - flips})
        return found.against(LIMIT)

    for samples in range(LEAST, most + 1):
        while capital(few, samples)[0] < NEEDED:
            few += 1
        while capital(many + 1, samples)[1] >= NEEDED:
            many += 1
        fails[samples], passes[samples] = few, many
    return fails, passes


def rates(runs: int, most: int, seed: int) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Yield for each true rate the decision of each run (1 fails, -1 passes) and its samples."""
    fails, passes = rate_bounds(most)
    random = np.random.default_rng(seed)
    for rate in RATES:
        decision, used = np.zeros(runs, int), np.full(runs, most)
        for run in range(runs):
            flips = np.concatenate([[0], np.cumsum(random.random(most) < rate)])
            ended = (flips >= fails) | (flips <= passes)
            ended[:LEAST] = False
            if ended.any():
                used[run] = at = int(ended.argmax())
                decision[run] = 1 if flips[at] >= fails[at] else -1
        yield f"{100 * rate:g} %", decision, used


def deltas(runs: int, most: int, seed: int) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """The same for pairs of rates; looked at whenever the samples have grown by 2 %."""
    random = np.random.default_rng(seed)
    looks = np.unique(np.geomspace(LEAST, most, int(math.log(most / LEAST) / 0.02)).astype(int))
    for lost, won in DELTAS:
        decision, used = np.zeros(runs, int), np.full(runs, most)
        for run in range(runs):
            drawn = random.random(most)
            down = np.cumsum(drawn < lost)
            up = np.cumsum(drawn > 1 - won)
            for at in looks:
                found = Evidence(Range(-1.0, 1.0))
                worse, better = int(down[at - 1]), int(up[at - 1])
                found._counts.update({0.0: worse, 1.0: better, 0.5: int(at) - worse - better})
                above, below = found.against(-LIMIT)
                if max(above, below) >= NEEDED:
                    used[run], decision[run] = at, 1 if below > above else -1
                    break
        yield f"{100 * lost:g} % worse, {100 * won:g} % better", decision, used


def fixed_rate(rate: float, most: int) -> str:
    """Samples with which an exact one-sided test of 5 % finds the rate in 80 % of the cases."""
    if rate == LIMIT:
        return "-"
    for samples in np.unique(np.geomspace(20, most, 400).astype(int)):
        if rate > LIMIT:
            least = stats.binom.isf(ALPHA, samples, LIMIT) + 1
            power = stats.binom.sf(least - 1, samples, rate)
        else:
            most_flips = stats.binom.ppf(ALPHA, samples, LIMIT) - 1
            power = stats.binom.cdf(most_flips, samples, rate) if most_flips >= 0 else 0
        if power >= 0.8:
            return f"{samples:,}"
    return f"> {most:,}"


def fixed_delta(lost: float, won: float, most: int) -> str:
    """The same for a paired difference, by the normal approximation."""
    away = abs(won - lost + LIMIT)
    if away < 1e-12 or not lost + won:
        return "-"
    spread = lost + won - (won - lost) ** 2
    needed = math.ceil((stats.norm.isf(ALPHA) + stats.norm.isf(0.2)) ** 2 * spread / away**2)
    return f"{max(needed, 1):,}" if needed <= most else f"> {most:,}"


def table(
    found: Iterator[tuple[str, np.ndarray, np.ndarray]],
    truths: list[float],
    fixed: list[str],
    head: str,
) -> None:
    """Print one table; above 0 the gate should fail, below 0 it should pass, at 0 neither."""
    print(f"| {head} | decided, % | wrong, % | images, median | p90 | fixed sample |")
    print("| --- | --- | --- | --- | --- | --- |")
    for (name, decision, used), truth, alone in zip(found, truths, fixed, strict=True):
        wrong = (decision != 0) if truth == 0 else (decision == -np.sign(truth))
        median, late = np.percentile(used, [50, 90])
        print(
            f"| {name} | {100 * (decision != 0).mean():.1f} | {100 * wrong.mean():.2f} | "
            f"{median:,.0f} | {late:,.0f} | {alone} |",
            flush=True,
        )


def _zero(value: float) -> float:
    return 0.0 if abs(value) < 1e-12 else value


def main() -> None:
    """Read the command line, and print both tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--most", type=int, default=50_000)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    table(
        rates(given.runs, given.most, given.seed),
        [_zero(rate - LIMIT) for rate in RATES],
        [fixed_rate(rate, given.most) for rate in RATES],
        "true flip rate",
    )
    print()
    table(
        deltas(given.runs, given.most, given.seed),
        [_zero(lost - won - LIMIT) for lost, won in DELTAS],
        [fixed_delta(lost, won, given.most) for lost, won in DELTAS],
        "answers",
    )


if __name__ == "__main__":
    main()
