"""The segmentation task: a class for every pixel, mIoU, flips at boundaries and inside."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from simulator.contract import U8, Array, array_words
from simulator.contract.warp import Size, WarpOf
from simulator.data.masks import IGNORE, ArrayMask, MaskTruth, MovedMask
from simulator.errors import SampleError
from simulator.modalities.image.geometry import Placement
from simulator.modalities.image.orientation import stored, undoing
from simulator.profile.postprocess import Postprocess
from simulator.tasks.figures import Figures
from simulator.tasks.image_task import ImageTask
from simulator.tasks.score import Record, Score, Values
from simulator.tasks.segmentation.card import SegmentationOutput, Settings, check, resolve
from simulator.tasks.segmentation.change import SegmentationFlips, change
from simulator.tasks.segmentation.confusion import Sparse, confusion, guessed, missed, tally
from simulator.tasks.segmentation.impact import SegmentationImpact
from simulator.tasks.segmentation.logits import decode
from simulator.tasks.segmentation.view import SegmentationView
from simulator.tasks.task import CHANGES, Shapes


class Segmentation(ImageTask):
    """A mask of the image's size; its truth is a :class:`MaskTruth`, or None.

    An opened truth is (H, W) uint8 classes, 255 where a pixel is not judged.
    """

    name = "segmentation"
    in_pixels = True
    unit = "pixel"
    in_parts = True
    metrics = ("mIoU", "pixel_accuracy", "mean_accuracy")
    kinds = ("right_to_wrong", "wrong_to_right", "wrong_to_wrong")
    needs_labels = True
    reads = ("scores",)
    shown = ()
    shown_once = ("changed", "units", "boundary", "boundary_changed", *kinds)
    tried_with = "simulator.tasks.segmentation.specimen:logits"
    Output = SegmentationOutput
    Flips = SegmentationFlips
    View = SegmentationView
    Impact = SegmentationImpact
    columns: ClassVar[tuple[pa.Field, ...]] = (
        pa.field("cells", pa.list_(pa.int32())),
        pa.field("pixels", pa.list_(pa.int64())),
        *CHANGES,
        pa.field("boundary", pa.int64()),
        pa.field("boundary_changed", pa.int64()),
        *(
            pa.field(name, pa.list_(pa.int64()))
            for name in ("classes", "class_units", "class_changed")
        ),
        *(pa.field(name, pa.int64()) for name in kinds),
    )

    def vocabulary(self) -> dict[str, Sequence[str]]:
        """Add the IoU of each class."""
        own = super().vocabulary()
        return own | {"metric": (*self.metrics, *self._ious())}

    def check(self, shapes: Shapes) -> None:
        """Compare the output with the card's layout, stride and classes."""
        check(self.output, shapes, self.size, self.network.classes)

    def settings(self, asked: Postprocess) -> Settings:
        """Return the card's upsampling, argmax and mask resize with the profile's over them."""
        return resolve(self.output, asked, self.size)

    def decode(self, outputs: Mapping[str, Array], settings: Settings, placement: Placement) -> U8:
        """Return the mask in the image's size; see :func:`decode`."""
        return decode(outputs, settings, placement)

    def given(self, answer: Array) -> U8:
        """Return the mask that is an array of class numbers, (H, W) of the image."""
        rows = answer[0] if answer.ndim == 3 and len(answer) == 1 else answer
        whole = rows.dtype.kind in "iuf" and rows.ndim == 2 and rows.size
        if not whole or not np.array_equal(mask := rows.astype(np.uint8), rows):
            raise SampleError(
                f"gave {array_words(answer)} as an answer; expected a class from 0 to 255 for each "
                "pixel of the image, rows x columns"
            )
        return mask

    def stamp(self, truth: MaskTruth | None) -> str | None:
        """Return a digest of the mask; None where there is none."""
        return truth.digest() if truth else None

    def moved(self, truth: MaskTruth, warp: WarpOf, size: Callable[[], Size]) -> MaskTruth:
        """Return the mask with every pixel where it goes, by nearest neighbor."""
        return MovedMask(truth, warp)

    def placed(self, truth: MaskTruth, placement: Placement) -> MaskTruth:
        """Return the mask as the image lies, by nearest neighbor; its padding is not judged."""
        return ArrayMask(placed(truth.read(), placement))

    def opened(self, truth: MaskTruth | None, source: Any = None) -> U8 | None:
        """Read the mask, which must have the image's size."""
        size = (source.height, source.width) if source else None
        return truth.read(size) if truth else None

    def record(self, prediction: U8, truth: U8 | None) -> Values:
        """Return the image's confusion matrix without its zeros."""
        if truth is None:
            return {"cells": None, "pixels": None}
        return confusion(truth, prediction, self.network.classes)._asdict()

    def chance(self, shapes: Shapes, records: Sequence[Record]) -> float | None:
        """Return the mIoU of a guess; see :func:`guessed`."""
        return guessed(tally(_known(records), self.network.classes).truth.sum(axis=0))

    def change(self, before: U8, after: U8, truth: U8 | None) -> Values:
        """Count the pixels that changed: by class, at boundaries, right and wrong."""
        return dict(change(before, after, truth))

    def late(self, record: Record) -> Values:
        """Return the record with every pixel missed, and counted against no other class."""
        if record["cells"] is None:
            return dict(record)
        return {
            **record,
            **missed(Sparse(record["cells"], record["pixels"]), self.network.classes)._asdict(),
        }

    def score(self, records: Sequence[Record], truths: Sequence[Any]) -> Score:
        """Measure mIoU over all pixels of the images together, where every one has a mask."""
        known = _known(records)
        if len(known) < len(records):
            return Score(records, len(known), dict.fromkeys(self.metrics), None)
        images = tally(known, self.network.classes)
        metrics, figures = images.values(self._ious()), images.figures()
        if metrics[self.headline] is None:
            return Score(records, len(known), metrics, None)
        return Score(records, len(known), metrics, figures.pop(self.headline), figures)

    def _ious(self) -> list[str]:
        """What the IoU of each class is called."""
        return [f"IoU {self.network.label(index)}" for index in range(self.network.classes)]

    def more(self, train: Sequence[Record], deploy: Sequence[Record]) -> Figures:
        """Return the rates of change at boundaries, inside, and of each class."""
        total = {
            name: sum(r[name] for r in deploy)
            for name in ("units", "changed", "boundary", "boundary_changed")
        }
        inside = total["units"] - total["boundary"]
        rates = {
            "boundary_rate": _share(total["boundary_changed"], total["boundary"]),
            "inside_rate": _share(total["changed"] - total["boundary_changed"], inside),
        }
        units, moved = np.zeros((2, self.network.classes), np.int64)
        for r in deploy:
            known = np.array(r["classes"], np.int64) < self.network.classes
            classes = np.array(r["classes"], np.int64)[known]
            units[classes] += np.array(r["class_units"], np.int64)[known]
            moved[classes] += np.array(r["class_changed"], np.int64)[known]
        by_class = {
            self.network.label(index): _share(int(moved[index]), int(units[index]))
            for index in range(self.network.classes)
        }
        return {**rates, "class_rates": by_class}

    def examples(self) -> list[tuple[Any, Any]]:
        """Return a mask of two classes, one of a single class, and one that is not judged."""
        halves = np.zeros((12, 16), np.uint8)
        halves[:, 8:] = self.network.classes - 1
        masks = [halves, np.zeros((9, 7), np.uint8), np.full((5, 5), IGNORE, np.uint8)]
        return [
            (ArrayMask(mask), np.where(mask == IGNORE, 0, mask).astype(np.uint8)) for mask in masks
        ]


def _known(records: Sequence[Record]) -> list[Sparse]:
    """The confusion matrices of the images that have a mask."""
    return [Sparse(r["cells"], r["pixels"]) for r in records if r["cells"] is not None]


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def placed(mask: U8, placement: Placement) -> U8:
    """Return a mask as its image lies in the network's input, by nearest neighbor.

    Args:
        mask: (H, W) of the image as it is stored.
        placement: where the image lies.

    Returns:
        Of the network's size; :data:`IGNORE` where the input is padding.
    """
    turned = stored(mask, undoing(placement.orientation))
    rows, inside_rows = _sources(
        placement.network_height, placement.top, placement.rows, placement.height
    )
    columns, inside_columns = _sources(
        placement.network_width, placement.left, placement.columns, placement.width
    )
    found = turned[placement.cut.top + rows[:, None], placement.cut.left + columns]
    inside = inside_rows[:, None] & inside_columns
    return np.where(inside, found, np.uint8(IGNORE))


def _sources(
    network: int, start: int, resized: int, side: int
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """For each row of the network's input the row of the image, and whether it has any."""
    at = np.arange(network) - start
    rows = (2 * at + 1) * side // (2 * resized)
    return np.clip(rows, 0, side - 1), (at >= 0) & (at < resized)
