"""Attribution: what each axis contributes to a difference of two stacks.

A game (in the sense of Shapley values) gives every set of swapped axes a resampled figure
(:mod:`simulator.statistics.bootstrap`): the metric or the flip rate of that mixture, on all images
and on each of R resamples of them. All results here are linear in these figures, and every mixture
uses the same resamples, so that each result is a resampled figure with its own interval.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from simulator.statistics.bootstrap import Floats

Subset = frozenset[str]
Game = Callable[[Subset], Floats]
"""The resampled figure of the training stack with these axes swapped, (1 + R + n,)."""

EXACT_AXES = 8
"""Up to this many axes, Shapley values are exact; beyond it, permutations are sampled."""

K = TypeVar("K", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Shapley:
    """Shapley values of a game.

    Attributes:
        values: (axes, 1 + R + n), each axis's share of the difference, resampled.
        error: the largest standard error of a share due to sampling permutations; 0 where all
            subsets were used.
    """

    values: Floats
    error: float


def shapley(axes: Sequence[str], game: Game, permutations: int = 64, seed: int = 0) -> Shapley:
    """Split the difference between all axes swapped and no axis swapped among the axes.

    Args:
        axes: the axes that differ, each once.
        game: the resampled figure of every subset.
        permutations: how many permutations are sampled with more than :data:`EXACT_AXES` axes;
            each is used forwards and backwards.
        seed: of that sampling.

    Returns:
        The Shapley values; their sum over the axes is ``game(all) - game(none)``.

    Source:
        Shapley 1953; antithetic permutation sampling: Mitchell et al. 2022, section 4.2.
    """
    if len(axes) <= EXACT_AXES:
        return Shapley(_exact(axes, game), 0.0)
    rng = np.random.default_rng(seed)
    samples = []
    for _ in range(permutations):
        order = [axes[i] for i in rng.permutation(len(axes))]
        samples.append((_marginals(axes, order, game) + _marginals(axes, order[::-1], game)) / 2)
    stack = np.stack(samples)
    spread = stack.std(axis=0, ddof=1) / math.sqrt(permutations)
    return Shapley(stack.mean(axis=0), float(spread[:, 0].max()))


def _exact(axes: Sequence[str], game: Game) -> Floats:
    """Weigh every marginal contribution by |S|! (k - |S| - 1)! / k!."""
    k = len(axes)
    values = {s: game(s) for s in subsets(axes)}
    shares = []
    for axis in axes:
        rest = [other for other in axes if other != axis]
        total = np.zeros_like(values[frozenset()])
        for s in subsets(rest):
            weight = 1 / (k * math.comb(k - 1, len(s)))
            total = total + weight * (values[s | {axis}] - values[s])
        shares.append(total)
    return np.stack(shares) if shares else np.zeros((0, len(values[frozenset()])))


def _marginals(axes: Sequence[str], order: Sequence[str], game: Game) -> Floats:
    shares: dict[str, Floats] = {}
    done: Subset = frozenset()
    before = game(done)
    for axis in order:
        done |= {axis}
        after = game(done)
        shares[axis] = after - before
        before = after
    return np.stack([shares[axis] for axis in axes])


def subsets(axes: Sequence[str]) -> list[Subset]:
    """Return all subsets, the smallest first."""
    sizes = range(len(axes) + 1)
    return [frozenset(s) for size in sizes for s in itertools.combinations(axes, size)]


def swap_in(axes: Sequence[str], game: Game) -> Floats:
    """Return (axes, 1 + R + n): the change when one axis is swapped into the training stack."""
    none = game(frozenset())
    return np.stack([game(frozenset({axis})) - none for axis in axes])


def swap_out(axes: Sequence[str], game: Game) -> Floats:
    """Return (axes, 1 + R + n): what the deployment stack gets back if one axis is repaired.

    It is the figure of the deployment stack with that axis of the training stack, minus the figure
    of the deployment stack.
    """
    everything = frozenset(axes)
    whole = game(everything)
    return np.stack([game(everything - {axis}) - whole for axis in axes])


def waterfall(axes: Sequence[str], game: Game) -> Floats:
    """Return (axes, 1 + R + n): the change of each axis when all are swapped in turn."""
    return _marginals(axes, axes, game)


def interactions(axes: Sequence[str], game: Game) -> dict[tuple[str, str], Floats]:
    """Return (1 + R + n,) per pair of axes: their joint change minus the change of each alone."""
    none = game(frozenset())
    alone = {axis: game(frozenset({axis})) - none for axis in axes}
    return {
        (a, b): game(frozenset({a, b})) - none - alone[a] - alone[b]
        for a, b in itertools.combinations(axes, 2)
    }


def holm(p_values: Mapping[K, float]) -> dict[K, float]:
    """Adjust p-values for multiple tests: they control the chance of any false positive.

    Args:
        p_values: of a family of tests, by name.

    Returns:
        The adjusted p-values, at most 1, by name.

    Source:
        Holm 1979: sort ascending, multiply the i-th (from 0) by m - i, keep the running maximum.
    """
    adjusted: dict[K, float] = {}
    running = 0.0
    for index, name in enumerate(sorted(p_values, key=lambda name: p_values[name])):
        running = max(running, min(1.0, (len(p_values) - index) * p_values[name]))
        adjusted[name] = running
    return adjusted
