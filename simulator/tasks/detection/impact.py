"""What a hardware fault does to the boxes of an image: IVMOD, and how severe it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pydantic import Field

from simulator.contract.pictures import Rectangle
from simulator.contract.warp import Size
from simulator.data.truth import Boxes
from simulator.errors import UserError
from simulator.profile.section import Section
from simulator.tasks.detection.assignment import (
    PAIR,
    Counts,
    Reading,
    count,
    kinds,
    objects,
    pairs,
    reference,
)
from simulator.tasks.detection.boxes import Detections, areas, detections, overlaps
from simulator.tasks.impact import WITH, WITHOUT, Blobs, Impact
from simulator.tasks.score import Record, Values
from simulator.tasks.settings import Network

KINDS = ("delta_fp_label", "delta_fp_shifted", "delta_fp_ghost")
COUNTS = ("tp", "fp", "fn", "tp_golden", "fp_golden", "fn_golden")


class DetectionFaults(Section):
    """What a campaign may choose.

    Attributes:
        assignment: what the best assignment is; see
            :func:`simulator.tasks.detection.assignment.pairs`.
        threshold: only boxes with a larger score are objects; None for the model card's operating
            threshold, the boxes that an application shows.
        iou: the least IoU of a pair.
        classes: which classes may be a pair. ``each``: equal ones; ``ignored``: any two; or
            clusters by name, such as ``{vehicle: [car, truck, bus]}``, within which any two may.
    """

    assignment: Reading = "most_pairs"
    threshold: Annotated[float, Field(ge=0, lt=1)] | None = None
    iou: Annotated[float, Field(gt=0, le=1)] = PAIR
    classes: Literal["each", "ignored"] | dict[str, Annotated[list[str], Field(min_length=1)]] = (
        "each"
    )


class DetectionImpact(Impact):
    """An answer is corrupted where the number of false or of missed objects is another one.

    Where nobody has annotated the image, the objects that were found without the fault are its
    truth. Boxes count within the image.

    Columns:
        ``tp``, ``fp``, ``fn``: objects with the fault; ``*_golden``: without. ``strict``: whether
        another object is found, or another box is false, even if the numbers are equal.
        ``delta_fp``: false objects that the fault adds; ``delta_fp_label``, ``_shifted`` and
        ``_ghost`` divide them, see :func:`simulator.tasks.detection.assignment.kinds`.
        ``delta_fn_n``: the share of found objects
        that it loses; None where none was found. Both are negative where a fault does good.
        ``size``, ``confidence``: means of all boxes, in square pixels and as scores; of false ones
        ``false_size``, ``false_confidence``; None without a box. ``false_area``, ``missed_area``:
        see :class:`simulator.tasks.impact.Blobs`.

    Source:
        Qutub et al., SAFECOMP 2022, equations 1 to 4. Equation 3 is read as "a pixel is occupied
        where u > 0", and occupancies are taken before they are subtracted: as printed, u >= 0, the
        whole image would be occupied.
    """

    columns: ClassVar[tuple[pa.Field, ...]] = (
        *(pa.field(name, pa.int32()) for name in COUNTS),
        pa.field("strict", pa.bool_()),
        *(pa.field(name, pa.int32()) for name in ("delta_fp", *KINDS)),
        pa.field("delta_fn_n", pa.float64()),
        *(pa.field(name, pa.float64()) for name in ("size_golden", "size", "false_size")),
        *(
            pa.field(name, pa.float64())
            for name in ("confidence_golden", "confidence", "false_confidence")
        ),
        *(pa.field(name, pa.float64()) for name in ("false_area", "missed_area")),
    )
    words: ClassVar[Mapping[str, str]] = {
        "strict": "SDC, strict: other objects",
        "delta_fp": "false objects added",
        "delta_fp_label": "of them a wrong label",
        "delta_fp_shifted": "of them a shifted box",
        "delta_fp_ghost": "of them ghosts",
        "delta_fn_n": "share of found objects lost",
        "size_golden": "size of boxes without fault, px²",
        "size": "size of boxes with fault, px²",
        "false_size": "size of false boxes, px²",
        "confidence_golden": "score of boxes without fault",
        "confidence": "score of boxes with fault",
        "false_confidence": "score of false boxes",
        "false_area": "image falsely occupied",
        "missed_area": "occupied area lost",
    }
    shown: ClassVar[tuple[str, ...]] = ("delta_fp", "delta_fn_n", "false_area")
    in_records: ClassVar[bool] = True
    Options = DetectionFaults

    def __init__(
        self,
        task: Any,
        options: DetectionFaults,
        golden: Detections,
        truth: Boxes | None,
        size: Size,
    ) -> None:
        super().__init__(task, options, golden, truth, size)
        asked = options.threshold
        self._threshold = task.output.operating_threshold if asked is None else asked
        self._size, self._cluster = size, clusters(options.classes, task.network)
        self._before = self._objects(golden)
        seen = truth and replace(truth, classes=self._cluster[truth.classes])
        self._there = reference(seen, self._before, size)
        self._counts = self._count(self._before)
        self._split = self._kinds(self._before, self._counts)
        self._occupied = occupied(self._before.boxes, size)

    def judge(self, faulty: Detections) -> Values:
        """Count objects with the fault, and compare them with those without."""
        now, before = self._objects(faulty), self._before
        counts, was = self._count(now), self._counts
        (tp, fp, fn), (tp_was, fp_was, fn_was) = counts.triple, was.triple
        false, blobs = now.take(counts.false), self._blobs(now)
        split = np.subtract(self._kinds(now, counts), self._split).tolist()
        return {
            "sdc": (fp, fn) != (fp_was, fn_was),
            **dict(zip(COUNTS, (*counts.triple, *was.triple), strict=True)),
            "strict": self._strict(counts, false),
            "delta_fp": fp - fp_was,
            **dict(zip(KINDS, split, strict=True)),
            "delta_fn_n": (tp_was - tp) / tp_was if tp_was else None,
            "size_golden": _mean(areas(before.boxes)),
            "size": _mean(areas(now.boxes)),
            "false_size": _mean(areas(false.boxes)),
            "confidence_golden": _mean(before.scores),
            "confidence": _mean(now.scores),
            "false_confidence": _mean(false.scores),
            "false_area": blobs.false_area,
            "missed_area": blobs.missed_area,
        }

    def blobs(self, faulty: Detections) -> Blobs:
        """Return the pixels that boxes occupy with the fault only, and without it only.

        All boxes count, whatever their class, and whether they are true or false: a false box
        inside a healthy one frees and occupies nothing.
        """
        return self._blobs(self._objects(faulty))

    def marks(self, faulty: Detections) -> tuple[Rectangle, ...]:
        """Return boxes with the fault, and over them thinner ones without it."""
        layers = ((self._objects(faulty), WITH, 4), (self._before, WITHOUT, 2))
        return tuple(
            Rectangle((x1, y1, x2, y2), color, width=width)
            for found, color, width in layers
            for x1, y1, x2, y2 in found.boxes.tolist()
        )

    def said(self, answer: Detections) -> str:
        """Return how many objects are found, false and missed."""
        found, false, missed = self._count(self._objects(answer)).triple
        return f"{found} found, {false} false, {missed} missed"

    @staticmethod
    def restored(record: Record) -> Detections:
        """Return the boxes of a record."""
        return detections(record)

    def _blobs(self, now: Detections) -> Blobs:
        before, after = self._occupied, occupied(now.boxes, self._size)
        return Blobs(after & ~before, before & ~after, before)

    def reference(self) -> Blobs | None:
        """Return where what is found without the fault differs from what people annotated."""
        if self.truth is None:
            return None
        there, aside = self._there.objects.boxes, self._there.regions.boxes
        wanted, found = occupied(there, self._size), self._occupied
        anything = wanted | occupied(aside, self._size)
        return Blobs(found & ~anything, wanted & ~found, found)

    @classmethod
    def check(cls, task: Any, options: DetectionFaults) -> None:
        """Look up the classes of clusters."""
        clusters(options.classes, task.network)

    def _objects(self, found: Detections) -> Detections:
        shown = objects(found, self._threshold, self._size)
        return replace(shown, classes=self._cluster[shown.classes])

    def _count(self, found: Detections) -> Counts:
        return count(found, self._there, self.options.assignment, self.options.iou)

    def _kinds(self, found: Detections, counts: Counts) -> tuple[int, int, int]:
        there = self._there.objects
        missed = there.take(np.setdiff1d(np.arange(len(there)), counts.found))
        return kinds(found.take(counts.false), missed, self.options.iou)

    def _strict(self, counts: Counts, false: Detections) -> bool:
        """Whether other objects are found, or the false boxes are no longer the same ones."""
        was = self._before.take(self._counts.false)
        if len(false) != len(was) or not np.array_equal(counts.found, self._counts.found):
            return True
        shares = overlaps(false.boxes, was.boxes)
        same = false.classes[:, None] == was.classes[None]
        return len(pairs(shares, same, self.options.assignment, self.options.iou)[0]) < len(was)


def clusters(asked: str | Mapping[str, list[str]], network: Network) -> NDArray[np.int64]:
    """Return the cluster of each class of a model, as the index of one class that is in it.

    Raises:
        UserError: the model has no such class, or one is in two clusters.
    """
    found = np.arange(network.classes)
    if isinstance(asked, str):
        return found if asked == "each" else np.zeros_like(found)
    assert network.labels is not None
    taken: dict[int, str] = {}
    for name, members in asked.items():
        for label in members:
            if not network.labels.knows(label):
                raise UserError(f"classes.{name}: {network.labels.why_not(label)}")
            at = network.labels.resolve(label)
            if taken.setdefault(at, name) != name:
                raise UserError(f"classes: {label!r} is in {taken[at]} and in {name}")
            found[at] = network.labels.resolve(members[0])
    return found


def occupied(boxes: NDArray[np.float64], size: Size) -> NDArray[np.bool_]:
    """Return which pixels have their center in a box.

    Args:
        boxes: (n, 4) x1, y1, x2, y2 within the image.
        size: its rows and columns.

    Returns:
        (rows, columns) bool.
    """
    mask = np.zeros(size, bool)
    for left, top, right, bottom in np.ceil(boxes - 0.5).astype(np.int64).tolist():
        mask[max(top, 0) : max(bottom, 0), max(left, 0) : max(right, 0)] = True
    return mask


def _mean(values: NDArray[np.float64]) -> float | None:
    return float(values.mean()) if len(values) else None
