"""How well masks fit the annotated ones: counts of pixels, and the figures from their sums."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from simulator.contract import U8
from simulator.data.masks import IGNORE
from simulator.errors import SampleError
from simulator.statistics.bootstrap import Counts, Figure, Floats, Ratio


class Sparse(NamedTuple):
    """A confusion matrix without its zeros, as it is stored.

    Attributes:
        cells: truth * (classes + 1) + prediction, in increasing order.
        pixels: how many of each, at least 1.
    """

    cells: list[int]
    pixels: list[int]


def confusion(truth: U8, predicted: U8, classes: int) -> Sparse:
    """Count pixels by their true and their predicted class.

    A pixel is judged where neither the truth nor the prediction is 255 (the image was cropped, so
    there is none). A prediction that is none of the classes goes to the last column:
    its pixel is missed, and counts against no other class.

    Args:
        truth: (H, W) uint8 classes, and 255.
        predicted: (H, W) uint8 classes, and 255.
        classes: how many there are, at most 255.

    Raises:
        SampleError: the sizes differ, or the truth has a class that the model does not know.
    """
    check_size(truth, predicted)
    joint = (truth.astype(np.uint16) << 8) | predicted
    counts = np.bincount(joint.ravel(), minlength=1 << 16).reshape(256, 256)
    counts[IGNORE] = counts[:, IGNORE] = 0
    if counts[classes:].any():
        strange = classes + int(np.flatnonzero(counts[classes:].any(axis=1))[0])
        raise SampleError(f"the mask has class {strange}, but the model knows 0 to {classes - 1}")
    known = counts[:classes, :classes]
    matrix = np.column_stack([known, counts[:classes, classes:].sum(axis=1)]).ravel()
    cells = np.flatnonzero(matrix)
    return Sparse(cells.tolist(), matrix[cells].tolist())


def missed(row: Sparse, classes: int) -> Sparse:
    """Return the confusion matrix of the same truth with every pixel in the last column."""
    pixels = np.zeros(classes, np.int64)
    np.add.at(pixels, np.array(row.cells, np.int64) // (classes + 1), row.pixels)
    there = np.flatnonzero(pixels)
    return Sparse((there * (classes + 1) + classes).tolist(), pixels[there].tolist())


def check_size(truth: U8, predicted: U8) -> None:
    """Refuse a truth and a prediction of different sizes.

    Raises:
        SampleError: naming both sizes.
    """
    if truth.shape != predicted.shape:
        (h, w), (rows, columns) = truth.shape, predicted.shape
        turned = "; was the image turned (EXIF) by only one?" if (h, w) == (columns, rows) else ""
        raise SampleError(
            f"the mask has {w}x{h} pixels and the prediction {columns}x{rows}{turned}"
        )


@dataclass(frozen=True, slots=True, eq=False)
class Tally:
    """The sums behind the figures of n images and C classes: (n, C) float64, whole numbers.

    Figures are functions of (r, n) counts, how often each image was drawn, as
    :data:`simulator.statistics.bootstrap.Figure` says. All pixels of the drawn images count
    together; the sums are exact, below 2**53. NaN where nothing is judged.

    Attributes:
        right: pixels of a class that are predicted as it.
        union: pixels of a class, or predicted as it.
        truth: pixels of a class.

    Source:
        Everingham et al., IJCV 88 (2010), section 4.3 (IoU = tp / (tp + fp + fn), of all pixels of
        the set together); Long, Shelhamer and Darrell, CVPR 2015, section 5, for the accuracies.
    """

    right: Floats
    union: Floats
    truth: Floats

    def iou(self, counts: Counts) -> Floats:
        """Return the IoU (r, C) of each class; NaN for one that occurs nowhere."""
        drawn = counts.astype(np.float64)
        return _share(drawn @ self.right, drawn @ self.union)

    def mean_iou(self, counts: Counts) -> Floats:
        """Return the mean IoU of the classes that occur in the truth or the prediction.

        A class whose images were not drawn is left out as well: a single pixel predicted as it
        would make its IoU 0.
        """
        gone = self.truth.any(axis=0) & (counts.astype(np.float64) @ self.truth == 0)
        return _mean(np.where(gone, np.nan, self.iou(counts)))

    def mean_accuracy(self, counts: Counts) -> Floats:
        """Return the mean share of right pixels over the classes in the truth."""
        drawn = counts.astype(np.float64)
        return _mean(_share(drawn @ self.right, drawn @ self.truth))

    @property
    def pixel_accuracy(self) -> Ratio:
        """The share of judged pixels that are right."""
        return Ratio(self.right.sum(axis=1), self.truth.sum(axis=1))

    def figures(self) -> dict[str, Figure]:
        """Return the metrics by name, the headline first."""
        return {
            "mIoU": self.mean_iou,
            "pixel_accuracy": self.pixel_accuracy,
            "mean_accuracy": self.mean_accuracy,
        }

    def values(self, names: Sequence[str]) -> dict[str, float | None]:
        """Return the metrics of all images, and the IoU of each class.

        Args:
            names: what the IoU of each class is called.

        Returns:
            Fractions; None where nothing is judged, and for a class that occurs nowhere.
        """
        everything = np.ones((1, len(self.truth)), np.int64)
        found = {name: figure(everything)[0] for name, figure in self.figures().items()}
        found |= dict(zip(names, self.iou(everything)[0], strict=True))
        return {name: None if np.isnan(value) else float(value) for name, value in found.items()}


def tally(rows: Sequence[Sparse], classes: int) -> Tally:
    """Count right pixels and unions for each image."""
    sizes = [len(row.cells) for row in rows]
    image = np.repeat(np.arange(len(rows)), sizes)
    cells = np.concatenate([np.array(row.cells, np.int64) for row in rows] or [image])
    pixels = np.concatenate([np.array(row.pixels, np.int64) for row in rows] or [image])
    truth, predicted = np.divmod(cells, classes + 1)

    def summed(of: NDArray[np.int64], where: NDArray[np.bool_]) -> Floats:
        flat = np.zeros(len(rows) * classes)
        np.add.at(flat, (image * classes + of)[where], pixels[where])
        return flat.reshape(len(rows), classes)

    same = truth == predicted
    everywhere, known = np.ones_like(same), predicted < classes
    right, annotated = summed(truth, same), summed(truth, everywhere)
    return Tally(right, annotated + summed(predicted, known) - right, annotated)


def guessed(truth: Floats) -> float | None:
    """Return the mIoU of the better of two guesses: one class for all pixels, or any for each.

    One class, the commonest, has as its IoU its share of the pixels, and every other class that
    occurs has 0. Drawn evenly of C classes, a class with the share p has the IoU
    (p / C) / (p + 1 / C - p / C).

    Args:
        truth: (C,) pixels of each class.

    Returns:
        A fraction; None where nothing is judged.
    """
    if not truth.any():
        return None
    p, even = truth / truth.sum(), 1 / len(truth)
    drawn = p * even / (p + even - p * even)
    return float(max(p.max() / np.count_nonzero(p), drawn.mean()))


def _share(part: Floats, whole: Floats) -> Floats:
    """Element by element; NaN where the denominator is 0."""
    share: Floats = np.divide(part, whole, out=np.full(part.shape, np.nan), where=whole > 0)
    return share


def _mean(values: Floats) -> Floats:
    """The mean over the last axis of the values that are not NaN; NaN where all are."""
    known = ~np.isnan(values)
    return _share(np.where(known, values, 0.0).sum(axis=-1), known.sum(axis=-1).astype(np.float64))
