"""What a detector with anchors learns: RetinaNet's focal loss and smooth L1, with gradients."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simulator.contract import Array, TrainingObjective
from simulator.data.truth import Boxes
from simulator.errors import ModelError, unknown
from simulator.modalities.image.geometry import Placement
from simulator.tasks.detection import heads
from simulator.tasks.detection.boxes import areas, iou
from simulator.tasks.detection.declared import AnchorHead
from simulator.tasks.detection.moving import to_network
from simulator.tasks.detection.ports import gather
from simulator.tasks.detection.settings import Settings

Floats = NDArray[np.float64]
FOREGROUND, BACKGROUND = 0.5, 0.4
ALPHA, GAMMA, BETA = 0.25, 2.0, 1 / 9


@dataclass(frozen=True, slots=True, eq=False)
class Target:
    """The objects of one image, in pixels of the network's input.

    Attributes:
        boxes: (n, 4) float64 x1, y1, x2, y2, within the input.
        classes: (n,) int64.
        aside: (m, 4) likewise: crowds and difficult objects, which are neither.
    """

    boxes: Floats
    classes: NDArray[np.int64]
    aside: Floats


@dataclass(frozen=True, slots=True, eq=False)
class Match:
    """What each of N anchors is to learn.

    Attributes:
        counts: (N,) bool: object or background, and not between the two.
        found: (p,) the anchors that have an object.
        which: (p,) the object of each.
    """

    counts: NDArray[np.bool_]
    found: NDArray[np.intp]
    which: NDArray[np.intp]


class RetinaLesson(TrainingObjective):
    """Focal loss (alpha 0.25, gamma 2) and smooth L1 (beta 1/9), by the anchors of a card.

    An anchor has the object that it overlaps most, from an IoU of 0.5 on; each object also has the
    anchors that overlap it most of all. Below 0.4 an anchor is background; others do not count.
    Both sums are divided by the anchors of an image that have an object, at least 1.

    Args:
        settings: of the card.
        classes: how many labels there are.

    Raises:
        ModelError: the head has no anchors, or its scores are not one sigmoid for each class.

    Source:
        Lin et al., Focal Loss for Dense Object Detection, sections 3 and 4; torchvision's
        ``RetinaNet`` with ``Matcher(0.5, 0.4, allow_low_quality_matches=True)``, whose box loss is
        plain L1; Detectron's has a beta of 1/9.
    """

    def __init__(self, settings: Settings, classes: int) -> None:
        head = settings.head
        if not isinstance(head, AnchorHead):
            raise ModelError(f"only heads of kind anchors are fine-tuned, this is {head.kind}")
        score = head.score
        plain = score.objectness is None and score.exponent == 1
        if score.activation != "sigmoid" or score.background != "none" or not plain:
            raise ModelError(
                "only heads with one sigmoid for each class are fine-tuned, as RetinaNet's: "
                "no softmax, background or objectness"
            )
        self._settings, self._head, self._classes = settings, head, classes
        if settings.network is None:
            raise ModelError("only detectors of one input size are fine-tuned")
        self._anchors = heads.anchors(head, settings.size, "fp32").astype(np.float64)

    def target(self, truth: Boxes, placement: Placement) -> Target:
        """Return the objects of an image where they are in the network's input."""
        asked = self._settings
        inside = to_network(truth.corners, placement, asked.scale, asked.padding)
        kept = areas(inside) > 0
        aside = truth.crowd | truth.difficult
        own = kept & ~aside
        return Target(inside[own], truth.classes[own], inside[kept & aside])

    def loss(
        self, outputs: Mapping[str, Array], targets: Sequence[Target]
    ) -> tuple[float, dict[str, Array]]:
        """Return the mean loss of a batch, and its derivative by each output that is read."""
        read = {name: outputs[name] for name in self._names(outputs)}
        shapes = tuple((name, array.shape[1:]) for name, array in read.items())
        scores, boxes = _where(self._head, self._settings.size, self._classes, shapes)
        flat = np.concatenate([a.reshape(len(a), -1) for a in read.values()], axis=1)
        slope = np.zeros(flat.shape, np.float64)
        total = 0.0
        for row, numbers, target in zip(slope, flat.astype(np.float64), targets, strict=True):
            match = matched(self._anchors, target)
            share = 1 / (max(len(match.found), 1) * len(flat))
            known = np.zeros(scores.shape, bool)
            known[match.found, target.classes[match.which]] = True
            value, by = focal(numbers[scores[match.counts]], known[match.counts])
            np.add.at(row, scores[match.counts], by * share)
            wanted = encoded(target.boxes[match.which], self._anchors[match.found], self._settings)
            off, by = smooth_l1(numbers[boxes[match.found]] - wanted)
            np.add.at(row, boxes[match.found], by * share)
            total += (value + off) * share
        ends = np.cumsum([int(np.prod(shape)) for _, shape in shapes])
        parts = np.split(slope.astype(np.float32), ends[:-1], axis=1)
        return total, {
            name: part.reshape(array.shape)
            for (name, array), part in zip(read.items(), parts, strict=True)
        }

    def _names(self, outputs: Mapping[str, Array]) -> list[str]:
        names = [name for tensor in self._head.outputs for name in tensor.names]
        for name in names:
            if name not in outputs:
                raise ModelError(unknown("output", name, outputs))
        return names


def matched(anchors: Floats, target: Target) -> Match:
    """Return which anchors have an object, and which are background; see :class:`RetinaLesson`."""
    overlaps = iou(target.boxes, anchors)
    if len(target.boxes):
        best, which = overlaps.max(0), overlaps.argmax(0)
        most = overlaps.max(1, keepdims=True)
        own = ((overlaps == most) & (most > 0)).any(0)
    else:
        best, which, own = np.zeros(len(anchors)), np.zeros(len(anchors), np.intp), False
    has = (best >= FOREGROUND) | own
    counts = has | (best < BACKGROUND)
    if len(target.aside):
        counts &= has | (iou(target.aside, anchors).max(0) < BACKGROUND)
    found = np.flatnonzero(has)
    return Match(counts, found, which[found])


def encoded(boxes: Floats, anchors: Floats, settings: Settings) -> Floats:
    """Return the deltas that :func:`heads.from_deltas` makes these boxes of.

    Args:
        boxes: (n, 4) x1, y1, x2, y2 in network pixels.
        anchors: (n, 4) likewise.
        settings: of an anchor head.
    """
    head = settings.head
    assert isinstance(head, AnchorHead)
    size = anchors[:, 2:] - anchors[:, :2] + settings.anchor_offset
    center = anchors[:, :2] + size / 2
    wanted = boxes[:, 2:] - boxes[:, :2] + settings.corner_offset
    middle = boxes[:, :2] + wanted / 2
    deltas = np.concatenate([(middle - center) / size, np.log(wanted / size)], axis=1)
    code = head.deltas
    turn = [0, 1, 2, 3] if code.order == "xywh" else [1, 0, 3, 2]
    deltas = deltas[:, turn]
    made: Floats
    if code.weights is not None:
        made = deltas * np.array(code.weights)
    else:
        made = (deltas - np.array(code.means)) / np.array(code.stds)
    return made


def focal(logits: Floats, known: NDArray[np.bool_]) -> tuple[float, Floats]:
    """Return the sum of the focal loss, and its derivative by each logit."""
    side = np.where(known, 1.0, -1.0)
    weight = np.where(known, ALPHA, 1 - ALPHA)
    log = -np.logaddexp(0, -side * logits)  # of the probability of what is true
    right = np.exp(log)
    rest = -np.expm1(log)
    value = -(weight * rest**GAMMA * log).sum()
    return float(value), side * weight * rest**GAMMA * (GAMMA * right * log - rest)


def smooth_l1(off: Floats) -> tuple[float, Floats]:
    """Return the sum of the smooth L1 loss, and its derivative by each difference."""
    far = np.abs(off)
    near = far < BETA
    value = np.where(near, off**2 / (2 * BETA), far - BETA / 2).sum()
    return float(value), np.where(near, off / BETA, np.sign(off))


@lru_cache(maxsize=8)
def _where(
    head: AnchorHead, network: tuple[int, int], classes: int, shapes: Any
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return where each anchor's scores (N, C) and deltas (N, 4) are among all outputs' numbers."""
    start, places = 0, {}
    for name, shape in shapes:
        count = int(np.prod(shape))
        places[name] = np.arange(start, start + count).reshape(1, *shape)
        start += count
    columns = gather(places, head, network, classes)
    return columns["scores"], columns["boxes"]
