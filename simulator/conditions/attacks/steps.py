"""The arithmetic of gradient attacks: what each norm means for a start, a step and a budget.

All functions take pixels in [0, 1] and return new arrays.

Sources:
    Goodfellow et al., ICLR 2015 (FGSM); Madry et al., ICLR 2018 (PGD); Duchi et al., ICML 2008,
    figure 1 (projection onto the L1 ball); Calafiore et al., CDC 1998 (uniform draws from a ball).
    Checked against foolbox 3.3.4, ``LinfFastGradientAttack`` and ``L*ProjectedGradientDescent``.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

F32 = NDArray[np.float32]
F64 = NDArray[np.float64]
U8 = NDArray[np.uint8]
LINF, L2, L1 = "linf", "l2", "l1"
NORMS = (LINF, L2, L1)
Gradients = Callable[[F32], F32]
"""From pixels to the derivative of the loss, of the same shape."""
_NEAR = 1e-5
"""A length may be longer by this share: float32 rounds."""
_TINY = 1e-12
"""A gradient with a smaller norm is not scaled up any more, as in foolbox."""


def length(values: NDArray[np.floating], norm: str) -> float:
    """Return the norm of an array."""
    if not values.size:
        return 0.0
    wide = np.abs(values, dtype=np.float64)
    if norm == LINF:
        return float(wide.max())
    return float(np.sqrt((wide**2).sum()) if norm == L2 else wide.sum())


def direction(gradient: F32, norm: str) -> F64:
    """Return the step of length 1 that follows a gradient: its sign, or its share of the norm."""
    if norm == LINF:
        return np.sign(gradient.astype(np.float64))
    found: F64 = gradient.astype(np.float64) / max(length(gradient, norm), _TINY)
    return found


def projected(change: F64, norm: str, budget: float) -> F64:
    """Return the nearest change that is not longer than *budget*."""
    if norm == LINF:
        return np.clip(change, -budget, budget)
    longest = length(change, norm)
    if longest <= budget:
        return change
    if norm == L2:
        return np.asarray(change * (budget / longest))
    sizes = np.abs(change)
    order = np.sort(sizes, axis=None)[::-1]
    above = (np.cumsum(order) - budget) / np.arange(1, order.size + 1)
    cut = above[np.flatnonzero(order > above)[-1]]
    return np.asarray(np.sign(change) * np.maximum(sizes - cut, 0))


def drawn(shape: tuple[int, ...], norm: str, budget: float, rng: np.random.Generator) -> F64:
    """Draw a change uniformly from the ball of radius *budget*."""
    if norm == LINF:
        return rng.uniform(-budget, budget, shape)
    size = int(np.prod(shape))
    if norm == L2:
        normal = rng.normal(size=size + 2)
        return np.asarray(budget * normal[:size] / length(normal, L2)).reshape(shape)
    wide = rng.exponential(size=size + 1)
    signs = rng.choice((-1.0, 1.0), size)
    return np.asarray(budget * signs * wide[:size] / wide.sum()).reshape(shape)


def inside(clean: F32, change: F64) -> F32:
    """Return the changed pixels, clipped to [0, 1]."""
    return np.clip(clean + change, 0, 1).astype(np.float32)


def within(levels: U8, clean: U8, exact: F32, norm: str, budget: float) -> U8:
    """Return rounded pixels that are no further from the clean ones than the budget.

    Those that the rounding moved away from the clean pixels go back by one level, those that it
    moved furthest first, until the budget holds.

    Args:
        levels: *exact* in whole levels, 0 to 255.
        clean: likewise.
        exact: in [0, 1], within the budget.
        norm: ``linf``, ``l2`` or ``l1``.
        budget: a length in [0, 1].
    """
    moved = levels.astype(np.int64) - clean
    sizes, most = np.abs(moved), budget * 255 * (1 + _NEAR)
    overshoot = sizes - np.abs(exact.astype(np.float64) * 255 - clean)
    if norm == LINF:
        return np.asarray(levels - np.where(sizes > most, np.sign(moved), 0), np.uint8)
    gains = 2 * sizes - 1 if norm == L2 else np.ones_like(sizes)
    excess = (sizes**2).sum() - most**2 if norm == L2 else sizes.sum() - most
    if excess <= 0:
        return levels
    order = np.argsort(-overshoot, axis=None, kind="stable")
    order = order[overshoot.flat[order] > 0]
    count = int(np.searchsorted(np.cumsum(gains.flat[order]), excess)) + 1
    found = levels.copy()
    found.flat[order[:count]] -= np.sign(moved).flat[order[:count]].astype(np.int8).view(np.uint8)
    return found


def fgsm(clean: F32, budget: float, gradients: Gradients) -> F32:
    """Take one step of the whole budget along the sign of the gradient."""
    return inside(clean, budget * direction(gradients(clean), LINF))


def pgd(
    clean: F32, start: F32, norm: str, budget: float, step: float, steps: int, gradients: Gradients
) -> F32:
    """Follow the gradient, and go back into the budget and into [0, 1] after every step.

    Args:
        clean: pixels in [0, 1].
        start: where to begin, likewise.
        norm: ``linf``, ``l2`` or ``l1``.
        budget: how far from *clean* the result may be.
        step: the length of a step.
        steps: how many there are.
        gradients: of the loss, which grows.
    """
    at = start
    for _ in range(steps):
        moved = at - clean.astype(np.float64) + step * direction(gradients(at), norm)
        at = inside(clean, projected(moved, norm, budget))
    return at
