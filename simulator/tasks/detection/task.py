"""The detection task: boxes with classes and scores, COCO's average precision, matched flips."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from simulator.contract import U8, Array, Encoded, Panel
from simulator.data.card import load_annotated
from simulator.data.folder import Dataset
from simulator.data.truth import Boxes
from simulator.errors import SampleError
from simulator.modalities.image.geometry import Placement
from simulator.profile.postprocess import Postprocess
from simulator.tasks.detection.boxes import Detections, areas, xywh
from simulator.tasks.detection.card import DetectionOutput
from simulator.tasks.detection.decode import decode
from simulator.tasks.detection.drawing import panels
from simulator.tasks.detection.figures import DetectionFlips
from simulator.tasks.detection.matching import change
from simulator.tasks.detection.metric import METRICS, Ranking, evaluate, of_classes
from simulator.tasks.detection.ports import check
from simulator.tasks.detection.settings import Settings, resolve
from simulator.tasks.score import Record, Score
from simulator.tasks.task import CHANGES, Shapes, Task


class Detection(Task):
    """Boxes of the objects in an image; its truth is a :class:`Boxes`, or None."""

    name = "detection"
    unit = "object"
    metrics = ("mAP", "AP50", "AP75")
    kinds: ClassVar[Mapping[str, str]] = {
        "lost": "lost",
        "gained": "gained",
        "moved": "moved",
        "relabelled": "relabelled",
    }
    titles = ("objects changed", "of these", "picture")
    resamples = 1000
    Output = DetectionOutput
    Flips = DetectionFlips
    columns: ClassVar[tuple[pa.Field, ...]] = (
        pa.field("boxes", pa.list_(pa.float64())),
        pa.field("scores", pa.list_(pa.float64())),
        pa.field("classes", pa.list_(pa.int32())),
        *CHANGES,
        *(pa.field(name, pa.int32()) for name in ("kept", *kinds, "rescored")),
        pa.field("mean_iou", pa.float64()),
    )

    def outputs(self) -> tuple[str, ...]:
        """Return the outputs that the head reads."""
        names: tuple[str, ...] = self.output.outputs()
        return names

    def vocabulary(self) -> dict[str, Sequence[str]]:
        """Add COCO's further figures, and the AP of each class."""
        return super().vocabulary() | {"metric": (*METRICS, *of_classes(self._labels))}

    def check(self, shapes: Shapes) -> None:
        """Hold the outputs against the head's anchors, strides and classes."""
        check(self.output, shapes, self.network.size, self.network.classes)

    def settings(self, asked: Postprocess) -> Settings:
        """Lay the profile's boxes, NMS and letterbox over the card's."""
        return resolve(self.output, asked, self.network.size)

    def decode(
        self, outputs: Mapping[str, Array], settings: Settings, placement: Placement
    ) -> Detections:
        """Return the boxes in the image's pixels; see :func:`decode`."""
        return decode(outputs, settings, placement, self.network.classes)

    def load(self, path: Path) -> Dataset:
        """Open a data card, or a folder of images that nobody has annotated."""
        return load_annotated(path, self.name, self.network.labels)

    def stamp(self, truth: Boxes | None) -> str | None:
        """Return a digest of the boxes."""
        if truth is None:
            return None
        arrays = (truth.xywh, truth.classes, truth.crowd, truth.area, truth.difficult)
        content = b"".join(np.ascontiguousarray(array).tobytes() for array in arrays)
        return hashlib.blake2b(content, digest_size=8).hexdigest()

    def opened(self, truth: Boxes | None, image: Encoded | None = None) -> Boxes | None:
        """Hold the annotated size against the file's.

        Raises:
            SampleError: they differ, so that the boxes are about another image.
        """
        if truth and image and truth.size not in (None, (image.height, image.width)):
            rows, columns = truth.size or (0, 0)
            raise SampleError(
                f"the annotations say {columns}x{rows} pixels, and the file has "
                f"{image.width}x{image.height}"
            )
        return truth

    def record(self, prediction: Detections, truth: Boxes | None) -> dict[str, Any]:
        """Return the detections as lists."""
        return {
            "boxes": prediction.boxes.ravel().tolist(),
            "scores": prediction.scores.tolist(),
            "classes": prediction.classes.tolist(),
        }

    def change(self, before: Detections, after: Detections, truth: Any) -> dict[str, Any]:
        """Count what became of each object above the operating threshold."""
        found = change(before, after, self.output.operating_threshold)
        return {**asdict(found), "changed": found.changed, "units": found.units}

    def late(self, record: Record) -> dict[str, Any]:
        """Return the record without a detection."""
        return {**record, "boxes": [], "scores": [], "classes": []}

    def score(self, records: Sequence[Record], truths: Sequence[Boxes | None]) -> Score:
        """Measure COCO's average precision by pycocotools, where every image is annotated."""
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

    def more(self, records: Sequence[Record]) -> dict[str, Any]:
        """Return the mean IoU of all pairs, None where there is none, and how many are rescored."""
        pairs = [r["units"] - r["lost"] - r["gained"] for r in records]
        total = sum(n * r["mean_iou"] for n, r in zip(pairs, records, strict=True) if n)
        return {
            "mean_iou": total / sum(pairs) if sum(pairs) else None,
            "rescored": sum(r["rescored"] for r in records),
        }

    def severity(self, train: Record, deploy: Record) -> float:
        """Return how many objects changed; of equally many, the larger share is worse."""
        return float(deploy["changed"] + deploy["changed"] / max(deploy["units"], 1))

    def flip(self, train: Record, deploy: Record) -> dict[str, Any]:
        """Return the counts of the image."""
        counts = {name: deploy[name] for name in ("changed", "units", *self.kinds, "rescored")}
        threshold = self.output.operating_threshold
        shown = {
            side: {"objects": sum(score > threshold for score in record["scores"])}
            for side, record in (("train", train), ("deploy", deploy))
        }
        return counts | shown

    @staticmethod
    def words(flip: Mapping[str, Any]) -> tuple[str, str, str]:
        """Return how many objects changed, in which way, and where they are drawn."""
        kinds = ", ".join(f"{flip[kind]} {kind}" for kind in Detection.kinds if flip[kind])
        return f"{flip['changed']} of {flip['units']}", kinds, flip.get("picture") or "-"

    @staticmethod
    def lines(summary: Mapping[str, Any]) -> list[tuple[str, str]]:
        """Return the kinds of flips, and how well the boxes of a pair agree."""
        flips = summary["flips"]
        kinds = ", ".join(f"{kind} {flips[kind]:,}" for kind in Detection.kinds)
        if flips["mean_iou"] is None:
            return [("", kinds)]
        pairs = f"mean IoU {flips['mean_iou']:.4f}, {flips['rescored']:,} rescored by more than 0.1"
        return [("", kinds), ("pairs", pairs)]

    def panels(
        self, images: tuple[U8, U8], before: Detections, after: Detections, truth: Boxes | None
    ) -> list[Panel]:
        """Draw both stacks' boxes side by side."""
        threshold = self.output.operating_threshold
        return panels(images, before, after, truth, threshold, self.network.label)

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


def detections(record: Record) -> Detections:
    """Read a record's detections back."""
    return Detections(
        np.array(record["boxes"], np.float64).reshape(-1, 4),
        np.array(record["scores"], np.float64),
        np.array(record["classes"], np.int64),
    )
