"""Slips of boxes, each found by doing it to the training stack's boxes and seeing equality.

First where the deployment's boxes are (not mapped back from the letterbox, in shares of the image,
x and y exchanged, corners read as sizes); then which are missing (another threshold, a limit, boxes
at the border); then another suppression, which is run again on the training stack's outputs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
from numpy.typing import NDArray

from simulator.diagnose.finding import Certainty, Finding, Part
from simulator.modalities.image.geometry import Placement
from simulator.tasks.detection.boxes import Detections
from simulator.tasks.detection.settings import Settings, Suppression

Floats = NDArray[np.float64]
NEAR = 1e-3
"""Boxes are equal where no side is further away, as a share of the largest number."""
_SCORE = 1e-4
_IOUS = tuple(round(0.05 * step, 2) for step in range(1, 20))


@dataclass(frozen=True)
class Seen:
    """One image.

    Attributes:
        train: the training stack's boxes.
        deploy: the deployment's.
        placement: where the image lies in the training stack's network.
        again: what the training stack's outputs give with another suppression; None: not known.
    """

    train: Detections
    deploy: Detections
    placement: Placement
    again: Callable[[Suppression], Detections] | None = None


def name_boxes(seen: Sequence[Seen], settings: Settings | None) -> list[Finding]:
    """Name what a detector's boxes have that the training stack's have not.

    Args:
        seen: every image, one at least with a box of either stack.
        settings: of the training stack's postprocessing; None where they are not known.

    Returns:
        The differences that together give the deployment's boxes; none where none is known.
    """
    if not any(len(one.train) and len(one.deploy) for one in seen):
        return []
    for name, code, move in _moves():
        moved = [replace(one, train=_moved(one.train, move(one.train.boxes, one.placement)))
                 for one in seen]  # fmt: skip
        places = [_finding(name, code, seen)] if name else []
        if all(equal(one.train, one.deploy) for one in moved):
            return places
        inside = all(_within(one.deploy, one.train) for one in moved)
        if inside and (fewer := _fewer(moved)) is not None:
            return [*places, fewer]
        if settings is not None and (other := _suppressed(seen, settings.nms, move)) is not None:
            return [*places, other]
    return []


def equal(one: Detections, other: Detections) -> bool:
    """Whether two lists have the same boxes, classes and scores, in whatever order."""
    return len(one) == len(other) and _within(one, other)


def _within(few: Detections, many: Detections) -> bool:
    """Whether every box of the one is one of the other, each once."""
    return (found := _found(few, many)) is not None and found.size == len(few)


def _found(few: Detections, many: Detections) -> NDArray[np.intp] | None:
    """The index in *many* of every box of *few*; None where one is not there."""
    near = NEAR * float(np.abs(many.boxes).max(initial=0))
    left = np.ones(len(many), bool)
    found = []
    for box, score, label in zip(few.boxes, few.scores, few.classes, strict=True):
        same = left & (many.classes == label) & (np.abs(many.scores - score) <= _SCORE)
        same &= (np.abs(many.boxes - box) <= near).all(axis=1)
        if not same.any():
            return None
        at = int(np.flatnonzero(same)[0])
        left[at] = False
        found.append(at)
    return np.array(found, np.intp)


Move = Callable[[Floats, Placement], Floats]


def _moves() -> Iterator[tuple[str, str, Move]]:
    """Yield where boxes may be, and in which form; those of the image as corners first."""
    for (space, to), (form, shaped), swapped in product(
        _SPACES.items(), _FORMS.items(), (False, True)
    ):
        names = [*filter(None, (space, form)), *(["x and y are exchanged"] * swapped)]

        def move(
            boxes: Floats, placement: Placement, to: Move = to,
            shaped: Callable[[Floats], Floats] = shaped, swapped: bool = swapped,
        ) -> Floats:  # fmt: skip
            found = shaped(to(boxes, placement))
            return found[:, [1, 0, 3, 2]] if swapped else found

        yield ", and ".join(names), "; ".join(_CODE[one] for one in names), move


def _network(boxes: Floats, placement: Placement) -> Floats:
    rows, columns = placement.scales("resized")
    top, left = placement.start("integer")
    scale = np.array([float(columns), float(rows)] * 2)
    moved: Floats = boxes * scale + np.array([float(left), float(top)] * 2)
    return moved


def _share(width: float, height: float) -> Floats:
    return np.array([width, height] * 2, np.float64)


_SPACES: dict[str, Move] = {
    "": lambda boxes, _: boxes,
    "boxes are not mapped back from the network's input": _network,
    "boxes are mapped back without the padding": lambda boxes, at: (
        (_network(boxes, at)) / np.array([float(s) for s in at.scales("resized")[::-1]] * 2)
    ),
    "boxes are shares of the image": lambda boxes, at: boxes / _share(at.width, at.height),
    "boxes are shares of the network's input": lambda boxes, at: (
        _network(boxes, at) / _share(at.network_width, at.network_height)
    ),
}
_FORMS: dict[str, Callable[[Floats], Floats]] = {
    "": lambda boxes: boxes,
    "left, top, width and height are read as corners": lambda boxes: np.concatenate(
        [boxes[:, :2], boxes[:, 2:] - boxes[:, :2]], axis=1
    ),
    "center, width and height are read as corners": lambda boxes: np.concatenate(
        [(boxes[:, :2] + boxes[:, 2:]) / 2, boxes[:, 2:] - boxes[:, :2]], axis=1
    ),
}
_CODE = {
    "boxes are not mapped back from the network's input":
        "subtract the padding of the letterbox and divide by its scale",
    "boxes are mapped back without the padding":
        "subtract the padding before dividing by the scale",
    "boxes are shares of the image": "multiply by the width and height of the image",
    "boxes are shares of the network's input":
        "multiply by the network's size, subtract the padding and divide by the scale",
    "left, top, width and height are read as corners": "add left and top to width and height",
    "center, width and height are read as corners": "the corners are center ∓ half the size",
    "x and y are exchanged": "exchange x and y of both corners",
}  # fmt: skip


def _moved(found: Detections, boxes: Floats) -> Detections:
    return Detections(boxes, found.scores, found.classes)


def _fewer(seen: Sequence[Seen]) -> Finding | None:
    """Why boxes are missing: a limit, a threshold, one for each class, or the border."""
    kept, lost, at_border, kept_border, labels, lost_labels = [], [], [], [], [], []
    counts: list[tuple[int, int]] = []
    for one in seen:
        there = _found(one.deploy, one.train)
        assert there is not None
        gone = np.setdiff1d(np.arange(len(one.train)), there)
        kept += one.train.scores[there].tolist()
        lost += one.train.scores[gone].tolist()
        labels += one.train.classes[there].tolist()
        lost_labels += one.train.classes[gone].tolist()
        border = _borders(one)
        at_border += border[gone].tolist()
        kept_border += border[there].tolist()
        counts.append((len(one.train), len(there)))
    limits = {left for had, left in counts if left < had}
    if all(at_border) and not any(kept_border) and lost:
        code = "keep boxes that touch the border of the picture"
        return _finding("boxes at the border are dropped", code, seen)
    if lost and max(lost) < min(kept, default=1.0):
        if len(limits) == 1 and len(seen) > 1 and len({had for had, _ in counts}) > 1:
            (most,) = limits
            if all(left == min(had, most) for had, left in counts):
                change = {"postprocess.nms.top_k_after": "model"}
                return _finding(f"at most {most} boxes are kept", "", seen, change)
        name = f"another score threshold: between {max(lost):.4g} and {min(kept, default=1.0):.4g}"
        return _finding(name, "", seen, {"postprocess.nms.score_threshold": "model"})
    return _per_class(seen, list(zip(labels, kept, strict=True)),
                      list(zip(lost_labels, lost, strict=True)))  # fmt: skip


def _per_class(
    seen: Sequence[Seen], kept: Sequence[tuple[int, float]], lost: Sequence[tuple[int, float]]
) -> Finding | None:
    parts = []
    for label in sorted({label for label, _ in lost}):
        highest = max(score for own, score in lost if own == label)
        lowest = min((score for own, score in kept if own == label), default=1.0)
        if highest >= lowest:
            return None
        parts.append(f"class {label} between {highest:.4g} and {lowest:.4g}")
    if not parts:
        return None
    name = f"a score threshold for each class: {', '.join(parts)}"
    return _finding(name, "", seen, {"postprocess.nms.classes": "model"})


def _borders(one: Seen) -> NDArray[np.bool_]:
    """Which of the training stack's boxes touch the border of the picture."""
    boxes, place = one.train.boxes, one.placement
    low = (boxes[:, :2] <= 1).any(axis=1)
    high = (boxes[:, 2:] >= np.array([place.width, place.height]) - 1).any(axis=1)
    found: NDArray[np.bool_] = np.logical_or(low, high)
    return found


def _suppressed(seen: Sequence[Seen], own: Suppression, move: Move) -> Finding | None:
    """Another suppression that gives the deployment's boxes from the training's outputs."""
    if any(one.again is None for one in seen):
        return None
    for name, other, change in _others(own):
        if all(_gives(one, other, move) for one in seen):
            return _finding(name, "", seen, change)
    fits = [iou for iou in _IOUS if iou != own.iou_threshold and
            all(_gives(one, replace(own, iou_threshold=iou), move) for one in seen)]  # fmt: skip
    if fits:
        between = f"{fits[0]:g}" if len(fits) == 1 else f"between {fits[0]:g} and {fits[-1]:g}"
        name = f"another IoU threshold of the NMS: {between} in place of {own.iou_threshold:g}"
        return _finding(name, "", seen, {"postprocess.nms.iou_threshold": "model"})
    lowest = min(float(one.deploy.scores.min(initial=1)) for one in seen)
    lower = replace(own, score_threshold=max(lowest - _SCORE, 0.0))
    if lowest < own.score_threshold and all(_gives(one, lower, move) for one in seen):
        name = f"a lower score threshold: at most {lowest:.4g}"
        return _finding(name, "", seen, {"postprocess.nms.score_threshold": "model"})
    return None


def _others(own: Suppression) -> Iterator[tuple[str, Suppression, Mapping[str, object]]]:
    aware = {"postprocess.nms.class_aware": "model"}
    if own.class_aware:
        name = "the NMS ignores classes (class-agnostic)"
    else:
        name = "the NMS keeps classes apart (class-aware)"
    yield name, replace(own, class_aware=not own.class_aware), aware
    if own.kind != "none":
        yield "the NMS is missing", replace(own, kind="none"), {"postprocess.nms.kind": "model"}
    offset = {"postprocess.nms.offset": "model"}
    yield "widths in the NMS have another offset", replace(own, offset=1 - own.offset), offset


def _gives(one: Seen, nms: Suppression, move: Move) -> bool:
    assert one.again is not None
    found = one.again(nms)
    return equal(_moved(found, move(found.boxes, one.placement)), one.deploy)


def _finding(
    name: str, code: str, seen: Sequence[Seen], change: Mapping[str, object] | None = None
) -> Finding:
    boxes = sum(len(one.deploy) for one in seen)
    told = (
        f"The training stack's boxes, changed so, are the deployment's: {boxes} boxes in "
        f"{len(seen)} images, to {NEAR:g} of the largest side and {_SCORE:g} of a score."
    )
    return Finding(
        Part.POSTPROCESS, name, (told,), Certainty.ROUNDING, NEAR, change or {}, code=code
    )
