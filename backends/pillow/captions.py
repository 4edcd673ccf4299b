"""Placement of captions inside the image, without overlap."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

import numpy as np

Box = tuple[int, int, int, int]
"""Left, top, right, bottom in pixels, all inclusive."""


def place(
    boxes: Sequence[Box], captions: Sequence[str], font: Any, size: tuple[int, int]
) -> Iterator[tuple[int, Box, str]]:
    """Find a free spot at each box, above, below or inside it, from the last box to the first.

    Args:
        boxes: in the order of *captions*, inside the picture.
        captions: one line each; an empty one is not placed.
        font: measures and draws the text.
        size: width and height of the picture, in pixels.

    Yields:
        The box's index, the spot, and the text, shortened if it is wider than the picture.
        A caption without a free spot is omitted.
    """
    width, height = size
    taken = np.zeros((height, width), bool)
    tall = sum(font.getmetrics())
    for index in reversed(range(len(boxes))):
        text = fit(captions[index], font, width - 4)
        if not text or tall > height:
            continue
        wide = math.ceil(font.getlength(text)) + 4
        left, top, right, bottom = boxes[index]
        spots = (
            (max(0, min(x, width - wide)), max(0, min(y, height - tall)))
            for y in (top - tall, top, bottom + 1, bottom - tall + 1, top + tall, top - 2 * tall)
            for x in (left, right - wide + 1)
        )
        free = (spot for spot in spots if not taken[_window(spot, wide, tall)].any())
        for x, y in islice(free, 1):
            taken[_window((x, y), wide, tall)] = True
            yield index, (x, y, x + wide - 1, y + tall - 1), text


def _window(spot: tuple[int, int], wide: int, tall: int) -> tuple[slice, slice]:
    x, y = spot
    return slice(y, y + tall), slice(x, x + wide)


def fit(text: str, font: Any, width: int) -> str:
    """Cut *text* to *width* pixels, with an ellipsis; return "" if not even that fits."""
    if font.getlength(text) <= width:
        return text
    shorter = text[: max(0, width)]  # no letter is narrower than a pixel
    while shorter and font.getlength(shorter + "…") > width:
        shorter = shorter[:-1]
    return shorter + "…" if shorter else ""
