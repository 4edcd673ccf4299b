"""What is told of two stacks' next-token probabilities: the figures, and their words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar

from pydantic import Field

from simulator.tasks.text import TextFlips
from simulator.tasks.view import Told, View
from simulator.typed import About, Interval, Keys, Nats, Points, Ratio, Share, Unit


class NextTokenFlips(TextFlips):
    """Tokens whose most likely one is another, and how far the stacks' probabilities are apart.

    The names are those of llama.cpp's ``perplexity --kl-divergence``; base is the train side, Q the
    deploy side. Errors are the program's own: standard errors that take tokens as independent.
    """

    kld_mean: Annotated[float, About(Unit.NATS, better=-1)] = Field(
        description="mean KL divergence of the deploy side's next token from the train side's"
    )
    kld_mean_error: Nats
    kld_mean_ci95: Interval | None = Field(default=None, description="95 %, chunks resampled")
    kld: Annotated[dict[str, Nats], Keys("percentile")] = Field(
        description="percentiles of the KL divergence over tokens"
    )
    same_top: Annotated[float, About(Unit.SHARE, better=1)] = Field(
        description="tokens for which both sides find the same one most likely"
    )
    same_top_error: Share
    dp_mean: Points = Field(description="mean change of the probability of the text's own token")
    dp_mean_error: Points
    dp_rms: Points = Field(description="root of the mean square of that change")
    dp_rms_error: Points
    dp: Annotated[dict[str, Points], Keys("percentile")] = Field(
        description="percentiles of that change over tokens"
    )
    train_perplexity: float | None = Field(description="PPL(base)")
    train_perplexity_error: float | None
    deploy_perplexity: float | None = Field(description="PPL(Q)")
    deploy_perplexity_error: float | None
    ln_ppl_correlation: float | None = Field(
        description="correlation of both sides' log-likelihoods of the text's own tokens"
    )
    ln_ppl_ratio: Nats = Field(description="ln(PPL(Q)/PPL(base))")
    ln_ppl_ratio_error: Nats
    ppl_ratio: Annotated[float, About(Unit.RATIO, better=-1)] = Field(
        description="PPL(Q)/PPL(base)"
    )
    ppl_ratio_error: Ratio
    ppl_ratio_ci95: Interval | None = Field(default=None, description="95 %, chunks resampled")
    ppl_difference: float | None = Field(description="PPL(Q)-PPL(base)")
    ppl_difference_error: float | None


class NextTokenView(View):
    """The figures stand in the words of llama.cpp's ``perplexity --kl-divergence``."""

    metrics: ClassVar[Mapping[str, str]] = {"acc": "next-token accuracy"}
    distances: ClassVar[Mapping[str, str]] = {
        "kld_mean": "mean KLD",
        "same_top": "same top p",
        "ppl_ratio": "PPL(Q)/PPL(base)",
        "dp_rms": "RMS Δp",
    }
    told: ClassVar[Mapping[str, str]] = {
        "Same top p": "{same_top:.3%} ± {same_top_error:.3%}",
        "Mean KLD": "{kld_mean:.6f} ± {kld_mean_error:.6f} "
        "(95 % by chunks {kld_mean_ci95[0]:.6f} to {kld_mean_ci95[1]:.6f})",
        "KLD": "minimum {kld[minimum]:.6f}, median {kld[median]:.6f}, 90 % {kld[p90]:.6f}, "
        "95 % {kld[p95]:.6f}, 99 % {kld[p99]:.6f}, 99.9 % {kld[p99_9]:.6f}, "
        "maximum {kld[maximum]:.6f}",
        "PPL(Q)": "{deploy_perplexity:.6f} ± {deploy_perplexity_error:.6f}, "
        "PPL(base) {train_perplexity:.6f} ± {train_perplexity_error:.6f}, "
        "Cor(ln(PPL(Q)), ln(PPL(base))) {ln_ppl_correlation:.2%}",
        "PPL(Q)/PPL(base)": "{ppl_ratio:.6f} ± {ppl_ratio_error:.6f} "
        "(95 % by chunks {ppl_ratio_ci95[0]:.6f} to {ppl_ratio_ci95[1]:.6f}), "
        "ln {ln_ppl_ratio:.6f} ± {ln_ppl_ratio_error:.6f}",
        "PPL(Q)-PPL(base)": "{ppl_difference:.6f} ± {ppl_difference_error:.6f}",
        "Δp": "mean {dp_mean:.3%} ± {dp_mean_error:.3%}, RMS {dp_rms:.3%} ± {dp_rms_error:.3%}; "
        "1 % {dp[p1]:.3%}, 5 % {dp[p5]:.3%}, median {dp[median]:.3%}, 95 % {dp[p95]:.3%}, "
        "99 % {dp[p99]:.3%}",
    }
    titles = ("tokens changed", "train, where farthest apart", "deploy")

    def said(self, flip: Told, side: str) -> str:
        """Return the token that a stack finds most likely where the two are farthest apart."""
        word = f"“{flip[f'{side}_word']}”"
        return word if side == "train" else f"{word} (KLD {flip['farthest']:.3f})"
