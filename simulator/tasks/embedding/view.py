"""How nearest texts are shown to people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from simulator.tasks.view import View


class EmbeddingView(View):
    """Answers are numbers of texts with their cosines; a line tells how near the stacks are."""

    metrics: ClassVar[Mapping[str, str]] = {"acc": "nearest right"}
    kinds: ClassVar[Mapping[str, str]] = {
        "right_to_wrong": "right→wrong",
        "wrong_to_right": "wrong→right",
        "order_changed": "in another order",
    }
    besides = ("order_changed",)
    asks_first = True
    titles = ("right text", "train (cosine)", "deploy (cosine)")

    def picks(self, flip: Mapping[str, Any]) -> tuple[int, int, int | None]:
        """Return both nearest texts, and the right one."""
        train, deploy = flip["train"], flip["deploy"]
        return train["order"][0], deploy["order"][0], train["label"]

    def words(self, flip: Mapping[str, Any]) -> tuple[str, str, str]:
        """Return the right text and both nearest ones, counted from 1, with their cosines."""
        label = flip["train"]["label"]
        train, deploy = (
            f"text {side['order'][0] + 1} ({side['cosines'][side['order'][0]]:.3f})"
            for side in (flip["train"], flip["deploy"])
        )
        return "-" if label is None else f"text {label + 1}", train, deploy

    def lines(self, summary: Mapping[str, Any]) -> list[tuple[str, str]]:
        """Return the kinds of flips, and the cosine between both stacks' vectors."""
        flips = summary["flips"]
        found = super().lines(summary)
        if flips["min_cosine"] is not None:
            words = f"{flips['min_cosine']:.5f} at least, {flips['mean_cosine']:.5f} in the mean"
            found.append(("cosine of both stacks' vectors", words))
        return found
