"""Why boxes are missing: a limit, a threshold, one for each class, the border, or their size."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from simulator.modalities.image.geometry import Placement
from simulator.tasks.detection.boxes import Detections

TOLD = 5
_TOUCHES = 1.0
"""Pixels from the border of the picture within which a box touches it."""
_NMS = "postprocess.nms."
Named = tuple[str, str, Mapping[str, object]]
"""A name, what undoes it in code, and the fields of the profile that undo it."""


@dataclass(frozen=True)
class Found:
    """One image whose boxes of the deployment are all of the training stack's.

    Attributes:
        train: the training stack's boxes.
        deploy: the deployment's.
        there: the index in *train* of each of them.
        placement: where the image lies.
    """

    train: Detections
    deploy: Detections
    there: NDArray[np.intp]
    placement: Placement

    @property
    def kept(self) -> NDArray[np.bool_]:
        """Which of the training stack's boxes the deployment has."""
        return np.isin(np.arange(len(self.train)), self.there)

    @property
    def margins(self) -> NDArray[np.float64]:
        """How far each of the training stack's boxes is from the border of the picture."""
        boxes, place = self.train.boxes, self.placement
        ends = np.array([place.width, place.height]) - boxes[:, 2:]
        found: NDArray[np.float64] = np.concatenate([boxes[:, :2], ends], axis=1).min(axis=1)
        return found

    @property
    def sides(self) -> NDArray[np.float64]:
        """The shorter side of each of the training stack's boxes."""
        found: NDArray[np.float64] = (self.train.boxes[:, 2:] - self.train.boxes[:, :2]).min(axis=1)
        return found


def fewer(seen: Sequence[Found]) -> Named | None:
    """Return why boxes of the training stack are missing; None where no rule says it."""
    return next(_reasons(seen), None)


def _reasons(seen: Sequence[Found]) -> Iterator[Named]:
    kept = np.concatenate([one.kept for one in seen])
    margins, scores, sides, classes = (
        np.concatenate(values)
        for values in zip(
            *((o.margins, o.train.scores, o.sides, o.train.classes) for o in seen), strict=True
        )
    )
    if kept.all():
        yield "", "", {}
        return
    if (nearest := margins[~kept].max()) <= _TOUCHES and nearest < margins[kept].min(initial=9):
        code = "keep boxes that touch the border of the picture"
        yield "boxes at the border are dropped", code, {}
    lost, least = scores[~kept].max(), scores[kept].min(initial=1.0)
    limit = _limit(seen)
    if limit is not None and (lost >= least or len({len(one.train) for one in seen}) > 1):
        yield f"at most {limit} boxes are kept", "", {f"{_NMS}top_k_after": "model"}
    if lost < least:
        between = f"between {lost:.4g} and {least:.4g}"
        yield f"another score threshold: {between}", "", {f"{_NMS}score_threshold": "model"}
    if (small := sides[~kept].max()) < (large := sides[kept].min(initial=np.inf)):
        name = f"boxes with a side below a limit are dropped: between {small:.4g} and {large:.4g}"
        yield name, "", {f"{_NMS}min_width": "model", f"{_NMS}min_height": "model"}
    gone = [int(one) for one in np.unique(classes[~kept])]
    if not np.isin(classes[kept], gone).any():
        some = ", ".join(map(str, gone[:TOLD])) + ", …" * (len(gone) > TOLD)
        yield f"boxes of class {some} are dropped", "keep these classes", {}
    yield from _per_class(classes, scores, kept)


def _limit(seen: Sequence[Found]) -> int | None:
    """How many of the best boxes of an image are kept at most."""
    cut = {len(one.there) for one in seen if len(one.there) < len(one.train)}
    if len(cut) != 1:
        return None
    (most,) = cut
    best = all(
        one.train.scores[~one.kept].max(initial=0) <= one.train.scores[one.kept].min(initial=1)
        for one in seen
    )
    right = all(len(one.there) == min(len(one.train), most) for one in seen)
    return most if best and right else None


def _per_class(
    classes: NDArray[np.int64], scores: NDArray[np.float64], kept: NDArray[np.bool_]
) -> Iterator[Named]:
    parts = []
    for label in np.unique(classes[~kept]):
        own = classes == label
        highest, lowest = scores[own & ~kept].max(), scores[own & kept].min(initial=1.0)
        if highest >= lowest:
            return
        parts.append(f"class {label} between {highest:.4g} and {lowest:.4g}")
    name = f"a score threshold for each class: {', '.join(parts)}"
    yield name, "", {f"{_NMS}classes": "model"}
