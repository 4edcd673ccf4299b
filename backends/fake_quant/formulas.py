"""The formulas of DoReFa, PACT and LSQ, on NumPy arrays.

Source:
    Zhou et al., DoReFa-Net, https://arxiv.org/abs/1606.06160, equations 5, 9 and 11; Choi et al.,
    PACT, https://arxiv.org/abs/1805.06085, equations 1 and 2; Esser et al., Learned Step Size
    Quantization, https://arxiv.org/abs/1902.08153, equations 1 and 2, and section 2.1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from simulator.contract import Array


@dataclass(frozen=True, slots=True)
class Grid:
    """Equal steps around zero: the codes from *low* to *high*, times *step*.

    Attributes:
        step: float32, above 0, of a shape that broadcasts to the values.
        low: the smallest code.
        high: the largest code.
    """

    step: Array
    low: int
    high: int

    def rounded(self, values: Array) -> Array:
        """Return the nearest point of the grid for each value, ties to the even code; float32."""
        return np.asarray(self.codes(values) * self.step, np.float32)

    def codes(self, values: Array) -> Array:
        """Return the nearest code for each value, ties to the even one; float32."""
        return np.asarray(np.rint(np.clip(values / self.step, self.low, self.high)))


def lsq_codes(bits: int, signed: bool) -> tuple[int, int]:
    """Return -Qn and Qp of LSQ."""
    return (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)


def clip_codes(bits: int, signed: bool) -> tuple[int, int]:
    """Return the ends of DoReFa and PACT: both ends of the clipped range are codes."""
    return (1 - 2 ** (bits - 1), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)


def first_step(mean: Array, high: int) -> Array:
    """Return LSQ's first step, 2 mean|x| / sqrt(Qp); 1 where all values are 0.

    Args:
        mean: the mean magnitude; any shape.
        high: Qp.
    """
    steps = np.asarray(2 * np.asarray(mean, np.float64) / np.sqrt(high), np.float32)
    return np.where(steps > 0, steps, np.float32(1))


def dorefa_weights(weights: Array, bits: int) -> Array:
    """Return 2 Q(tanh w / (2 max|tanh w|) + 1/2) - 1, with Q(v) = round((2^b - 1) v) / (2^b - 1).

    Args:
        weights: float32, any shape.
        bits: 2 to 8.

    Returns:
        float32 in [-1, 1], of the same shape; all 0 where all weights are 0.
    """
    bent = np.tanh(weights.astype(np.float64))
    most = np.abs(bent).max(initial=0)
    if not most:
        return np.zeros_like(weights, np.float32)
    levels = 2**bits - 1
    return np.asarray(2 * np.rint(levels * (bent / (2 * most) + 0.5)) / levels - 1, np.float32)


def dorefa_factor(weights: Array, bits: int) -> np.float32:
    """Return the constant that brings DoReFa's weights nearest to the weights; 1 if all are 0."""
    made = dorefa_weights(weights, bits).astype(np.float64)
    square = (made**2).sum()
    return np.float32((made * weights).sum() / square if square else 1.0)


def least_error_step(values: Array, start: Array, low: int, high: int) -> Array:
    """Find the step of least squared error for every row.

    First among 97 steps from start / 16 to 16 start at equal ratios, then among 17 around the
    best; *start* itself is always among them.

    Args:
        values: (rows, columns) float32.
        start: (rows, 1) float32, above 0.
        low: the smallest code.
        high: the largest code.

    Returns:
        (rows, 1) float32.
    """
    best, width = start, 16.0
    for count in (97, 17):
        centre, found = best, np.full(start.shape, np.inf)
        for factor in np.geomspace(1 / width, width, count).astype(np.float32):
            step = centre * factor
            errors = (Grid(step, low, high).rounded(values) - values).astype(np.float64) ** 2
            error = errors.sum(1, keepdims=True)
            best = np.where(error < found, step, best)
            found = np.minimum(error, found)
        width = 256 ** (1 / 96)
    return best
