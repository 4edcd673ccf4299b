"""From a model's output to one class, and to the five best."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from simulator.contract.frame import Array
from simulator.errors import ModelError
from simulator.tasks.finite import check_finite, check_probabilities

BEST = 5
"""How many classes an answer lists."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What one stack answers for one sample.

    Attributes:
        prediction: class index, after the background classes were dropped.
        score: probability of the prediction, in [0, 1]; integer probabilities keep their unit.
        margin: the score minus the runner-up's, at least 0; the score itself where there is none.
        classes: how many there were; None where the answer was recorded.
        best: the five best classes, the best first; all of fewer. None where it was recorded.
        scores: (classes,) float64, the scores of all classes; None likewise.
    """

    prediction: int
    score: float
    margin: float
    classes: int | None = None
    best: tuple[int, ...] | None = None
    scores: NDArray[np.float64] | None = field(default=None, compare=False, repr=False)


def postprocess(outputs: Array, kind: str, offset: int) -> Answer:
    """Turn the model's output into an answer.

    Args:
        outputs: (1, C) or (C,), float or integer.
        kind: ``logits`` (the score is a float64 softmax over the classes that are kept),
            ``sigmoid`` (logits, each with a probability of its own) or ``probabilities`` (taken as
            they are).
        offset: how many classes at the start are background, and dropped; at least 0.

    Returns:
        The answer; of equal outputs the lowest class is the better one.

    Raises:
        ModelError: the output's shape, type or range is not what the model card promises.
        NotFinite: the model gave NaN or an infinity.
    """
    values = _kept(outputs, offset)
    check_finite(values)
    if kind == "logits":
        scores = _softmax(values)
    elif kind == "sigmoid":
        scores = 0.5 * (1 + np.tanh(values / 2))  # the logistic function, without an overflow
    else:
        if outputs.dtype.kind not in "iu":
            check_probabilities(values)
        scores = values
    # The winner is read from the raw values: a softmax can round two of them to one.
    best = _best(values)
    score = float(scores[best[0]])
    margin = score - float(np.partition(scores, -2)[-2]) if scores.size > 1 else score
    return Answer(best[0], score, margin, values.size, best, scores)


def _best(values: NDArray[np.float64]) -> tuple[int, ...]:
    """The best classes of (C,) finite values, the best first; of equal ones the lowest first."""
    last = max(values.size - BEST, 0)
    found = np.flatnonzero(values >= np.partition(values, last)[last])
    order = np.argsort(-values[found], kind="stable")[:BEST]
    return tuple(found[order].tolist())


def _kept(outputs: Array, offset: int) -> NDArray[np.float64]:
    """The classes that count, as (C - offset,) float64."""
    shape = outputs.shape
    if len(shape) not in (1, 2) or (len(shape) == 2 and shape[0] != 1):
        raise ModelError(f"classification expects an output (1, C) or (C,), got {shape}")
    if outputs.dtype.kind in "cOSUMm":
        raise ModelError(f"classification expects numbers, got an output of {outputs.dtype}")
    if not 0 <= offset < shape[-1]:
        raise ModelError(f"offset {offset} leaves no class of an output {shape}")
    values: NDArray[np.float64] = outputs.reshape(-1)[offset:].astype(np.float64)
    return values


def _softmax(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Float64 softmax of (C,) finite values; the maximum is subtracted first."""
    with np.errstate(over="ignore"):  # -1e308 - 1e308 is -inf, and its exp 0: as it should be
        powers = np.exp(values - values.max())
    total: NDArray[np.float64] = powers / powers.sum()
    return total
