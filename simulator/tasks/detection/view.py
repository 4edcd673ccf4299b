"""How detection's answers are shown: in words, and as boxes in the color of their fate."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from simulator.contract import U8, Color, Key, Panel, Rectangle
from simulator.data.truth import Boxes
from simulator.tasks.detection.boxes import Detections
from simulator.tasks.detection.matching import fates
from simulator.tasks.view import Told, View

COLORS: dict[str, Color] = {
    "kept": (200, 200, 200),
    "rescored": (0, 158, 115),
    "moved": (240, 228, 66),
    "relabelled": (204, 121, 167),
    "gained": (86, 180, 233),
    "lost": (213, 94, 0),
}
"""Each fate's color, the loudest last: gray, and the palette of Okabe and Ito (2008, Color
Universal Design), which people with any color vision can tell apart."""
_TRUTH: Color = (255, 255, 255)
_SAID = {"gained": "gained (deploy only)", "lost": "lost (train only)"}


class DetectionView(View):
    """Answers are counts of objects, and both stacks' boxes side by side."""

    told: ClassVar[Mapping[str, str]] = {
        "pairs": "mean IoU {mean_iou:.4f}, {rescored:,} rescored by more than 0.1"
    }
    titles = ("objects changed", "of these", "picture")
    drawn = True

    def words(self, flip: Told) -> tuple[str, str, str]:
        """Return how many objects changed, in which ways, and where they are drawn."""
        kinds = ", ".join(f"{flip[kind]} {kind}" for kind in self.task.kinds if flip[kind])
        return self.about(flip), kinds, flip.get("picture") or "-"

    def panels(
        self,
        task: Any,
        images: tuple[U8, U8],
        before: Detections,
        after: Detections,
        truth: Boxes | None,
    ) -> list[Panel]:
        """Draw the train and the deploy stack's detections side by side.

        Kept boxes are thin and gray; changed ones are thick, with class and score; annotated ones
        are dashed. Only detections above the operating threshold are drawn.
        """
        threshold, labels = task.output.operating_threshold, task.network.label
        words = fates(before, after, threshold)
        shown = before.above(threshold), after.above(threshold)
        annotated = _annotated(truth)
        legend = _legend(words, len(annotated))
        return [
            Panel(
                image,
                f"{stack}: {len(some)} object{'s' * (len(some) != 1)} (score > {threshold:g})",
                (*annotated, *_rectangles(some, fate, labels)),
                legend=legend,
            )
            for stack, image, some, fate in zip(
                ("train", "deploy"), images, shown, words, strict=True
            )
        ]


def _rectangles(
    some: Detections, words: Sequence[str], labels: Callable[[int], str]
) -> list[Rectangle]:
    """The loudest fate last, and within a fate the best score: drawn on top, and labelled first."""
    rank = {word: number for number, word in enumerate(COLORS)}
    order = sorted(range(len(some)), key=lambda i: (rank[words[i]], some.scores[i]))
    boxes = some.boxes.tolist()
    return [
        Rectangle(boxes[i], COLORS[words[i]], width=1)
        if words[i] == "kept"
        else Rectangle(
            boxes[i], COLORS[words[i]], f"{labels(int(some.classes[i]))} {some.scores[i]:.2f}"
        )
        for i in order
    ]


def _annotated(truth: Boxes | None) -> list[Rectangle]:
    if truth is None:
        return []
    kinds = np.where(truth.crowd, "crowd", np.where(truth.difficult, "difficult", ""))
    return [
        Rectangle(box, _TRUTH, kind, dashed=True, width=1)
        for box, kind in zip(truth.corners.tolist(), kinds.tolist(), strict=True)
    ]


def _legend(words: tuple[Sequence[str], Sequence[str]], annotated: int) -> tuple[Key, ...]:
    """Each fate that occurs and how often; a pair counts once."""
    counts = Counter(words[0]) | Counter(words[1])
    found = [(COLORS[word], _SAID.get(word, word), counts[word], False) for word in COLORS]
    found.append((_TRUTH, "truth", annotated, True))
    return tuple(Key(color, f"{said}: {n}", dashed) for color, said, n, dashed in found if n)
