"""Whose fault is it: blame per axis, from the answers of every mixture of two stacks.

A game gives every set of swapped axes a value per image: 1 where the mixture is right (for the
accuracy) or where it flips (for the flip rate). All figures here are means over images of
quantities that are linear in those values, so one bootstrap over images, with the same indices
for all of them, gives every interval.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Subset = frozenset[str]
Game = Callable[[Subset], Floats]
"""The per-image values of the training stack with these axes swapped, (n,) float64."""

EXACT_AXES = 8
RESAMPLES = 4000
ROUNDING = 1e-12
"""Smaller means are sums that cancel: zero, up to float64."""


@dataclass(frozen=True, slots=True)
class Effect:
    """A mean over images with its paired bootstrap interval.

    Attributes:
        value: the mean.
        ci95: percentile interval.
        p: two-sided bootstrap p-value against zero, at least 2 / (resamples + 1).
    """

    value: float
    ci95: tuple[float, float]
    p: float


@dataclass(frozen=True, slots=True)
class Shapley:
    """Shapley values of a game, image by image.

    Attributes:
        values: (axes, n): each axis' share of the difference on each image.
        error: largest standard error of an axis' mean share that comes from sampling
            permutations; 0 where all subsets were used.
    """

    values: Floats
    error: float


def shapley(axes: Sequence[str], game: Game, permutations: int = 64, seed: int = 0) -> Shapley:
    """Split the difference between all axes swapped and none among the axes.

    Args:
        axes: the axes that differ, each once.
        game: per-image values of every subset.
        permutations: how many orders are sampled beyond :data:`EXACT_AXES` axes; each is used
            forwards and backwards.
        seed: of that sampling.

    Returns:
        Per image and axis; over the axes they sum to ``game(all) - game(none)`` exactly.

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
    spread = stack.mean(axis=2).std(axis=0, ddof=1) / math.sqrt(permutations)
    return Shapley(stack.mean(axis=0), float(spread.max()))


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
    """Return all subsets, small ones first."""
    sizes = range(len(axes) + 1)
    return [frozenset(s) for size in sizes for s in itertools.combinations(axes, size)]


def swap_in(axes: Sequence[str], game: Game) -> Floats:
    """Return (axes, n): what each axis does alone to the training stack."""
    none = game(frozenset())
    return np.stack([game(frozenset({axis})) - none for axis in axes])


def swap_out(axes: Sequence[str], game: Game) -> Floats:
    """Return (axes, n): what the deployment stack gets back if one axis is repaired."""
    everything = frozenset(axes)
    whole = game(everything)
    return np.stack([game(everything - {axis}) - whole for axis in axes])


def waterfall(axes: Sequence[str], game: Game) -> Floats:
    """Return (axes, n): what each axis adds when they are swapped one after the other."""
    return _marginals(axes, axes, game)


def interactions(axes: Sequence[str], game: Game) -> dict[tuple[str, str], Floats]:
    """Return per pair and image what two axes do together beyond what each does alone."""
    none = game(frozenset())
    alone = {axis: game(frozenset({axis})) - none for axis in axes}
    return {
        (a, b): game(frozenset({a, b})) - none - alone[a] - alone[b]
        for a, b in itertools.combinations(axes, 2)
    }


def effects(rows: Floats, seed: int = 0) -> list[Effect]:
    """Bootstrap the means of several per-image quantities with the same resampled images.

    Args:
        rows: (m, n): m quantities on n images.
        seed: of the resampling.

    Returns:
        One effect per quantity.
    """
    m, n = rows.shape
    rng = np.random.default_rng(seed)
    means = np.empty((RESAMPLES, m))
    batch = max(1, 2_000_000 // max(n, 1))
    for start in range(0, RESAMPLES, batch):
        size = min(batch, RESAMPLES - start)
        counts = rng.multinomial(n, np.full(n, 1 / n), size=size)
        means[start : start + size] = counts @ rows.T / n
    means[np.abs(means) < ROUNDING] = 0.0
    low, high = np.quantile(means, [0.025, 0.975], axis=0)
    tails = np.minimum((means <= 0).sum(axis=0), (means >= 0).sum(axis=0))
    p = np.minimum(1.0, 2 * (tails + 1) / (RESAMPLES + 1))
    return [
        Effect(float(rows[i].mean()), (float(low[i]), float(high[i])), float(p[i]))
        for i in range(m)
    ]


def holm(p_values: Mapping[str, float]) -> dict[str, float]:
    """Adjust a family of p-values so that any false claim among them is as rare as one alone.

    Source:
        Holm 1979: sort ascending, multiply the i-th (from 0) by m - i, keep the running maximum.
    """
    adjusted: dict[str, float] = {}
    running = 0.0
    for index, name in enumerate(sorted(p_values, key=lambda name: p_values[name])):
        running = max(running, min(1.0, (len(p_values) - index) * p_values[name]))
        adjusted[name] = running
    return adjusted
