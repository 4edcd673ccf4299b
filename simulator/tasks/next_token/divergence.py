"""KL divergence, perplexity and token probabilities of two stacks, as llama.cpp tells them.

Errors are the standard errors of ``perplexity --kl-divergence``, which take tokens as independent;
those of one chunk are not, so intervals resample chunks.

Source:
    https://github.com/ggml-org/llama.cpp/blob/master/tools/perplexity/perplexity.cpp,
    ``kl_divergence``.
"""

from __future__ import annotations

from math import exp, sqrt

import numpy as np
from numpy.typing import NDArray

from simulator.contract import Array
from simulator.statistics.bootstrap import Ratio, Resamples, interval
from simulator.tasks.figures import Figures
from simulator.tasks.text import power

Floats = NDArray[np.float64]
PERCENTILES = {
    "minimum": 0.0, "p0_1": 0.001, "p1": 0.01, "p5": 0.05, "p10": 0.1, "p25": 0.25, "median": 0.5,
    "p75": 0.75, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p99_9": 0.999, "maximum": 1.0,
}  # fmt: skip
_ROWS = 16
"""Tokens that are computed in float64 at once."""
_FEW = 10
"""Of so few tokens or less the program tells no error."""


def divergence(base: Array, base_sum: Floats, other: Array, other_sum: Floats) -> Floats:
    """Return KL(base || other) of each token, nats, over the whole vocabulary in float64.

    Args:
        base: (tokens, vocabulary) logits of the training stack.
        base_sum: (tokens,) log of the sum of their exponentials.
        other: logits of the other stack.
        other_sum: likewise.
    """
    found = np.empty(len(base))
    for start in range(0, len(base), _ROWS):
        at = slice(start, start + _ROWS)
        one = base[at].astype(np.float64) - base_sum[at, None]
        two = other[at].astype(np.float64) - other_sum[at, None]
        found[at] = (np.exp(one) * (one - two)).sum(-1)
    return found.clip(0)  # below 0 by rounding only


def figures(base: Floats, other: Floats, kld: Floats, same: int) -> Figures:
    """Return the figures of all tokens of two stacks.

    Args:
        base: (tokens,) negative log-likelihoods of the text's own tokens, training stack.
        other: likewise, deployment stack.
        kld: (tokens,) what :func:`divergence` returned.
        same: tokens for which both stacks find the same one most likely.
    """
    moved = np.exp(-other) - np.exp(-base)
    ratio, error = _mean(other - base)
    squares, of_squares = _mean(moved**2)
    share = same / len(kld)
    found: Figures = {
        "same_top": share,
        "same_top_error": sqrt(share * (1 - share) / max(len(kld) - 1, 1)),
        "ln_ppl_ratio": ratio,
        "ln_ppl_ratio_error": error,
        "ppl_ratio": exp(ratio),
        "ppl_ratio_error": exp(ratio) * error,
        "dp_rms": sqrt(squares),
        "dp_rms_error": 0.5 * of_squares / sqrt(squares) if squares else 0.0,
        "kld": _percentiles(kld),
        "dp": _percentiles(moved),
    }
    for name, values in (("kld_mean", kld), ("dp_mean", moved)):
        found[name], found[f"{name}_error"] = _mean(values)
    return found | _perplexities(base, other, error)


def intervals(
    base: Floats, other: Floats, kld: Floats, tokens: Floats, draws: Resamples
) -> Figures:
    """Return 95 % intervals of figures whose chunks are resampled.

    Args:
        base: (chunks,) sums over the tokens of each chunk, see :func:`figures`.
        other: likewise.
        kld: likewise.
        tokens: (chunks,) how many there are.
        draws: of the bootstrap.
    """
    divergences, ratios = draws.of_each([Ratio(kld, tokens), Ratio(other - base, tokens)])
    ends = interval(ratios, draws.number, None)
    return {
        "kld_mean_ci95": list(interval(divergences, draws.number, None)),
        "ppl_ratio_ci95": [exp(end) for end in ends],
    }


def _perplexities(base: Floats, other: Floats, error: float) -> Figures:
    """Both perplexities and their difference; *error*: of the mean of ``other - base``."""
    (train, of_train), (deploy, of_deploy) = _mean(base), _mean(other)
    covariance = (of_train**2 + of_deploy**2 - error**2) / 2
    product = of_train * of_deploy
    one, two = power(train), power(deploy)
    if one is None or two is None:
        difference = spread = None
    else:
        difference = two - one
        of_one, of_two = one * of_train, two * of_deploy
        spread = sqrt(max(of_one**2 + of_two**2 - 2 * one * two * covariance, 0.0))
    return {
        "train_perplexity": one,
        "train_perplexity_error": None if one is None else one * of_train,
        "deploy_perplexity": two,
        "deploy_perplexity_error": None if two is None else two * of_deploy,
        "ln_ppl_correlation": covariance / product if product else None,
        "ppl_difference": difference,
        "ppl_difference_error": spread,
    }


def _mean(values: Floats) -> tuple[float, float]:
    """Return the mean and its standard error."""
    if len(values) <= _FEW:
        return float(values.mean()), 0.0
    return float(values.mean()), float(values.std() / sqrt(len(values) - 1))


def _percentiles(values: Floats) -> dict[str, float]:
    found = np.quantile(values, [*PERCENTILES.values()])
    return dict(zip(PERCENTILES, found.tolist(), strict=True))
