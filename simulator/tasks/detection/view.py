"""How detection's answers are shown to people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from simulator.contract import U8, Panel
from simulator.data.truth import Boxes
from simulator.tasks.detection.boxes import Detections
from simulator.tasks.detection.drawing import panels
from simulator.tasks.view import View


class DetectionView(View):
    """Answers are counts of objects, and both stacks' boxes side by side."""

    titles = ("objects changed", "of these", "picture")
    drawn = True

    def words(self, flip: Mapping[str, Any]) -> tuple[str, str, str]:
        """Return how many objects changed, in which ways, and where they are drawn."""
        kinds = ", ".join(f"{flip[kind]} {kind}" for kind in self.task.kinds if flip[kind])
        return f"{flip['changed']} of {flip['units']}", kinds, flip.get("picture") or "-"

    def lines(self, summary: Mapping[str, Any]) -> list[tuple[str, str]]:
        """Return the kinds of flips, and how well the boxes of a pair agree."""
        flips, found = summary["flips"], super().lines(summary)
        if flips["mean_iou"] is not None:
            rescored = f"{flips['rescored']:,} rescored by more than 0.1"
            found.append(("pairs", f"mean IoU {flips['mean_iou']:.4f}, {rescored}"))
        return found

    def panels(
        self,
        task: Any,
        images: tuple[U8, U8],
        before: Detections,
        after: Detections,
        truth: Boxes | None,
    ) -> list[Panel]:
        """Draw both stacks' boxes side by side."""
        threshold = task.output.operating_threshold
        return panels(images, before, after, truth, threshold, task.network.label)
