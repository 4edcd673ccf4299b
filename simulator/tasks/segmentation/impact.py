"""What a hardware fault does to a mask: how many pixels change, and the largest blob of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pydantic import Field

from simulator.contract import U8, Panel
from simulator.data.masks import IGNORE
from simulator.profile.section import Section
from simulator.tasks.impact import Impact
from simulator.tasks.score import Values
from simulator.tasks.segmentation.view import naming, panels

EIGHT = np.ones((3, 3), bool)
"""Pixels of a blob touch each other straight or diagonally."""


class SegmentationFaults(Section):
    """What a campaign may choose.

    Attributes:
        blob: an answer is corrupted where the largest blob of changed pixels covers more than this
            share of the answered pixels; 0 for any changed pixel.
    """

    blob: Annotated[float, Field(ge=0, lt=1)] = 0.0


class SegmentationImpact(Impact):
    """An answer is corrupted where pixels have another class, and touch each other in a blob.

    Columns:
        ``changed``: pixels of another class; ``changed_share``: of those with an answer.
        ``blobs``: connected sets of changed pixels, diagonals count; ``largest_blob``: the pixels
        of the largest one, ``largest_share``: of those with an answer. ``right_to_wrong``,
        ``wrong_to_right``: judged pixels; None without truth.
    """

    columns: ClassVar[tuple[pa.Field, ...]] = (
        pa.field("changed", pa.int64()),
        pa.field("changed_share", pa.float64()),
        pa.field("blobs", pa.int32()),
        pa.field("largest_blob", pa.int64()),
        pa.field("largest_share", pa.float64()),
        pa.field("right_to_wrong", pa.int64()),
        pa.field("wrong_to_right", pa.int64()),
    )
    words: ClassVar[Mapping[str, str]] = {
        "changed_share": "pixels changed, share",
        "largest_share": "largest changed blob, share",
    }
    shown: ClassVar[tuple[str, ...]] = ("changed_share", "largest_share")
    Options = SegmentationFaults

    def judge(self, faulty: U8) -> Values:
        """Compare two masks of one size."""
        from scipy.ndimage import label

        golden, truth = self.golden, self.truth
        differs = golden != faulty
        changed = int(np.count_nonzero(differs))
        answered = max(int(np.count_nonzero(golden != IGNORE)), 1)
        number, largest = 0, 0
        if changed:
            labels, number = label(differs, EIGHT)
            largest = int(np.bincount(labels.ravel())[1:].max())
        return {
            "sdc": largest / answered > self.options.blob,
            "changed": changed,
            "changed_share": changed / answered,
            "blobs": number,
            "largest_blob": largest,
            "largest_share": largest / answered,
            "right_to_wrong": _right(golden, truth, differs),
            "wrong_to_right": _right(faulty, truth, differs),
        }

    def panels(self, image: U8, faulty: U8) -> list[Panel]:
        """Draw both masks and what changed between them."""
        images, names = (image, image), naming(self.task.network)
        titles = ("without the fault", "with it")
        return panels(images, self.golden, faulty, None, names, titles)


def _right(mask: U8, truth: U8 | None, where: NDArray[np.bool_]) -> int | None:
    """How many of these pixels a mask has right; pixels without a class are not judged."""
    if truth is None:
        return None
    return int(np.count_nonzero(where & (truth != IGNORE) & (mask == truth)))
