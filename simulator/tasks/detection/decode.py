"""From a detector's outputs to boxes in the image's pixels."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from simulator.errors import ModelError, SampleError
from simulator.modalities.image.geometry import Placement
from simulator.modalities.image.orientation import stored_boxes
from simulator.tasks.detection import heads
from simulator.tasks.detection.boxes import Detections
from simulator.tasks.detection.declared import FinalHead, RegionHead
from simulator.tasks.detection.nms import fitting, suppress
from simulator.tasks.detection.ports import Numbers, gather
from simulator.tasks.detection.scores import candidates
from simulator.tasks.detection.settings import Settings
from simulator.tasks.finite import check_finite, outside

Floats = NDArray[np.float64]
SLACK = 0.1
"""How far a score may leave [0, 1]: half a step of 8 bits that hold box numbers up to 50 too."""
_ROUND = {"floor": np.floor, "ceil": np.ceil, "nearest": np.rint}


def decode(
    outputs: Mapping[str, Numbers],
    settings: Settings,
    placement: Placement,
    classes: int,
    proposals: Numbers | None = None,
) -> Detections:
    """Turn the outputs for one image into its detections.

    In this order: score threshold, decode, clip to the network, round there, NMS, to the image,
    clip there, round there, the extent's offset, what is too small or too large, and back to the
    image as it is stored.

    Args:
        outputs: by the names in the card, with a batch dimension of 1.
        settings: the card's and the profile's choices.
        placement: where the image lies in the network's input.
        classes: how many labels there are.
        proposals: what boxes of regions are told from, (N, 4) in network pixels.

    Returns:
        Detections, best first; of equal scores, the one that the model gave first.

    Raises:
        ModelError: the outputs are not what the card promises.
        SampleError: a score, or an objectness, that the card takes as it is, is not in [0, 1].
        NotFinite: the model gave NaN or an infinity, or a box whose score is above the threshold
            overflows in the settings' precision.
    """
    settings = settings.at(placement)
    with np.errstate(all="ignore"):  # what overflows is infinite, and refused
        boxes, labels, scores = in_network(outputs, settings, classes, proposals)
        boxes = to_image(boxes, placement, settings)
        if settings.clip == "image":
            size = placement.height, placement.width
            boxes = _clip(boxes, size, settings.corner_offset)
        if settings.rounding_at == "image":
            boxes = _rounded(boxes, settings)
    boxes[:, 2:] += settings.extent_offset
    fits = fitting(boxes, labels, settings.nms)
    boxes, scores, labels = boxes[fits], scores[fits], labels[fits]
    cut = placement.cut
    boxes += [cut.left, cut.top] * 2
    size = placement.height + cut.rows, placement.width + cut.columns
    boxes = stored_boxes(boxes, placement.orientation, size)
    return Detections(boxes, scores, labels)


def in_network(
    outputs: Mapping[str, Numbers], settings: Settings, classes: int, proposals: Numbers | None
) -> tuple[Floats, NDArray[np.int64], Floats]:
    """Return boxes in the network's pixels after NMS, their classes and scores; best first."""
    boxes, labels, scores = _detected(outputs, settings, classes, proposals)
    order = np.argsort(-scores, kind="stable")
    boxes, labels, scores = boxes[order], labels[order], scores[order]
    if settings.clip == "network":
        boxes = _clip(boxes, settings.size, settings.corner_offset)
    if settings.rounding_at == "network":
        boxes = _rounded(boxes, settings)
    index, scores = suppress(boxes, scores, labels, settings.nms)
    return boxes[index], labels[index], scores


def to_image(boxes: Floats, placement: Placement, settings: Settings) -> Floats:
    """Return (n, 4) boxes of the network's pixels in the image's pixels.

    See :meth:`Placement.scales` and :meth:`Placement.start` for the two rules.
    """
    top, left = placement.start(settings.padding)
    rows, columns = placement.scales(settings.scale)
    start = np.array([left, top] * 2, np.float64)
    scale = np.array([columns, rows] * 2, np.float64)
    moved: Floats = (boxes - start) / scale
    return moved


def _detected(
    outputs: Mapping[str, Numbers], settings: Settings, classes: int, proposals: Numbers | None
) -> tuple[Floats, NDArray[np.int64], Floats]:
    """Boxes in network pixels, classes and scores, of scores above the threshold."""
    head, least = settings.head, settings.nms.lowest
    columns = gather(outputs, head, settings.size, classes)
    if isinstance(head, FinalHead):
        scores = columns["score"][:, 0].astype(np.float64)
        labels = columns["class"][:, 0].astype(np.int64) - head.first_class
        kept = (scores > least) & (labels >= 0)
        if "count" in columns:
            kept &= np.arange(len(kept)) < columns["count"].item()
        rows = np.flatnonzero(kept)
        labels, scores = labels[rows], scores[rows]
        _check_scores(scores, "score")
        if len(labels) and labels.max() >= classes:
            raise ModelError(
                f"the model gave class {labels.max() + head.first_class}, but the card has"
                f" {classes} labels, the first of which is class {head.first_class}"
            )
    else:
        objectness = columns.get("objectness")
        if head.score.activation == "none":
            _check_scores(columns["scores"], "scores")
        if head.score.objectness is not None and head.score.objectness.activation == "none":
            _check_scores(columns["objectness"], "objectness")
        rows, labels, scores = candidates(columns["scores"], objectness, head.score, least)
    if proposals is not None:  # a box of zeros stands for none
        there = proposals[rows].any(axis=1)
        rows, labels, scores = rows[there], labels[there], scores[there]
    numbers = columns["boxes"][rows]
    if isinstance(head, RegionHead):
        numbers = heads.of_class(numbers, labels, head)
    found = heads.boxes(numbers, rows, settings, proposals)
    check_finite(found, f" in a box, as it is decoded in {settings.precision}")
    return found.astype(np.float64), labels, scores


def _check_scores(values: Numbers, column: str) -> None:
    if got := outside(values, SLACK):
        raise SampleError(
            f"{column}: 0 to 1 expected, because the card has no activation, but the model gave"
            f" {got}; if these are logits, say so in the card"
        )


def _clip(boxes: Floats, size: tuple[int, int], offset: int) -> Floats:
    """Corners to 0 … width - offset and 0 … height - offset."""
    high = np.array([size[1], size[0]] * 2) - offset
    inside: Floats = np.minimum(np.maximum(boxes, 0), high)
    return inside


def _rounded(boxes: Floats, settings: Settings) -> Floats:
    if settings.rounding == "none":
        return boxes
    whole: Floats = _ROUND[settings.rounding](boxes)
    return whole
