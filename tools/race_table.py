"""Simulate runs that drop options early: docs/statistics.md shows some rows.

    python tools/race_table.py [--runs 2000] [--most 5000]

Options change answers with true rates. Half of each option's changes are drawn with an image's own
number, which all options share, since images near a decision flip under many. ``wrong``: the
answer is against the truth (the true worst was dropped; an option passes that should fail, or fails
that should pass; the cheapest that passes was dropped, or another one is the answer). ``work``:
options times images, against running every option on all images. ``fixed sample``: the images with
which tests that look once, with the same correction for their number, give the whole answer in 80 %
of the runs. `tests/experiments/test_race_simulated.py` holds the simulation against the code that
drops options.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import starmap

import numpy as np
from scipy import special, stats

from simulator.experiments.search.stopping import ALPHA, LEAST, rounds
from simulator.experiments.worst.run import ways_to
from simulator.statistics.anytime import Evidence, Range, _alternatives

CHUNK = 50
"""Runs that are simulated at once."""
POWER = 0.8
"""Of a fixed sample: the share of runs in which it gives the answer."""
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
"""Of a sweep; under several conditions these are how much more is lost than by the first stack."""
GAINED = 0.02
"""Of a robustness run: answers that are right under a cell and wrong in the first stack."""
LOW = (0.01, 0.005, 0.005, 0.002, 0.0)
PATHS = {
    "12 % and 8 %, others 0 to 1 %": (0.12, *LOW, 0.08, *LOW),
    "12 % and 2 %, others 0 to 1 %": (0.12, *LOW, 0.02, *LOW),
    "8 % and 7 %, others 0 to 1 %": (0.08, *LOW, 0.07, *LOW),
    "twice 8 %, others 0 to 1 %": (0.08, *LOW, 0.08, *LOW),
    "one at 1.5 %, others 1 %": (0.015, *[0.01] * 11),
    "all at 3 %": (0.03,) * 12,
}
"""Of two columns with six options each."""
LIMIT = 0.02
GATES = {
    "all far below: 0 to 0.5 %": (0.0,) * 6 + (0.005,) * 6,
    "all far above: 6 to 12 %": (0.06,) * 6 + (0.12,) * 6,
    "half 0.5 %, half 6 %": (0.005,) * 6 + (0.06,) * 6,
    "0 to 8 %, one at 2 %": (0.08, 0.06, 0.04, 0.03, 0.02, 0.015, *FEW[4:10]),
    "all at 2 %": (0.02,) * 12,
}
REPAIRS = {
    "11 at 6 to 12 %, the answer 0 %": (*[0.12] * 6, *[0.06] * 5, *[0.0] * 13),
    "11 at 6 to 12 %, the answer 0.5 %": (*[0.12] * 6, *[0.06] * 5, *[0.005] * 13),
    "11 at 4 %, the answer 1 %": (*[0.04] * 11, *[0.01] * 13),
    "11 at 3 %, the answer 1.5 %": (*[0.03] * 11, *[0.015] * 13),
    "11 at 2 %, the answer 0.5 %": (*[0.02] * 11, *[0.005] * 13),
    "the cheapest is the answer: 0.5 %": (0.005, *[0.0] * 23),
    "none passes: 6 to 12 %": (*[0.12] * 12, *[0.06] * 12),
    "none passes: 2 %": (0.02,) * 24,
}
"""Of 24 stacks, the cheapest first."""


@dataclass(frozen=True, slots=True)
class Runs:
    """What came of some runs; each field is (runs,).

    Attributes:
        wrong: whether the answer is against the truth.
        answered: whether there is one.
        images: that were used.
        work: the share of all options on all images.
        fixed: (runs, rounds) whether one look at the end of that round gives the answer.
    """

    wrong: np.ndarray
    answered: np.ndarray
    images: np.ndarray
    work: np.ndarray
    fixed: np.ndarray | None = None


def drawn(rates: Sequence[float], runs: int, most: int, random: np.random.Generator) -> np.ndarray:
    """Return (runs, options, most) whether an answer changes."""
    shape = runs, len(rates), most
    shared, own = random.random((runs, 1, most), np.float32), random.random(shape, np.float32)
    mine = random.integers(0, 2, shape, np.uint8).astype(bool)
    return np.where(mine, own, shared) < np.array(rates, np.float32)[:, None]


@dataclass(slots=True)
class Pairs:
    """How often the difference of two options has which value, of all pairs of options.

    Options have -1, 0 or 1 on an image; (runs, options, options) counts of the samples so far.
    """

    plus: np.ndarray | float = 0.0
    minus: np.ndarray | float = 0.0
    across: np.ndarray | float = 0.0

    def add(self, values: np.ndarray) -> None:
        """Take (runs, options, samples) values."""
        up, down = ((values == one).astype(np.float32) for one in (1, -1))
        self.plus = self.plus + up @ up.swapaxes(1, 2)
        self.minus = self.minus + down @ down.swapaxes(1, 2)
        self.across = self.across + up @ down.swapaxes(1, 2)

    def sums(self) -> np.ndarray:
        """Return (runs, options) sums of values."""
        up, down = (np.diagonal(one, axis1=1, axis2=2) for one in (self.plus, self.minus))
        return up - down

    def less(self, to: np.ndarray) -> np.ndarray:
        """Return (runs, options, 4) how often an option lies by -2, -1, 1, 2 above another one.

        Args:
            to: (runs,) that other one.
        """
        at = np.arange(len(to))
        up, down = (np.diagonal(one, axis1=1, axis2=2) for one in (self.plus, self.minus))
        both, neither = self.plus[at, :, to], self.minus[at, :, to]
        mine, its = self.across[at, :, to], self.across[at, to, :]  # up and down; down and up
        up_to, down_to = up[at, to][:, None], down[at, to][:, None]
        lower = (down - neither - its) + (up_to - both - its)
        higher = (up - both - mine) + (down_to - neither - mine)
        return np.stack([its, lower, higher, mine], -1)


def is_less(counts: np.ndarray, span: float, needed: float) -> np.ndarray:
    """Return (...) whether who bets on "less" has the capital that he needs, as in `Evidence`.

    Args:
        counts: (..., 4) of the differences -2, -1, 1, 2.
        span: the largest difference that is possible.
        needed: the logarithm of the capital.
    """
    other, flat = _alternatives(0.5, False), counts.reshape(-1, 4)
    steps = np.clip(np.array([-2.0, -1.0, 1.0, 2.0]), -span, span) / span
    worth = np.log1p(np.outer(steps, 2 * other - 1))
    # log(1 + u) is at most u, and at most u - u**2 / 2 + u**3 / 3: most rows are far from it
    total, square, cube = (flat @ steps**power for power in (1, 2, 3))
    most = 2 * square - 4 * np.abs(cube) / 3
    found = (-total >= needed) & ((most <= 0) | (total**2 >= needed * most))
    each = flat[found] @ worth
    found[found] = special.logsumexp(each, axis=1) - math.log(len(other)) >= needed
    return found.reshape(counts.shape[:-1])


def worst(
    values: np.ndarray, alpha: float = ALPHA, span: float = 1.0
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Find the worst option of each run, as ``Worst`` does it.

    Args:
        values: (runs, options, samples) how bad an option is on a sample.
        alpha: the probability that the worst is dropped, at most.
        span: the largest difference that is possible.

    Returns:
        (runs, options) which are left, (runs,) the worst of them so far, the samples that were
        used, options times samples, and (runs, rounds) whether one look would have been enough.
    """
    runs, options, most = values.shape
    alive, pairs = np.ones((runs, options), bool), Pairs()
    used, work = np.zeros(runs, int), np.zeros(runs, int)
    leader, fixed = np.zeros(runs, int), []
    at, needed = np.arange(runs), math.log(max(options - 1, 1) / alpha)
    z = stats.norm.isf(alpha / max(options - 1, 1))
    for start, stop in rounds(most):
        pairs.add(values[:, :, start:stop])
        going = alive.sum(axis=1) > 1
        used[going], sums = stop, pairs.sums()
        work[going] += alive[going].sum(axis=1) * (stop - start)
        now = np.where(alive, sums, -np.inf).argmax(axis=1)
        leader = np.where(going, now, leader)
        better = is_less(pairs.less(leader)[going], span, needed)
        better[np.arange(len(better)), leader[going]] = False
        alive[going] &= ~better
        fixed.append(_clear(pairs.less(sums.argmax(axis=1)), stop, z, at, sums.argmax(axis=1)))
    return alive, leader, used, work, np.stack(fixed, 1)


def _clear(
    counts: np.ndarray, samples: int, z: float, at: np.ndarray, first: np.ndarray
) -> np.ndarray:
    """Whether the first option is worse than each other one, by a paired test that looks once."""
    steps = np.array([-2.0, -1.0, 1.0, 2.0])
    mean, square = counts @ steps / samples, counts @ steps**2 / samples
    far = -mean * math.sqrt(samples) >= z * np.sqrt(np.maximum(square - mean**2, 1e-12))
    far[at, first] = True
    return far.all(axis=1)


@cache
def limits(most: int, options: int) -> tuple[np.ndarray, np.ndarray]:
    """Return for 0 to *most* images the most flips that pass, and the fewest that fail."""
    needed = math.log(options / ALPHA)
    passes, fails = np.full(most + 1, -1), np.full(most + 1, most + 1)

    def bet(flips: int, images: int) -> tuple[float, float]:
        found = Evidence(Range(0.0, 1.0))
        found._counts.update({1.0: flips, 0.0: images - flips})
        return found.against(LIMIT)

    low, high = -1, 0
    for images in range(LEAST, most + 1):
        while low + 1 <= images and bet(low + 1, images)[1] >= needed:
            low += 1
        while high <= images and bet(high, images)[0] < needed:
            high += 1
        passes[images], fails[images] = low, high
    return passes, fails


def decided(flips: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return (runs, options) after how many images each gate is decided, and as what.

    A gate is looked at after each image: 1: it passes, -1: it fails, 0: it is not decided.
    """
    most = flips.shape[2]
    passes, fails = limits(most, flips.shape[1])
    seen = flips.cumsum(axis=2, dtype=np.int32)
    well, badly = seen <= passes[1:], seen >= fails[1:]
    over = well | badly
    when = np.where(over.any(axis=2), over.argmax(axis=2), most - 1)
    how = np.take_along_axis(well.astype(int) - badly, when[:, :, None], 2)[:, :, 0]
    return when + 1, how


def raced(when: np.ndarray, how: np.ndarray, most: int, ordered: bool) -> tuple[np.ndarray, ...]:
    """Drop options at the end of rounds, as ``Gates`` and ``Cheapest`` do it.

    Args:
        when: see :func:`decided`.
        how: likewise.
        most: images.
        ordered: whether an option is dropped when a cheaper one passes; the first is the cheapest.

    Returns:
        (runs, options) the verdicts that were reached, (runs,) images, and options times images.
    """
    alive, found = np.ones(when.shape, bool), np.zeros(when.shape, int)
    used, work = np.zeros(len(when), int), np.zeros(len(when), int)
    for start, stop in rounds(most):
        used[alive.any(axis=1)] = stop
        work += alive.sum(axis=1) * (stop - start)
        now = alive & (when <= stop)
        found[now] = how[now]
        alive &= found == 0
        if ordered:
            alive &= ~np.logical_or.accumulate(found == 1, axis=1)
    return found, used, work


def first_passing(passing: np.ndarray, failing: np.ndarray) -> np.ndarray:
    """Return the cheapest that passes where all cheaper ones fail; -1: none; -2: not answered."""
    options = passing.shape[-1]
    where = np.where(passing.any(axis=-1), passing.argmax(axis=-1), options)
    cheaper = np.arange(options) < where[..., None]
    sure = (failing | ~cheaper).all(axis=-1)
    return np.where(sure, np.where(where == options, -1, where), -2)


def once(flips: np.ndarray, ends: Sequence[int]) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield at each end (runs, options) whether an exact test that looks once passes, and fails."""
    alpha = ALPHA / flips.shape[1]
    seen = flips.cumsum(axis=2, dtype=np.int32)
    for end in ends:
        count = seen[:, :, end - 1]
        above = np.where(count > 0, special.bdtrc(np.maximum(count - 1, 0), end, LIMIT), 1.0)
        yield special.bdtr(count, end, LIMIT) <= alpha, above <= alpha


def sweep_runs(rates: Sequence[float], flips: np.ndarray) -> Runs:
    """Ask which option is the worst."""
    true = np.array(rates) == max(rates)
    left, _, used, work, fixed = worst(flips.astype(np.int8))
    share = work / flips.shape[2] / len(rates)
    return Runs(~left[:, true].any(axis=1), left.sum(axis=1) == 1, used, share, fixed)


def cell_runs(rates: Sequence[float], values: np.ndarray) -> Runs:
    """Ask which cell of a robustness run loses most; see :func:`lost`."""
    true = np.array(rates) == max(rates)
    left, _, used, work, fixed = worst(values, span=2.0)
    share = work / values.shape[2] / len(rates)
    return Runs(~left[:, true].any(axis=1), left.sum(axis=1) == 1, used, share, fixed)


def lost(rates: Sequence[float], runs: int, most: int, random: np.random.Generator) -> np.ndarray:
    """Return (runs, options, most) what a cell loses more than the first stack: -1, 0 or 1."""
    down = drawn([one + GAINED for one in rates], runs, most, random)
    up = random.random(down.shape, np.float32) < GAINED / (1 - np.array(rates) - GAINED)[:, None]
    return down.astype(np.int8) - (up & ~down)


def path_runs(rates: Sequence[float], flips: np.ndarray) -> Runs:
    """Ask for the worst of two steps; a combination changes what either option changes."""
    runs, half = len(flips), len(rates) // 2
    left, taken, used, work, _ = worst(flips.astype(np.int8), ALPHA / 2)
    true = np.array(rates) == max(rates)
    others = np.where(taken[:, None] < half, np.arange(half, 2 * half), np.arange(half))
    at = np.arange(runs)
    both = flips[at[:, None], others] | flips[at, taken][:, None]
    again, _, more, further, _ = worst(both.astype(np.int8), ALPHA / 2 / ways_to(1, (half, half)))
    second = np.array(rates)[others]
    lost_second = ~(again & (second == second.max(axis=1, keepdims=True))).any(axis=1)
    single = (left.sum(axis=1) == 1) & (again.sum(axis=1) == 1)
    share = (work + further) / flips.shape[2] / (3 * half)
    wrong = ~left[:, true].any(axis=1) | lost_second
    return Runs(wrong, single, np.maximum(used, more), share)


def gate_runs(rates: Sequence[float], flips: np.ndarray) -> Runs:
    """Ask which options pass; an option exactly at the limit is wrong either way."""
    truth = -np.sign(np.round(np.array(rates) - LIMIT, 9))
    found, used, work = raced(*decided(flips), flips.shape[2], ordered=False)
    ends = [stop for _, stop in rounds(flips.shape[2])]
    fixed = [(well | badly).all(axis=1) for well, badly in once(flips, ends)]
    wrong = ((found != 0) & (found != truth)).any(axis=1)
    share = work / flips.shape[2] / len(rates)
    return Runs(wrong, (found != 0).all(axis=1), used, share, np.stack(fixed, 1))


def repair_runs(rates: Sequence[float], flips: np.ndarray) -> Runs:
    """Ask for the cheapest option that passes; at the limit it does not."""
    good = np.array(rates) < LIMIT
    true = int(good.argmax()) if good.any() else -1
    found, used, work = raced(*decided(flips), flips.shape[2], ordered=True)
    answer = first_passing(found == 1, found == -1)
    wrong = ((found == 1) & ~good).any(axis=1)
    if true >= 0:
        wrong |= found[:, true] == -1
    ends = [stop for _, stop in rounds(flips.shape[2])]
    fixed = list(starmap(first_passing, once(flips, ends)))
    share = work / flips.shape[2] / len(rates)
    return Runs(wrong, answer != -2, used, share, np.stack(fixed, 1) == true)


Draw = Callable[[Sequence[float], int, int, np.random.Generator], np.ndarray]
TABLES: Mapping[
    str, tuple[Mapping[str, Sequence[float]], Draw, Callable[[Sequence[float], np.ndarray], Runs]]
] = {
    "worst-flips: true rates": (SCENARIOS, drawn, sweep_runs),
    "gate, flip_rate > 2 %: true rates": (GATES, drawn, gate_runs),
    "robustness, worst-drop: lost more": (SCENARIOS, lost, cell_runs),
    "two steps of worst: true rates": (PATHS, drawn, path_runs),
    "repair, flip_rate < 2 %: true rates": (REPAIRS, drawn, repair_runs),
}
"""By what stands above the first column."""


def table(head: str, runs: int, most: int, seed: int) -> Iterator[str]:
    """Yield the lines of one table."""
    scenarios, draw, ask = TABLES[head]
    random = np.random.default_rng(seed)
    ends = [stop for _, stop in rounds(most)]
    yield (
        f"| {head} | answered, % | wrong, % | images, median | p90 | work, %, median | p90 | "
        "fixed sample |"
    )
    yield "| --- | --- | --- | --- | --- | --- | --- | --- |"
    for name, rates in scenarios.items():
        sizes = [min(CHUNK, runs - start) for start in range(0, runs, CHUNK)]
        found = [ask(rates, draw(rates, size, most, random)) for size in sizes]
        wrong, answered, used, work = (
            np.concatenate([getattr(one, field) for one in found])
            for field in ("wrong", "answered", "images", "work")
        )
        images, share = np.percentile(used, [50, 90]), np.percentile(work, [50, 90])
        fixed = "-"
        if found[0].fixed is not None:
            enough = np.concatenate([one.fixed for one in found]).mean(axis=0) >= POWER
            fixed = f"{ends[int(enough.argmax())]:,}" if enough.any() else f"> {most:,}"
        yield (
            f"| {name} | {100 * answered.mean():.1f} | {100 * wrong.mean():.2f} | "
            f"{images[0]:,.0f} | {images[1]:,.0f} | {100 * share[0]:.0f} | "
            f"{100 * share[1]:.0f} | {fixed} |"
        )


def main() -> None:
    """Read the command line and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--most", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", choices=TABLES, default=None, help="one table")
    given = parser.parse_args()
    for head in [given.only] if given.only else TABLES:
        for line in table(head, given.runs, given.most, given.seed):
            print(line, flush=True)
        print()


if __name__ == "__main__":
    main()
