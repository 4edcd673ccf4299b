"""Both stacks' masks on one image, and the pixels that changed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from simulator.contract import U8, Color, Key, Mask, Panel

_BAND = 3
"""A pixel so near to another class of the train mask is at a boundary."""
_SHADE = 150
"""Alpha of a class over the image."""
_INSIDE: Color = (213, 94, 0)
_BOUNDARY: Color = (240, 228, 66)
"""Of the palette of Okabe and Ito (2008), which people with any color vision can tell apart."""
_CHANGES = np.array([[0, 0, 0, 150], [*_BOUNDARY, 255], [*_INSIDE, 255]], np.uint8)
"""What did not change is darkened; then changes at a boundary, and inside."""


def panels(
    images: tuple[U8, U8],
    before: Mask,
    after: Mask,
    truth: Mask | None,
    labels: Callable[[int], str],
    ignore: int = 255,
) -> list[Panel]:
    """Draw the train mask, the deploy mask, what changed, and the truth where there is one.

    Args:
        images: (H, W, 3) uint8 RGB, as each stack decoded it.
        before: (H, W) class indices, the train stack's.
        after: the deploy stack's.
        truth: the annotated ones, if there are any.
        labels: the name of a class.
        ignore: the index of *truth* that is not judged.
    """
    drawn = [
        _classes(images[0], before, "train", labels),
        _classes(images[1], after, "deploy", labels),
        _changes(images[0], before, after),
    ]
    if truth is not None:
        drawn.append(
            _classes(
                images[0],
                truth,
                "truth",
                lambda index: "not judged" if index == ignore else labels(index),
            )
        )
    return drawn


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


def _classes(image: U8, mask: Mask, title: str, labels: Callable[[int], str]) -> Panel:
    """Every class but 0 in its color; 0, mostly the background, leaves the image as it is."""
    image, mask = _common(image, mask)
    found = np.unique(mask)
    colors = colormap(int(found[-1]) + 1)
    palette = np.insert(colors, 3, _SHADE, axis=1)
    palette[0, 3] = 0
    named = [(colors[index].tolist(), labels(index)) for index in found.tolist() if index]
    legend = tuple(Key((r, g, b), words) for (r, g, b), words in named)
    return Panel(image, title, overlay=mask, palette=palette, legend=legend)


def _changes(image: U8, before: Mask, after: Mask) -> Panel:
    image, before, after = _common(image, before, after)
    changed = before != after
    kinds = np.where(changed, np.where(_near_boundary(before), 1, 2), 0).astype(np.uint8)
    _, boundary, inside = np.bincount(kinds.ravel(), minlength=3) / kinds.size
    legend = (
        Key(_BOUNDARY, f"changed at a boundary: {boundary:.2%}"),
        Key(_INSIDE, f"changed inside: {inside:.2%}"),
    )
    title = f"changed: {boundary + inside:.2%} of pixels"
    return Panel(image, title, overlay=kinds, palette=_CHANGES, legend=legend)


def _near_boundary(mask: Mask) -> NDArray[np.bool_]:
    """Where another class is at most _BAND rows and columns away."""
    side = 2 * _BAND + 1
    near: NDArray[np.bool_] = ndimage.maximum_filter(mask, side, mode="nearest") != (
        ndimage.minimum_filter(mask, side, mode="nearest")
    )
    return near


def _common(*arrays: NDArray[Any]) -> list[NDArray[Any]]:
    """Cut all to their common size: a decoder may drop an odd row or column."""
    height, width = (min(array.shape[axis] for array in arrays) for axis in (0, 1))
    return [array[:height, :width] for array in arrays]
