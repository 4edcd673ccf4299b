"""Figures of robustness benchmarks, as pure functions of metrics under conditions.

Everywhere a metric is a fraction, higher is better (top-1, mAP, mIoU), and a degradation is 1 less
the metric. The last axis of each array is that of a resampled figure, (..., 1 + R + n), so that
every figure is resampled too; a figure that is not defined is NaN.

Sources:
    Hendrycks and Dietterich, ICLR 2019: CE, relative CE, mCE, flip probability, T5D.
    Kamann and Rother, CVPR 2020: CD, rCD.
    Xiao et al., RobustMQ, 2023: NR, NCI, mNR, AR, AAI, WCAR, mFP, SR, SNI.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from simulator.statistics.bootstrap import Floats

SMALLEST = 0.005
"""A relative degradation is undefined where a degradation grew by less than this."""


def natural_robustness(levels: Floats) -> Floats:
    """Return NR, the mean metric over the severities of a condition.

    Args:
        levels: (S, 1 + R + n), the metric at each severity.
    """
    found: Floats = levels.mean(axis=0)
    return found


def impact(clean: Floats, under: Floats) -> Floats:
    """Return the share of the clean metric that is lost: NCI for NR, AAI for AR.

    Args:
        clean: (1 + R + n,), the metric without a condition.
        under: (1 + R + n,), the metric under it.
    """
    return _ratio(clean - under, clean)


def degradation_ratio(levels: Floats, reference: Floats) -> Floats:
    """Return CD or CE: the degradation over all severities, by that of a reference.

    Args:
        levels: (S, 1 + R + n), the metric at each severity.
        reference: the reference's, at the same severities.
    """
    return _ratio((1 - levels).sum(axis=0), (1 - reference).sum(axis=0))


def relative_degradation_ratio(
    clean: Floats, levels: Floats, reference_clean: Floats, reference: Floats
) -> Floats:
    """Return rCD or relative CE: what the condition adds to the degradation, by the reference's.

    It is not defined where either degradation grew by less than :data:`SMALLEST`: a ratio of two
    gains, or of a loss and nearly nothing, would look like a good result.

    Args:
        clean: (1 + R + n,), the metric without a condition.
        levels: (S, 1 + R + n), the metric at each severity.
        reference_clean: the reference's clean metric.
        reference: the reference's, at the same severities.

    Source:
        Per severity, as the figures that Hendrycks and Dietterich publish for ResNet-50 require;
        the formula that Kamann and Rother print subtracts the clean degradation only once.
    """
    added = clean - levels.mean(axis=0)
    base = reference_clean - reference.mean(axis=0)
    found: Floats = np.where((added < SMALLEST) | (base < SMALLEST), np.nan, _ratio(added, base))
    return found


def mean_over(figures: Mapping[str, Floats], without: Sequence[str] = ()) -> Floats:
    """Return the mean of a figure over conditions; those where it is not defined are left out.

    Args:
        figures: (1 + R + n,) by condition.
        without: conditions that the benchmark leaves out of its mean.
    """
    counted = [
        figure
        for name, figure in figures.items()
        if name not in without and not np.isnan(figure[0])
    ]
    if not counted:
        return np.full(1, np.nan)
    found: Floats = np.mean(counted, axis=0)
    return found


def interaction(train_clean: Floats, train: Floats, deploy_clean: Floats, deploy: Floats) -> Floats:
    """Return how much more the condition moves the metric on one stack than on another.

    Negative: the deployment stack loses more under this condition than the training stack does.

    Args:
        train_clean: (1 + R + n,), the training stack's metric without a condition.
        train: (1 + R + n,), under it.
        deploy_clean: the deployment stack's.
        deploy: likewise.
    """
    return (deploy - deploy_clean) - (train - train_clean)


def worst_case(points: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return each sample's points under the worst of several conditions, for WCAR.

    RobustMQ counts a sample as robust if it is answered correctly under every attack; an "and" for
    each sample, not the least accuracy of any attack.

    Args:
        points: (conditions, n), the points of each sample, the clean sample's among them.
    """
    found: NDArray[np.float64] = points.min(axis=0)
    return found


def flip_probability(frames: NDArray[np.int64], noise: bool, difficulty: int = 1) -> Floats:
    """Return each sequence's share of frames that are answered differently from their reference.

    Args:
        frames: (m, n), the answer to each frame of each sequence.
        noise: whether frames are independent draws: their reference is then the first frame, and
            else the frame *difficulty* before.
        difficulty: how many frames apart two compared frames are, for sequences that move.

    Returns:
        (m,), whose mean is FP; mFP is the mean of FP over perturbations.
    """
    before, after = _compared(frames, noise, difficulty)
    found: Floats = (after != before).mean(axis=1)
    return found


def top5_distance(best: NDArray[np.int64], noise: bool, difficulty: int = 1) -> Floats:
    """Return uT5D of each sequence: how far the five best classes move between compared frames.

    Of two frames it is the sum, over the classes of the first one's list, of how many places each
    is away in the other one's, where all places behind the fifth are one: the sixth. It is 0 for
    the same list and 15 for lists without a common class; frames are compared as for
    :func:`flip_probability`.

    Args:
        best: (m, n, 5), the best classes of each frame of each sequence, the best first; where the
            model has fewer, -1 follows them.
        noise: whether the reference is the first frame.
        difficulty: how many frames apart two compared frames are, for sequences that move.

    Returns:
        (m,), whose mean is uT5D; T5D is uT5D by that of a reference.

    Source:
        Hendrycks and Dietterich, ICLR 2019, metrics of ImageNet-P: for the places i = 1 to 5 and
        where the class of each is found, s(i), the count of j from min(i, s(i)) + 1 to
        max(i, s(i)) with 1 <= j - 1 <= 5. That is the distance of i and min(s(i), 6).
    """
    before, after = _compared(best, noise, difficulty)
    last = best.shape[-1]
    total = np.zeros(after.shape[:2])
    for place in range(last):
        listed = before[..., place, None]
        same = after == listed
        found = np.where(same.any(axis=-1), same.argmax(axis=-1), last)
        total += np.where(listed[..., 0] >= 0, np.abs(found - place), 0)
    mean: Floats = total.mean(axis=1)
    return mean


def _compared(
    frames: NDArray[np.int64], noise: bool, difficulty: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return what each frame is compared with, and the frames."""
    if noise:
        return frames[:, :1], frames[:, 1:]
    return frames[:, :-difficulty], frames[:, difficulty:]


def relative_to(figure: Floats, reference: Floats) -> Floats:
    """Return FR or T5D: FP or uT5D by that of a reference; their means are mFR and mT5D.

    It is not defined where the reference never flips, or its list never changes.

    Args:
        figure: (1 + R + n,), FP or uT5D of a perturbation.
        reference: the reference's.
    """
    return _ratio(*np.broadcast_arrays(figure, reference))


def sample_deviation(rates: Floats) -> Floats:
    """Return the standard deviation of a metric over system noises, with ddof = 1.

    The six printed in RobustMQ's Table 10 that were checked have ddof = 1, though RobustART's code
    has 0. It is not defined for one noise.

    Args:
        rates: (N, 1 + R + n), the metric under each noise.
    """
    if len(rates) < 2:
        return np.full(rates.shape[1:], np.nan)
    found: Floats = rates.std(axis=0, ddof=1)
    return found


def _ratio(above: Floats, below: Floats) -> Floats:
    found: Floats = np.full(np.broadcast(above, below).shape, np.nan)
    np.divide(above, below, out=found, where=below > 0)
    return found
