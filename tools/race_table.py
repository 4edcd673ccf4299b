"""Simulate sweeps that drop options early: the tables of docs/statistics.md.

    python tools/race_table.py [--runs 2000] [--most 5000]

Twelve options change answers with true rates. Half of each option's changes are drawn with an
image's own number, which all options share, since images near a decision flip under many.
``wrong``: the answer is against the truth (the true worst was dropped; an option passes that should
fail, or fails that should pass). ``work``: options times images, against running every option on
all images.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator
from functools import cache

import numpy as np

from simulator.experiments.decision import ALPHA
from simulator.experiments.race import rounds
from simulator.experiments.worst import ways_to
from simulator.statistics.anytime import Evidence, Range

FEW = (0.03, 0.025, 0.02, 0.02, 0.015, 0.01, 0.01, 0.005, 0.005, 0.002, 0.0)
SCENARIOS = {
    "one at 12 %, others 0 to 3 %": (0.12, *FEW),
    "one at 8 %, others 0 to 3 %": (0.08, *FEW),
    "one at 5 %, others 0 to 3 %": (0.05, *FEW),
    "8 % and 7 %, others 0 to 3 %": (0.08, 0.07, *FEW[:10]),
    "twice 8 %, others 0 to 3 %": (0.08, 0.08, *FEW[:10]),
    "one at 1.5 %, others 1 %": (0.015, *[0.01] * 11),
    "all at 3 %": (0.03,) * 12,
}
LIMIT = 0.02
GATES = {
    "all far below: 0 to 0.5 %": (0.0,) * 6 + (0.005,) * 6,
    "all far above: 6 to 12 %": (0.06,) * 6 + (0.12,) * 6,
    "half 0.5 %, half 6 %": (0.005,) * 6 + (0.06,) * 6,
    "0 to 8 %, one at 2 %": (0.08, 0.06, 0.04, 0.03, 0.02, 0.015, *FEW[4:10]),
    "all at 2 %": (0.02,) * 12,
}


def drawn(rates: tuple[float, ...], most: int, random: np.random.Generator) -> np.ndarray:
    """Return (options, most) whether an answer changes."""
    shared = random.random(most)
    own = random.random((len(rates), most))
    mine = random.random((len(rates), most)) < 0.5
    return np.where(mine, own, shared) < np.array(rates)[:, None]


@cache
def is_better(less: int, more: int, options: int, alpha: float) -> bool:
    """Whether an option that alone changed *less* answers is dropped; equal ones say nothing."""
    found = Evidence(Range(-1.0, 1.0))
    found._counts.update({0.0: less, 1.0: more})
    return found.against(0.0)[1] >= math.log((options - 1) / alpha)


def worst(flips: np.ndarray, alpha: float = ALPHA) -> tuple[list[int], int, int]:
    """Return the options left, the images used, and options times images; as ``Worst`` does it.

    The worst so far is the first of those left.
    """
    alive, used, work = list(range(len(flips))), 0, 0
    for start, stop in rounds(flips.shape[1]):
        if len(alive) == 1:
            break
        used, work = stop, work + len(alive) * (stop - start)
        seen = flips[alive, :stop]
        leader = seen[int(seen.sum(axis=1).argmax())]
        less, more = (leader & ~seen).sum(axis=1), (seen & ~leader).sum(axis=1)
        alive = [
            one
            for one, a, b in zip(alive, less, more, strict=True)
            if not (a + b and is_better(int(a), int(b), len(flips), alpha))
        ]
    return sorted(alive, key=lambda one: -flips[one, :used].sum()), used, work


@cache
def verdict(flips: int, images: int, options: int) -> int:
    """1: it fails, -1: it passes, 0: not decided."""
    found = Evidence(Range(0.0, 1.0))
    found._counts.update({1.0: flips, 0.0: images - flips})
    above, below = found.against(LIMIT)
    needed = math.log(options / ALPHA)
    return int(above >= needed) - int(below >= needed)


def gates(flips: np.ndarray) -> tuple[np.ndarray, int, int]:
    """Return the decision on each option; here looked at after each round, not each image."""
    found, used, work = np.zeros(len(flips), int), 0, 0
    for start, stop in rounds(flips.shape[1]):
        alive = np.flatnonzero(found == 0)
        if not alive.size:
            break
        used, work = stop, work + alive.size * (stop - start)
        for one in alive:
            found[one] = verdict(int(flips[one, :stop].sum()), stop, len(flips))
    return found, used, work


def worst_rows(runs: int, most: int, seed: int) -> Iterator[tuple[str, np.ndarray]]:
    """Yield for each scenario rows of: wrong, answered, images, share of the work."""
    random = np.random.default_rng(seed)
    for name, rates in SCENARIOS.items():
        true = {at for at, rate in enumerate(rates) if rate == max(rates)}
        rows = []
        for _ in range(runs):
            alive, used, work = worst(drawn(rates, most, random))
            rows.append((not true & {*alive}, len(alive) == 1, used, work / most / len(rates)))
        yield name, np.array(rows, float)


def gate_rows(runs: int, most: int, seed: int) -> Iterator[tuple[str, np.ndarray]]:
    """The same for the rule; an option exactly at the limit is wrong either way."""
    random = np.random.default_rng(seed)
    for name, rates in GATES.items():
        truth = np.sign(np.round(np.array(rates) - LIMIT, 9))
        rows = []
        for _ in range(runs):
            found, used, work = gates(drawn(rates, most, random))
            wrong = ((found != 0) & (found != truth)).any()
            rows.append((wrong, (found != 0).all(), used, work / most / len(rates)))
        yield name, np.array(rows, float)


def path_rows(runs: int, most: int, seed: int) -> Iterator[tuple[str, np.ndarray]]:
    """The same for two steps of a worst case: two columns of six options, one of each combined.

    A combination changes what either option changes. *Wrong*: in a step, its true worst is dropped.
    """
    random = np.random.default_rng(seed)
    halves = [range(6), range(6, 12)]
    for name, rates in SCENARIOS.items():
        rows = []
        for _ in range(runs):
            flips = drawn(rates, most, random)
            left, images, work = worst(flips, ALPHA / 2)
            true = {at for at, rate in enumerate(rates) if rate == max(rates)}
            wrong, single, taken = not true & {*left}, len(left) == 1, left[0]
            others = [*halves[taken < 6]]
            left, used, more = worst(flips[others] | flips[taken], ALPHA / 2 / ways_to(1, (6, 6)))
            best = max(rates[at] for at in others)
            wrong |= not any(rates[others[at]] == best for at in left)
            share = (work + more) / most / 18
            rows.append((wrong, single and len(left) == 1, max(images, used), share))
        yield name, np.array(rows, float)


def table(head: str, found: Iterator[tuple[str, np.ndarray]]) -> None:
    """Print one table."""
    print(f"| {head} | answered | wrong | images, median | 90 % | work, median | 90 % |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for name, rows in found:
        wrong, answered, used, work = rows.T
        images, share = np.percentile(used, [50, 90]), np.percentile(work, [50, 90])
        print(
            f"| {name} | {100 * answered.mean():.1f} % | {100 * wrong.mean():.2f} % | "
            f"{images[0]:,.0f} | {images[1]:,.0f} | {100 * share[0]:.0f} % | "
            f"{100 * share[1]:.0f} % |",
            flush=True,
        )


def main() -> None:
    """Read the command line, and print both tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--most", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    table("worst-flips: true rates", worst_rows(given.runs, given.most, given.seed))
    print()
    table("two steps of worst: true rates", path_rows(given.runs, given.most, given.seed))
    print()
    table("gate, flip_rate > 2 %: true rates", gate_rows(given.runs, given.most, given.seed))


if __name__ == "__main__":
    main()
