"""How next words are shown to people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from simulator.tasks.view import View


class NextWordView(View):
    """A word is written by a stack or not; the lines tell perplexities and shifts."""

    metrics: ClassVar[Mapping[str, str]] = {"acc": "greedy match"}
    kinds: ClassVar[Mapping[str, str]] = {
        "right_to_wrong": "right→wrong",
        "wrong_to_right": "wrong→right",
    }
    titles = ("word", "train (log-likelihood)", "deploy (log-likelihood)")

    def words(self, flip: Mapping[str, Any]) -> tuple[str, str, str]:
        """Return the word, and whether either stack would write it."""
        train, deploy = (_said(flip[side]) for side in ("train", "deploy"))
        return flip["train"]["label"] or "-", train, deploy

    def lines(self, summary: Mapping[str, Any]) -> list[tuple[str, str]]:
        """Return the kinds of flips, both perplexities, and the changes of log-likelihoods."""
        flips = summary["flips"]
        found = super().lines(summary)
        both = flips["train_perplexity"], flips["deploy_perplexity"]
        if None not in both:
            found.append(("perplexity", f"train {both[0]:.2f}, deploy {both[1]:.2f}"))
        if flips["mean_shift"] is not None:
            moved = flips["mean_shift"], flips["max_shift"]
            words = f"moved by {moved[0]:.3g} in the mean, {moved[1]:.3g} at most"
            found.append(("log-likelihood", words))
        return found


def _said(side: Mapping[str, Any]) -> str:
    return f"{'written' if side['greedy'] else 'another'} ({side['loglikelihoods'][0]:.2f})"
