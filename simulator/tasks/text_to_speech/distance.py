"""How far two waveforms of the same text are apart."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from simulator.reference.log_mel import log_mel

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Distance:
    """Two waveforms compared.

    Where one is longer, its end is left out of ``mse``, ``snr`` and ``log_mel_mse``.

    Attributes:
        mse: mean squared difference of the samples; full scale is 1.
        snr: power of the first by that of the difference, in dB; None where they are equal, or the
            first is silent.
        log_mel_mse: mean squared difference of the log-mel spectrograms, in nepers squared.
        warped: the same after dynamic time warping, which pairs frames that sound alike.
    """

    mse: float
    snr: float | None
    log_mel_mse: float
    warped: float


def distance(one: NDArray[np.float32], other: NDArray[np.float32], rate: int) -> Distance:
    """Compare two waveforms.

    Args:
        one: (N,) samples of the first stack.
        other: (M,) samples of the second one.
        rate: samples a second.
    """
    if np.array_equal(one, other):
        return Distance(0.0, None, 0.0, 0.0)
    if not one.size or not other.size:
        one, other = (np.pad(wave, (0, not wave.size)) for wave in (one, other))
    length = min(one.size, other.size)
    first, difference = one[:length].astype(np.float64), one[:length] - other[:length].astype(float)
    mse, power = float(np.mean(difference**2)), float(np.mean(first**2))
    snr = 10 * math.log10(power / mse) if mse and power else None
    mels, others = (log_mel(wave, rate) for wave in (one, other))
    frames = min(mels.shape[1], others.shape[1])
    plain = float(np.mean((mels[:, :frames] - others[:, :frames]) ** 2))
    return Distance(mse, snr, plain, warped(mels, others))


def warped(one: Floats, other: Floats) -> float:
    """Return the distance of two spectrograms on the best path, by the path's length.

    A step of both counts twice, a step of one once, so that every path has the length N + M; with
    the straight path of two equal lengths the result is the mean squared difference.

    Args:
        one: (bands, N).
        other: (bands, M).

    Source:
        Sakoe and Chiba, Dynamic programming algorithm optimization for spoken word recognition,
        IEEE Trans. ASSP 26 (1978), the symmetric form without a slope constraint.
    """
    bands = one.shape[0]
    squares = (one**2).sum(0)[:, None] + (other**2).sum(0)[None] - 2 * one.T @ other
    costs = np.maximum(squares, 0) / bands
    row = np.cumsum(costs[0]) + costs[0, 0]
    for cost in costs[1:]:
        diagonal = np.concatenate([[np.inf], row[:-1] + 2 * cost[1:]])
        entered = np.minimum(row + cost, diagonal)
        along = np.cumsum(cost)
        row = along + np.minimum.accumulate(entered - along)
    return float(row[-1] / sum(costs.shape))
