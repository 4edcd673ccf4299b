"""The detection task: boxes with classes and scores, COCO's average precision, matched flips."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from simulator.contract import Array, array_words
from simulator.contract.model import Port
from simulator.contract.warp import Size, WarpOf
from simulator.data.address import Root
from simulator.data.folder import IMAGES, Dataset, Files
from simulator.data.truth import Boxes
from simulator.errors import SampleError
from simulator.modalities.image.geometry import Placement
from simulator.profile.postprocess import Postprocess
from simulator.tasks.detection.boxes import Detections, areas, detections, xywh
from simulator.tasks.detection.card import DetectionOutput
from simulator.tasks.detection.curves import curves
from simulator.tasks.detection.decode import decode
from simulator.tasks.detection.impact import DetectionImpact
from simulator.tasks.detection.lesson import RetinaLesson
from simulator.tasks.detection.matching import CHANGED, DetectionFlips, change
from simulator.tasks.detection.metric import METRICS, Ranking, cocoeval, evaluate, of_classes
from simulator.tasks.detection.moving import moved, placed
from simulator.tasks.detection.ports import check
from simulator.tasks.detection.proposals import Proposing, check_inputs
from simulator.tasks.detection.settings import Settings, resolve
from simulator.tasks.detection.view import DetectionView
from simulator.tasks.figures import Figures
from simulator.tasks.image_task import ImageTask
from simulator.tasks.score import Record, Score, Values, agree
from simulator.tasks.task import CHANGES, Shapes

_BOXES = ("boxes", "scores", "classes")
"""The columns of a prediction."""


class Detection(ImageTask):
    """Boxes of the objects in an image; its truth is a :class:`Boxes`, or None."""

    name = "detection"
    in_pixels = True
    unit = "object"
    in_parts = True
    metrics = ("mAP", "AP50", "AP75")
    kinds = CHANGED
    guess = 0.0  # a box that is guessed covers no object closely
    tried_with = "simulator.tasks.detection.specimen:boxes"
    tracked_with = "simulator.tasks.detection.tracks:tracking"
    needs_labels = True
    resamples = 1000
    Output = DetectionOutput
    Flips = DetectionFlips
    View = DetectionView
    Impact = DetectionImpact
    columns: ClassVar[tuple[pa.Field, ...]] = (
        pa.field("boxes", pa.list_(pa.float64())),
        pa.field("scores", pa.list_(pa.float64())),
        pa.field("classes", pa.list_(pa.int32())),
        *CHANGES,
        *(pa.field(name, pa.int32()) for name in ("kept", *kinds, "rescored")),
        pa.field("mean_iou", pa.float64()),
    )

    def load(self, path: Root, files: Files = IMAGES) -> Dataset:
        """Open the samples at a path.

        Raises:
            MissingLibrary: they are annotated, and pycocotools is not installed.
        """
        found = super().load(path, files)
        if any(item.truth is not None for item in found.items):
            cocoeval.load()  # now, not after the last inference
        return found

    def outputs(self) -> tuple[str, ...]:
        """Return the outputs that the head reads."""
        names: tuple[str, ...] = self.output.outputs()
        return names

    def vocabulary(self) -> dict[str, Sequence[str]]:
        """Add COCO's further figures, and the AP of each class."""
        return super().vocabulary() | {"metric": (*METRICS, *of_classes(self._labels))}

    def check(self, shapes: Shapes) -> None:
        """Compare the outputs with the head's anchors, strides and classes."""
        check(self.output, shapes, self.size, self.network.classes)

    def handed(self) -> tuple[str, ...]:
        """Return the outputs that proposals are made of, and the feature maps."""
        given = self.output.proposals
        return (*given.outputs(), *given.features) if given else ()

    def check_handed(self, shapes: Shapes, inputs: Mapping[str, Port], outputs: Shapes) -> None:
        """Compare proposals with the outputs that they are made of, and with the second network."""
        given = self.output.proposals
        check(given, shapes, self.size, 1)
        check_inputs(given, shapes, inputs, "the second network's ")

    def handover(self, settings: Settings) -> Proposing | None:  # type: ignore[override]
        """Return how proposals are made."""
        made = settings.proposals
        return Proposing(self.output.proposals, made) if made else None

    def settings(self, asked: Postprocess) -> Settings:
        """Return the card's boxes, NMS and letterbox with the profile's over them."""
        return resolve(self.output, asked, self.size, self.network.classes)

    def decode(
        self, outputs: Mapping[str, Array], settings: Settings, placement: Placement
    ) -> Detections:
        """Return the boxes in the image's pixels; see :func:`decode`."""
        given = self.output.proposals
        proposals = outputs[given.input] if given else None
        return decode(outputs, settings, placement, self.network.classes, proposals)

    def lesson(self, settings: Settings) -> RetinaLesson:  # type: ignore[override]
        """Return RetinaNet's loss, by the anchors of the card."""
        return RetinaLesson(settings, self.network.classes)

    def stamp(self, truth: Boxes | None) -> str | None:
        """Return a digest of the boxes; None where nobody has annotated the image."""
        if truth is None:
            return None
        arrays = (truth.xywh, truth.classes, truth.crowd, truth.area, truth.difficult, truth.tracks)
        content = b"".join(np.ascontiguousarray(a).tobytes() for a in arrays if a is not None)
        return hashlib.blake2b(content, digest_size=8).hexdigest()

    def moved(self, truth: Boxes, warp: WarpOf, size: Callable[[], Size]) -> Boxes:
        """Return the boxes around where their outlines go, within the image; see :func:`moved`."""
        return moved(truth, warp, truth.size or size())

    def placed(self, truth: Boxes, placement: Placement) -> Boxes:
        """Return the boxes in the network's pixels; those that it does not see are left out."""
        return placed(truth, placement)

    def opened(self, truth: Boxes | None, source: Any = None) -> Boxes | None:
        """Check the annotated size against the image's.

        Raises:
            SampleError: they differ, so the boxes are of another image.
        """
        if truth and source and truth.size not in (None, (source.height, source.width)):
            rows, columns = truth.size or (0, 0)
            raise SampleError(
                f"the annotations say {columns}x{rows} pixels, and the file has "
                f"{source.width}x{source.height}"
            )
        return truth

    def given(self, answer: Array) -> Detections:
        """Return the detections that are the rows of an array: x1, y1, x2, y2, score, class."""
        lone = answer.size == 0 or answer.shape == (6,)  # one row may have lost its axis on the way
        rows = answer.reshape(-1, 6) if lone else answer
        if rows.ndim != 2 or rows.shape[1] != 6 or rows.dtype.kind not in "iuf":
            raise SampleError(
                f"gave {array_words(answer)} as an answer; expected a row of x1, y1, x2, y2, score "
                "and class for each box"
            )
        if not np.isfinite(rows).all() or (rows[:, 5] < 0).any() or (rows[:, 5] % 1).any():
            raise SampleError("gave boxes with values that are not finite, or that are no class")
        rows = rows[np.argsort(-rows[:, 4], kind="stable")].astype(np.float64)
        return Detections(rows[:, :4], rows[:, 4], rows[:, 5].astype(np.int64))

    def record(self, prediction: Detections, truth: Boxes | None) -> Values:
        """Return the detections as lists."""
        return {
            "boxes": prediction.boxes.ravel().tolist(),
            "scores": prediction.scores.tolist(),
            "classes": prediction.classes.tolist(),
        }

    def change(self, before: Detections, after: Detections, truth: Any) -> Values:
        """Count what became of each object above the operating threshold."""
        return change(before, after, self.output.operating_threshold)

    def same(self, before: Record, after: Record) -> bool:
        """Whether the boxes are equal, or no object is lost, gained, moved or relabelled.

        Boxes are both answers and fractions: another processor may move one by a part of a pixel.
        """
        firm = [name for name in self.firm if name not in _BOXES]
        if not agree(before, after, firm):
            return False
        return not self.flipped(before, after)

    def flipped(self, before: Record, after: Record) -> bool:
        """Whether an object is lost, gained, moved or relabelled."""
        if agree(before, after, _BOXES):
            return False
        return bool(self.change(detections(before), detections(after), None)["changed"])

    def late(self, record: Record) -> Values:
        """Return the record without any detection."""
        return {**record, "boxes": [], "scores": [], "classes": []}

    def score(self, records: Sequence[Record], truths: Sequence[Boxes | None]) -> Score:
        """Measure COCO's average precision with pycocotools, if every image is annotated."""
        known = [truth for truth in truths if truth is not None]
        if len(known) < len(records):
            return Score(records, len(known), dict.fromkeys(self.metrics), None)
        found = [detections(record) for record in records]
        metrics = evaluate(found, known, self._labels)
        if metrics[self.headline] is None:
            return Score(records, len(known), metrics, None)
        resampled = Ranking.of(found, known, self.network.classes).resampled
        others = {name: partial(resampled, at=name) for name in self.metrics[1:]}
        return Score(records, len(known), metrics, resampled, others)

    def curves(
        self, records: Sequence[Record], truths: Sequence[Boxes | None]
    ) -> dict[str, list[float]]:
        """Return precision over recall at IoU 0.5, if every image is annotated."""
        known = [truth for truth in truths if truth is not None]
        if len(known) < len(records):
            return {}
        return curves([detections(record) for record in records], known, self._labels)

    def more(self, train: Sequence[Record], deploy: Sequence[Record]) -> Figures:
        """Return the mean IoU of all pairs, None if there is none, and how many are rescored."""
        pairs = [r["units"] - r["lost"] - r["gained"] for r in deploy]
        total = sum(n * r["mean_iou"] for n, r in zip(pairs, deploy, strict=True) if n)
        return {
            "mean_iou": total / sum(pairs) if sum(pairs) else None,
            "rescored": sum(r["rescored"] for r in deploy),
        }

    def severity(self, train: Record, deploy: Record) -> float:
        """Return how many objects changed; of equal numbers, the larger share is worse."""
        return float(deploy["changed"] + deploy["changed"] / max(deploy["units"], 1))

    def flip(self, train: Record, deploy: Record) -> Values:
        """Return the counts of the image."""
        counts = {name: deploy[name] for name in ("changed", "units", *self.kinds, "rescored")}
        threshold = self.output.operating_threshold
        shown = {
            side: {"objects": sum(score > threshold for score in record["scores"])}
            for side, record in (("train", train), ("deploy", deploy))
        }
        return counts | shown

    def examples(self) -> list[tuple[Any, Any]]:
        """Return three images: with two objects, with one, and without any."""
        last = self.network.classes - 1
        boxes = np.array([[8.0, 8.0, 40.0, 30.0], [50.0, 20.0, 90.0, 80.0]])
        scores, classes = np.array([0.99, 0.98]), np.array([0, last])
        found = []
        for count in (2, 1, 0):
            corners = boxes[:count]
            none = np.zeros(count, bool)
            truth = Boxes(xywh(corners), classes[:count], none, areas(corners), none)
            found.append((truth, Detections(corners, scores[:count], classes[:count])))
        return found

    @property
    def _labels(self) -> tuple[str, ...]:
        assert self.network.labels is not None
        return self.network.labels.names
