"""How good detections are: COCO's average precision from pycocotools, and its bootstrap."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simulator.contract.library import Library
from simulator.data.truth import Boxes
from simulator.errors import DataError
from simulator.statistics.bootstrap import Counts, Floats
from simulator.tasks.detection.boxes import Detections, areas, xywh

coco = Library("pycocotools.coco", distribution="pycocotools", extra="coco")
cocoeval = Library("pycocotools.cocoeval", distribution="pycocotools", extra="coco")
HEADLINE = "mAP"
_STATS = {
    HEADLINE: 0, "AP50": 1, "AP75": 2, "AP_small": 3, "AP_medium": 4, "AP_large": 5, "AR100": 8,
}  # fmt: skip
"""Their indices in ``COCOeval.stats``."""
METRICS = tuple(_STATS)
_IOUS = {HEADLINE: slice(None), "AP50": slice(0, 1), "AP75": slice(5, 6)}
"""The indices of a metric's thresholds among IoU 0.50:0.05:0.95."""
DETECTIONS = 100
"""How many detections of a class count in an image, best first (COCO's maxDets)."""
_LARGEST = 1e10
"""Square pixels; COCO ignores larger detections, such as a box that overflowed."""
_BATCH = 1_000_000
"""Numbers in one array, 8 MB; about ten such arrays exist at once."""


def evaluate(
    found: Sequence[Detections], truths: Sequence[Boxes], labels: Sequence[str]
) -> dict[str, float | None]:
    """Compute COCO's figures with pycocotools.

    Crowds and objects outside an area range are treated as COCO does. A ``difficult`` object is
    ignored in the same way as one outside the range: it cannot be missed, and one detection that
    fits it is left out. (A second one is a false positive here; the VOC development kit leaves it
    out too.)

    Args:
        found: what was detected, one an image.
        truths: what is there, of the same images in the same order.
        labels: the names of the classes, in index order.

    Returns:
        :data:`METRICS` and ``AP NAME`` for each class (``AP NAME (INDEX)`` where classes share
        the name), in [0, 1]; None where there is no object to find.

    Raises:
        DataError: a class index has no label.

    Source:
        pycocotools 2.0, ``COCOeval.summarize``; AP is the mean over IoU 0.50:0.05:0.95.
    """
    evaluation = evaluation_of(found, truths, len(labels))
    with contextlib.redirect_stdout(io.StringIO()):
        evaluation.evaluate()
        evaluation.accumulate()
        evaluation.summarize()
    stats = [float(value) for value in evaluation.stats]
    figures = {name: stats[at] if stats[at] > -1 else None for name, at in _STATS.items()}
    precision = evaluation.eval["precision"][..., 0, -1]  # IoU, recall, class; all areas, 100
    for index, name in enumerate(of_classes(labels)):
        values = precision[..., index]
        figures[name] = float(values.mean()) if (values > -1).any() else None
    return figures


def of_classes(labels: Sequence[str]) -> list[str]:
    """Return what the AP of each class is called; see :func:`evaluate`."""
    return [
        f"AP {name}" + (f" ({index})" if labels.count(name) > 1 else "")
        for index, name in enumerate(labels)
    ]


@dataclass(frozen=True, slots=True)
class Ranking:
    """The mAP of one stack on any resample of the images, without matching boxes again.

    Attributes:
        classes: one ranking for each class that has an object somewhere.
    """

    classes: tuple[_Class, ...]

    @classmethod
    def of(cls, found: Sequence[Detections], truths: Sequence[Boxes], classes: int) -> Ranking:
        """Match detections with objects by pycocotools, by the rules of :func:`evaluate`.

        Args:
            found: what was detected, one an image.
            truths: what is there, of the same images in the same order.
            classes: how many classes the model has.

        Raises:
            DataError: a class index is not below *classes*.
        """
        evaluation = matched(found, truths, classes)
        images, recalls = len(found), evaluation.params.recThrs
        parts = (evaluation.evalImgs[k * images : (k + 1) * images] for k in range(classes))
        ranked = (_ranked(part, recalls) for part in parts)
        return cls(tuple(one for one in ranked if one.positives.any()))

    def resampled(self, counts: Counts, at: str = HEADLINE) -> Floats:
        """Return the mAP of each resample, or AP50 or AP75.

        Args:
            counts: (R, n) integers, at least 0: how often each image was drawn.
            at: ``mAP``, ``AP50`` or ``AP75``.

        Returns:
            (R,), what pycocotools gives for the images so often, the copies of one side by side:
            the mean over the classes that have an object in the resample; NaN where none has.
        """
        each = np.stack(
            [np.full(len(counts), np.nan), *(one.ap(counts, _IOUS[at]) for one in self.classes)]
        )
        measured = ~np.isnan(each)
        number = measured.sum(axis=0)
        total = np.where(measured, each, 0).sum(axis=0)
        mean: Floats = np.divide(total, number, out=each[0].copy(), where=number > 0)
        return mean


@dataclass(frozen=True, slots=True, eq=False)
class _Class:
    """The detections of one class in all images, best score first, ties in image order.

    Attributes:
        image: (D,) where each was found.
        run: (D,) increasing; one number for those with one score in one image.
        mixed: (D,) bool: within the run some are right and others are not, so that copies of the
            image have to be gone through one after the other.
        true: (T, D) bool: matched with an object, at each IoU threshold.
        ignored: (T, D) bool: neither right nor wrong.
        positives: (n,) objects of each image that are to be found.
        recalls: (101,) at which precision is read.
    """

    image: NDArray[np.int64]
    run: NDArray[np.int64]
    mixed: NDArray[np.bool_]
    true: NDArray[np.bool_]
    ignored: NDArray[np.bool_]
    positives: NDArray[np.int64]
    recalls: Floats

    def ap(self, counts: Counts, ious: slice) -> Floats:
        """Return the average precision (R,) of each resample; NaN without an object."""
        copies = int(counts.max(initial=0))
        rows = len(self.image) + int(self.mixed.sum()) * max(copies - 1, 0)
        batch = max(1, _BATCH // max(rows, counts.shape[1], 1))
        order = self._copied(copies)
        starts = range(0, len(counts), batch)
        parts = [self._ap(counts[at : at + batch], *order, ious) for at in starts]
        return np.concatenate([np.empty(0), *parts])

    def _copied(self, copies: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the order with mixed runs once per copy: (E,) indices, (E,) copies or -1."""
        times = np.where(self.mixed, copies, 1)
        index = np.repeat(np.arange(len(times)), times)
        copy = np.arange(len(index)) - np.repeat(times.cumsum() - times, times)
        order = np.lexsort((index, copy, self.run[index]))
        return index[order], np.where(self.mixed[index], copy, -1)[order]

    def _ap(
        self, counts: Counts, index: NDArray[np.int64], copy: NDArray[np.int64], ious: slice
    ) -> Floats:
        """Return the AP of one batch; arrays here are (detections, resamples).

        Only true positives are looked at: the interpolated precision at a recall is the highest
        that any of them has from there on, and between them recall stands still.
        """
        positives = (counts @ self.positives).astype(np.float64)
        weights = counts.T.astype(np.float64)[self.image[index]]
        single = copy >= 0
        weights[single] = weights[single] > copy[single, None]
        seen = weights.cumsum(axis=0)
        total = np.zeros(len(counts))
        at_ious = list(zip(self.true[ious], self.ignored[ious], strict=True))
        for true, ignored in at_ious:
            at, skipped = np.flatnonzero(true[index]), np.flatnonzero(ignored[index])
            hits = weights[at].cumsum(axis=0)
            judged = seen[at]
            if len(skipped):
                passed = np.zeros((len(skipped) + 1, len(counts)))
                weights[skipped].cumsum(axis=0, out=passed[1:])
                judged -= passed[np.searchsorted(skipped, at)]
            precision = hits / (judged + np.spacing(1))
            highest = np.maximum.accumulate(precision[::-1], axis=0)[::-1]
            reached = np.searchsorted(self.recalls, hits / np.maximum(positives, 1), side="right")
            total += (highest * np.diff(reached, axis=0, prepend=0)).sum(axis=0)
        mean: Floats = total / (len(at_ious) * len(self.recalls))
        return np.where(positives > 0, mean, np.nan)


def _ranked(images: Sequence[dict[str, Any] | None], recalls: Floats) -> _Class:
    """Put together what ``COCOeval.evaluateImg`` returned for one class, image by image."""
    found = [(i, one) for i, one in enumerate(images) if one is not None]
    positives = np.zeros(len(images), np.int64)
    for i, one in found:
        positives[i] = np.count_nonzero(np.asarray(one["gtIgnore"]) == 0)
    parts = [one for _, one in found]
    scores = np.concatenate([np.empty(0), *(part["dtScores"] for part in parts)])
    empty = np.empty((10, 0), bool)
    matched = np.concatenate([empty, *(part["dtMatches"] > 0 for part in parts)], axis=1)
    ignored = np.concatenate([empty, *(part["dtIgnore"] > 0 for part in parts)], axis=1)
    image = np.repeat([i for i, _ in found], [len(part["dtScores"]) for part in parts])
    order = np.argsort(-scores, kind="stable")
    image, scores = image.astype(np.int64)[order], scores[order]
    true, ignored = (matched & ~ignored)[:, order], ignored[:, order]
    again = (np.diff(scores) == 0) & (np.diff(image) == 0)
    run = np.concatenate([np.zeros(min(len(image), 1), np.int64), (~again).cumsum()])
    differs = (np.diff(true, axis=1) | np.diff(ignored, axis=1)).any(axis=0) & again
    return _Class(image, run, np.isin(run, run[1:][differs]), true, ignored, positives, recalls)


def matched(
    found: Sequence[Detections], truths: Sequence[Boxes], classes: int, ious: slice = slice(None)
) -> Any:
    """Return a COCOeval that has matched objects of all sizes with 100 detections of each class.

    Args:
        found: see :func:`evaluate`.
        truths: likewise.
        classes: how many there are.
        ious: the thresholds, of 0.50:0.05:0.95.
    """
    evaluation = evaluation_of(found, truths, classes)
    settings = evaluation.params
    settings.areaRng, settings.areaRngLbl = settings.areaRng[:1], settings.areaRngLbl[:1]
    settings.iouThrs, settings.maxDets = settings.iouThrs[ious], [DETECTIONS]
    with contextlib.redirect_stdout(io.StringIO()):
        evaluation.evaluate()
    return evaluation


def evaluation_of(found: Sequence[Detections], truths: Sequence[Boxes], classes: int) -> Any:
    """Return a COCOeval over images 0 to n - 1 and categories 0 to *classes* - 1.

    Annotations are numbered from 1, as pycocotools takes a match with number 0 for none. It
    overwrites ``ignore`` with ``iscrowd``, which would also change the IoU and let an object be
    matched twice; an area outside every range makes it ignore an object without that.
    """
    objects = (
        (truth.classes, truth.xywh, np.where(truth.difficult, np.inf, truth.area), truth.crowd)
        for truth in truths
    )
    detections = (
        (one.classes, xywh(one.boxes), np.minimum(areas(one.boxes), _LARGEST), one.scores)
        for one in found
    )
    with contextlib.redirect_stdout(io.StringIO()):
        return cocoeval.COCOeval(
            _coco(len(truths), classes, objects, "iscrowd"),
            _coco(len(found), classes, detections, "score"),
            "bbox",
        )


def _coco(
    images: int,
    classes: int,
    annotated: Iterable[tuple[NDArray[np.int64], Floats, Floats, NDArray[Any]]],
    last: str,
) -> Any:
    """Return a COCO data set of each image's classes, boxes, areas and what *last* names."""
    names = ("category_id", "bbox", "area", last)
    annotations = [
        {"image_id": image, **dict(zip(names, values, strict=True))}
        for image, arrays in enumerate(annotated)
        for values in zip(*(array.tolist() for array in arrays), strict=True)
    ]
    for number, one in enumerate(annotations, 1):
        one["id"] = number
        if not 0 <= one["category_id"] < classes:
            raise DataError(
                f"image {one['image_id'] + 1} has a box of class {one['category_id']}, but there"
                f" are {classes} labels; the label file, or the data, is of another model"
            )
    data = coco.COCO()
    data.dataset = {
        "images": [{"id": image} for image in range(images)],
        "categories": [{"id": index} for index in range(classes)],
        "annotations": annotations,
    }
    data.createIndex()
    return data
