"""How segmentation's answers are shown to people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from simulator.contract import U8, Panel
from simulator.tasks.segmentation.drawing import naming, panels
from simulator.tasks.view import View


class SegmentationView(View):
    """Answers are shares of pixels, and both stacks' masks with what changed between them."""

    kinds: ClassVar[Mapping[str, str]] = {
        "right_to_wrong": "right→wrong",
        "wrong_to_right": "wrong→right",
        "wrong_to_wrong": "wrong→other",
    }
    titles = ("pixels changed", "of these at boundaries", "picture")
    drawn = True

    def words(self, flip: Mapping[str, Any]) -> tuple[str, str, str]:
        """Return the share of pixels that changed, how many of them at boundaries, the picture."""
        return (
            f"{flip['changed'] / flip['units']:.2%}",
            f"{flip['boundary_changed'] / flip['changed']:.0%}",
            flip.get("picture") or "-",
        )

    def lines(self, summary: Mapping[str, Any]) -> list[tuple[str, str]]:
        """Return where pixels change, and the kinds of flips."""
        flips = summary["flips"]
        rates = [flips["boundary_rate"], flips["inside_rate"]]
        at, inside = ("-" if rate is None else f"{rate:.2%}" for rate in rates)
        found = [("", f"within 3 px of a boundary {at}, inside {inside}")]
        return [*found, *super().lines(summary)] if summary["labelled"] else found

    def panels(
        self, task: Any, images: tuple[U8, U8], before: U8, after: U8, truth: U8 | None
    ) -> list[Panel]:
        """Draw both masks, what changed between them, and the truth."""
        return panels(images, before, after, truth, naming(task.network))
