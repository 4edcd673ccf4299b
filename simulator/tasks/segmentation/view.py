"""How segmentation's answers are shown: in words, and as masks with the pixels that changed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from simulator.contract import U8, Color, Key, Panel
from simulator.data.masks import IGNORE
from simulator.tasks.segmentation.change import at_boundary, change
from simulator.tasks.view import Told, View

_SHADE = 150
"""Opacity of a class over the image, of 255."""
_INSIDE: Color = (213, 94, 0)
_BOUNDARY: Color = (240, 228, 66)
"""From the palette of Okabe and Ito (2008), which people with any color vision can tell apart."""
_CHANGES = np.array([[0, 0, 0, 150], [*_BOUNDARY, 255], [*_INSIDE, 255]], np.uint8)
"""Unchanged pixels are darkened; then changes at a boundary, and inside."""


class SegmentationView(View):
    """Answers are shares of pixels, and both stacks' masks with what changed between them."""

    titles = ("pixels changed", "of these at boundaries", "picture")
    drawn = True

    def words(self, flip: Told) -> tuple[str, str, str]:
        """Return the share of pixels that changed, how many of them at boundaries, the picture."""
        return (
            f"{flip['changed'] / flip['units']:.2%}",
            f"{flip['boundary_changed'] / flip['changed']:.0%}",
            flip.get("picture") or "-",
        )

    def lines(self, summary: Told) -> list[tuple[str, str]]:
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


def panels(
    images: tuple[U8, U8],
    before: U8,
    after: U8,
    truth: U8 | None,
    labels: Callable[[int], str],
    titles: tuple[str, str] = ("train", "deploy"),
) -> list[Panel]:
    """Draw both masks, what changed, and the truth where there is one.

    Args:
        images: (H, W, 3) uint8 RGB, as each stack decoded it.
        before: (H, W) uint8 classes, and 255 where there is no answer.
        after: the same of the other mask.
        truth: (H, W) uint8 classes, and 255 where nothing is judged; None for no panel.
        labels: the name of a class; see :func:`naming`.
        titles: of the two masks.
    """
    drawn = [
        _classes(images[0], before, titles[0], "no answer", labels),
        _classes(images[1], after, titles[1], "no answer", labels),
        _changes(images[0], before, after),
    ]
    if truth is not None:
        drawn.append(_classes(images[0], truth, "truth", "not judged", labels))
    return drawn


def naming(network: Any) -> Callable[[int], str]:
    """Return what names a network's classes; one with its argmax inside may give others."""

    def label(index: int) -> str:
        return network.label(index) if index < network.classes else f"no class: {index}"

    return label


def colormap(count: int) -> U8:
    """Return the colors of the first *count* classes, (count, 3) uint8.

    Source:
        VOCdevkit, ``VOClabelcolormap.m``: bits 0, 1 and 2 of an index are the highest bits of
        red, green and blue, bits 3, 4 and 5 the next ones, and so on.
    """
    index = np.arange(count)
    colors = np.zeros((count, 3), np.int64)
    for place in range(8):
        for channel in range(3):
            colors[:, channel] |= (index >> (3 * place + channel) & 1) << (7 - place)
    return colors.astype(np.uint8)


def _classes(image: U8, mask: U8, title: str, none: str, labels: Callable[[int], str]) -> Panel:
    """Every class in its color but 0, mostly the background, which leaves the image as it is."""
    image, mask = _common(image, mask)
    colors = colormap(256)
    palette = np.insert(colors, 3, _SHADE, axis=1)
    palette[0, 3] = 0
    found = [index for index in np.unique(mask).tolist() if index]
    legend = tuple(
        Key(tuple(colors[index].tolist()), none if index == IGNORE else labels(index))
        for index in found
    )
    return Panel(image, title, overlay=mask, palette=palette, legend=legend)


def _changes(image: U8, before: U8, after: U8) -> Panel:
    """The pixels that change.py counts; where the masks differ in size, all have changed."""
    count = change(before, after, None)
    changed = before != after if before.shape == after.shape else before != IGNORE
    kinds = np.where(changed, np.where(at_boundary(before), 1, 2), 0).astype(np.uint8)
    image, kinds = _common(image, kinds)
    units = max(count["units"], 1)
    share, boundary = count["changed"] / units, count["boundary_changed"] / units
    inside = (count["changed"] - count["boundary_changed"]) / units
    legend = (
        Key(_BOUNDARY, f"changed at a boundary: {boundary:.2%}"),
        Key(_INSIDE, f"changed inside: {inside:.2%}"),
    )
    title = f"changed: {share:.2%} of pixels"
    return Panel(image, title, overlay=kinds, palette=_CHANGES, legend=legend)


def _common(image: U8, mask: U8) -> tuple[U8, U8]:
    """Cut both to their common size; they differ where another decoder gave the image."""
    height, width = (min(a, b) for a, b in zip(image.shape, mask.shape, strict=False))
    return image[:height, :width], mask[:height, :width]
