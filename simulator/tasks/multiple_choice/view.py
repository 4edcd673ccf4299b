"""How answers to multiple choice are shown to people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from simulator.tasks.view import View


class MultipleChoiceView(View):
    """Answers are numbers of choices with margins; the lines tell how far likelihoods moved."""

    kinds: ClassVar[Mapping[str, str]] = {
        "right_to_wrong": "right→wrong",
        "wrong_to_right": "wrong→right",
        "norm_changed": "changed by acc_norm",
    }
    besides = ("norm_changed",)
    titles = ("right choice", "train (margin)", "deploy (margin)")

    def words(self, flip: Mapping[str, Any]) -> tuple[str, str, str]:
        """Return the right choice and both answers, counted from 1, with their margins in nats."""
        label = flip["label"]
        train, deploy = (_said(flip[side]) for side in ("train", "deploy"))
        return "-" if label is None else f"choice {label + 1}", train, deploy

    def lines(self, summary: Mapping[str, Any]) -> list[tuple[str, str]]:
        """Return the kinds of flips, and the changes of log-likelihoods beside the margins."""
        flips = summary["flips"]
        found = super().lines(summary)
        if flips["mean_shift"] is None:
            return found
        moved = f"moved by {flips['mean_shift']:.3g} in the mean, {flips['max_shift']:.3g} at most"
        below = (
            f"{flips['margins_below_mean']:,} of {flips['units']:,} margins are below the mean, "
            f"{flips['margins_below_max']:,} below the largest"
        )
        return [*found, ("log-likelihood", moved), ("margins", below)]


def _said(side: Mapping[str, Any]) -> str:
    text = f" “{side['text']}”" if side.get("text") else ""
    return f"choice {side['answer'] + 1}{text} ({side['margin']:.2f})"
