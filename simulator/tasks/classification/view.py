"""How classification's answers are shown to people."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import ClassVar

from simulator.statistics import paired
from simulator.tasks.view import Told, View


class ClassificationView(View):
    """Answers are class names with margins; the lines tell McNemar's test and its power."""

    metrics: ClassVar[Mapping[str, str]] = {"top1": "top-1", "top5": "top-5"}
    told: ClassVar[Mapping[str, str]] = {
        "top 5": "another set for {top5_flips:,} {unit}s = {top5_flip_rate:.2%}",
        "McNemar": "exact p {mcnemar_p:.3g}, mid-p {mcnemar_midp:.3g}",
    }
    titles = ("label", "train (margin)", "deploy (margin)")

    def about(self, flip: Told) -> str:
        """Return the label."""
        return flip["label"] or "-"

    def said(self, flip: Told, side: str) -> str:
        """Return a prediction with its margin; a device's log may have none."""
        own = flip[side]
        known = own["margin"] is not None and isfinite(own["margin"])
        return f"{own['prediction']} ({own['margin']:.2f})" if known else str(own["prediction"])

    def parts(self) -> tuple[str, ...]:
        """Return all three; a change between two wrong classes has no McNemar test."""
        return (*super().parts(), "wrong_to_wrong")

    def lines(self, summary: Told) -> list[tuple[str, str]]:
        """Return the kinds of flips, McNemar's test, and how many images 0.1 points would need."""
        found, flips = super().lines(summary), summary["flips"]
        if needed := flips["samples_for_tenth_point"]:
            rate = (flips["right_to_wrong"] + flips["wrong_to_right"]) / summary["labelled"]
            power = (
                f"a 0.1-point delta needs {needed:,} {summary['unit']}s (80 % power), where "
                f"{rate:.2%} of the answers turn right or wrong"
            )
            found.append(("power", power))
        return found

    def findings(self, summary: Told) -> list[str]:
        """Warn where McNemar's test has too few pairs to find anything."""
        flips = summary["flips"]
        if not summary["labelled"]:
            return []
        discordant = flips["right_to_wrong"] + flips["wrong_to_right"]
        if discordant >= paired.MIN_DISCORDANT:
            return []
        return [
            f"discordant pairs: {discordant}; fewer than {paired.MIN_DISCORDANT} can never be "
            f"significant at 5 %; use more {summary['unit']}s"
        ]
