"""From class scores and objectness to the boxes that are worth decoding."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simulator.tasks.detection.declared import Score
from simulator.tasks.detection.ports import Numbers

Floats = NDArray[np.float64]


def candidates(
    classes: Numbers, objectness: Numbers | None, score: Score, threshold: float
) -> tuple[NDArray[np.intp], NDArray[np.int64], Floats]:
    """Return every (box, class) with a score above a threshold.

    Most boxes are dropped by their raw numbers; scores are then computed in float64 and compared
    with the threshold itself, so the result is the same as from computing all scores.

    Args:
        classes: (N, C) as the model gave them, with the background.
        objectness: (N, 1) likewise, or None.
        score: how they become scores.
        threshold: only larger scores are kept.

    Returns:
        (n,) rows, (n,) classes without the background, (n,) scores; in the order of the rows,
        then of the classes.
    """
    factor = None
    kept = _kept(classes, score)
    if not kept.size:
        return np.zeros(0, np.intp), np.zeros(0, np.int64), np.zeros(0)
    if objectness is not None and score.objectness is not None:
        own = score.objectness
        factor = _power(_activate(objectness[:, 0], own.activation), own.exponent)
        most = 1.0 if score.activation != "none" else float(_power(kept.max(), score.exponent))
        rows = np.flatnonzero(factor * most * (1 + 1e-9) > threshold)
        factor = factor[rows, None]
    else:
        rows = _possible(classes, kept, score, threshold)
    chosen = _kept(_activate(classes[rows], score.activation), score)
    scores = _power(chosen, score.exponent)
    if factor is not None:
        scores = factor * scores
    above = scores > threshold
    if score.classes == "best" and len(rows):
        above &= np.arange(above.shape[1]) == kept[rows].argmax(axis=1)[:, None]
    which, label = np.nonzero(above)
    return rows[which], label.astype(np.int64), scores[which, label]


def _possible(classes: Numbers, kept: Numbers, score: Score, threshold: float) -> NDArray[np.intp]:
    """Rows that may hold a score above the threshold: all that do, and perhaps a few more."""
    least = threshold ** (1 / score.exponent)
    if score.activation == "softmax":
        if least <= 0:
            return np.arange(len(classes))
        # exp(x) / sum > least wants x > log(least) + log(sum), and the sum holds the largest exp.
        high = classes.max(axis=1, keepdims=True).astype(np.float64)
        bound = high + math.log(least) - _slack(high)
    elif score.activation == "sigmoid":
        logit = -math.inf if least <= 0 else math.log(least) - math.log1p(-min(least, 1 - 1e-16))
        bound = logit - _slack(min(abs(logit), 1e3))
    else:
        bound = least - _slack(least)
    return np.unique(np.nonzero(kept > bound)[0])


def _slack(size: Any) -> Any:
    """More than any rounding error of raw numbers of this size, in half precision too."""
    return 2e-3 * (1 + abs(size))


def _kept(values: Numbers, score: Score) -> Numbers:
    """(N, C) without the background."""
    if score.background == "none":
        return values
    return values[:, 1:] if score.background == "first" else values[:, :-1]


def _activate(values: Numbers, activation: str) -> Floats:
    """Float64 activation; the softmax is over the last dimension."""
    wide: Floats = values.astype(np.float64)
    if activation == "sigmoid":
        half: Floats = 1 / (1 + np.exp(-wide))
        return half
    if activation == "softmax":
        powers = np.exp(wide - wide.max(axis=-1, keepdims=True, initial=-np.inf))
        share: Floats = powers / powers.sum(axis=-1, keepdims=True)
        return share
    return wide


def _power(values: Numbers, exponent: float) -> Floats:
    """A power; a score below 0, as a quantizer may make it, counts as 0."""
    if exponent == 1:
        return values
    root: Floats = np.maximum(values, 0) ** exponent
    return root
