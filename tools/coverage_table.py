"""How often intervals of few samples hold the truth: a table of docs/statistics.md.

    python tools/coverage_table.py [--runs 2000] [--case NAME]

Samples are drawn from populations whose figure is known: parts of a sample that change (objects,
words; those of one sample go together), and a metric of fractions that moves. Beside the interval
that runs have stands BCa's of the same samples (``scipy.stats.bootstrap``).
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable

import numpy as np
from scipy import stats

from simulator.statistics.bootstrap import (
    DIFFERENCE,
    RATE,
    Bounds,
    Floats,
    Ratio,
    Resamples,
    interval,
)

SIZES = (24, 40, 60, 200)
DRAWS = 1000
Drawn = tuple[Floats, Floats]
"""Numerators and denominators, (n,) each."""


def parts(rate: float, most: int) -> Callable[[np.random.Generator, int], Drawn]:
    """Return what draws samples of 1 to *most* parts; in each its own share of them changes."""

    def draw(random: np.random.Generator, n: int) -> Drawn:
        units = random.integers(1, most + 1, n)
        shares = random.beta(rate, 1 - rate, n)  # of mean *rate*, and far apart
        return random.binomial(units, shares).astype(float), units.astype(float)

    return draw


def moves(random: np.random.Generator, n: int) -> Drawn:
    """A metric of fractions: three of four samples keep it, the others lose 0.2 on average."""
    return np.where(random.random(n) < 0.25, -random.beta(2, 8, n), 0.0), np.ones(n)


CASES: dict[str, tuple[Callable[[np.random.Generator, int], Drawn], float, Bounds]] = {
    "1 to 10 objects, 10 % change": (parts(0.1, 10), 0.1, RATE),
    "1 to 10 objects, 2 % change": (parts(0.02, 10), 0.02, RATE),
    "5 to 20 words, 30 % change": (parts(0.3, 20), 0.3, RATE),
    "a metric loses 5 points": (moves, -0.05, DIFFERENCE),
}


def bca(above: Floats, below: Floats, seed: int) -> tuple[float, float]:
    """Return BCa's interval; NaN where it is not defined."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = stats.bootstrap(
            (above, below), lambda a, b, axis: a.sum(axis) / b.sum(axis), paired=True,
            n_resamples=DRAWS, method="BCa", rng=np.random.default_rng(seed),
        ).confidence_interval  # fmt: skip
    return found.low, found.high


def coverage(case: str, n: int, runs: int) -> tuple[float, float]:
    """Return the share of intervals that hold the truth: those of runs, and BCa's."""
    draw, truth, bounds = CASES[case]
    random, held = np.random.default_rng(0), np.zeros(2)
    for run in range(runs):
        above, below = draw(random, n)
        figure = Resamples(n, run, DRAWS).of(Ratio(above, below))
        ends = interval(figure, DRAWS, bounds), bca(above, below, run)
        held += [low <= truth <= high for low, high in ends]
    return held[0] / runs, held[1] / runs


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--case", action="append", choices=CASES, help="default: all")
    options = parser.parse_args()
    print("| coverage, % | " + " | ".join(f"{n}, percentiles | {n}, BCa" for n in SIZES) + " |")
    print("| --- |" + " --- |" * (2 * len(SIZES)))
    for case in options.case or CASES:
        cells = [f"{100 * one:.1f}" for n in SIZES for one in coverage(case, n, options.runs)]
        print(f"| {case} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
