"""What changed from one stack's mask to the other's, counted in pixels."""

from __future__ import annotations

from typing import Annotated, TypedDict

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from simulator.contract import U8
from simulator.data.masks import IGNORE
from simulator.tasks.figures import Flips
from simulator.tasks.segmentation.confusion import check_size
from simulator.typed import Keys, Share

BAND = 3
"""Pixels this near to a boundary, in Chebyshev's distance, are at it."""


class SegmentationFlips(Flips):
    """Pixels that differ; rates are fractions, None of no pixels."""

    right_to_wrong: int | None = Field(description="right on the training stack only")
    wrong_to_right: int | None = Field(description="right on the deployment stack only")
    wrong_to_wrong: int | None = Field(description="wrong on both, in different ways")
    boundary_rate: Share | None = Field(description="of pixels within 3 px of a boundary")
    inside_rate: Share | None = Field(description="of all other pixels")
    class_rates: Annotated[dict[str, Share | None], Keys("class")] = Field(
        description="by class, of the pixels that the training stack gives it"
    )


class Change(TypedDict):
    """Flips of one image, counted in pixels.

    Attributes:
        units: pixels for which at least one mask has an answer.
        changed: those whose class differs, or with an answer in one mask only.
        boundary: those of ``units`` at a boundary of the first mask.
        boundary_changed: those of ``boundary`` that changed; all other changes are inside.
        classes: the classes of the first mask, in increasing order.
        class_units: the pixels of each class.
        class_changed: how many of these changed.
        right_to_wrong: judged pixels that changed and were right; None without truth.
        wrong_to_right: judged pixels that changed and became right.
        wrong_to_wrong: judged pixels that changed from one wrong class to another.
    """

    units: int
    changed: int
    boundary: int
    boundary_changed: int
    classes: list[int]
    class_units: list[int]
    class_changed: list[int]
    right_to_wrong: int | None
    wrong_to_right: int | None
    wrong_to_wrong: int | None


def change(before: U8, after: U8, truth: U8 | None) -> Change:
    """Count what changed.

    Masks of different sizes (one stack turned the image as its EXIF says, the other did not) do not
    have the same pixels: then every pixel of the first mask has changed.

    Args:
        before: (H, W) uint8 classes, and 255 where there is no answer.
        after: (H, W) likewise.
        truth: (H, W) uint8 classes, and 255 where nothing is judged; pixels are judged as for the
            metric, except that a missing answer in one mask only is a wrong one.

    Raises:
        SampleError: the truth and a mask differ in size.
    """
    if truth is not None:
        check_size(truth, before)
        check_size(truth, after)
    other = after if after.shape == before.shape else None
    answered = before != IGNORE if other is None else (before != IGNORE) | (other != IGNORE)
    changed = answered if other is None else before != other
    edge = at_boundary(before) & answered
    everything = np.bincount(before.ravel(), minlength=256)[:IGNORE]
    moved = np.bincount(before[changed], minlength=256)[:IGNORE]
    classes = np.flatnonzero(everything)
    lost = won = wrong = None
    if truth is not None and other is not None:
        judged = changed & (truth != IGNORE)
        lost = int(np.count_nonzero(judged & (before == truth)))
        won = int(np.count_nonzero(judged & (other == truth)))
        wrong = int(np.count_nonzero(judged)) - lost - won
    return {
        "units": int(np.count_nonzero(answered)),
        "changed": int(np.count_nonzero(changed)),
        "boundary": int(np.count_nonzero(edge)),
        "boundary_changed": int(np.count_nonzero(edge & changed)),
        "classes": classes.tolist(),
        "class_units": everything[classes].tolist(),
        "class_changed": moved[classes].tolist(),
        "right_to_wrong": lost,
        "wrong_to_right": won,
        "wrong_to_wrong": wrong,
    }


def at_boundary(mask: U8) -> NDArray[np.bool_]:
    """Whether a pixel of another class is within :data:`BAND` pixels of each of (H, W) classes."""
    padded = np.pad(mask, BAND, "edge")
    highest, lowest = (_of_windows(padded, of) for of in (np.maximum, np.minimum))
    found: NDArray[np.bool_] = highest != lowest
    return found


def _of_windows(values: U8, of: np.ufunc) -> U8:
    """Reduce every square window by doubling: 7 rows from windows of 1, 2 and 4."""
    window = 2 * BAND + 1
    for _ in range(2):
        have = 1
        while have < window:
            step = min(have, window - have)
            values = of(values[:-step], values[step:])
            have += step
        values = values.T
    return values
