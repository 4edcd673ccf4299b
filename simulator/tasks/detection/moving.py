"""Annotated boxes that follow the pixels of their image."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from simulator.contract.warp import Points, Size, Warp, WarpOf
from simulator.data.truth import Boxes
from simulator.modalities.image.geometry import Placement
from simulator.modalities.image.orientation import stored_boxes, undoing
from simulator.tasks.detection.boxes import areas, xywh

_STEPS = np.linspace(0, 1, 257)
_OUTLINE = np.concatenate(
    [np.stack(pair, axis=1) for end in (np.zeros(257), np.ones(257)) for pair in
     ((_STEPS, end), (end, _STEPS))]
)  # fmt: skip
"""Points around a box of side 1; a straight side may become a curve."""
_CLOSE = 0.5
"""Pixels outside the image that still count as its edge."""


def moved(truth: Boxes, warp: WarpOf, size: Size) -> Boxes:
    """Return the boxes around what is seen of each object in the moved image.

    The area of an object changes as that of its box; an object that leaves the image is left out.

    Args:
        truth: the boxes as annotated.
        warp: where pixels go.
        size: rows and columns of the image.
    """
    movement = warp(size)
    corners = np.array([_seen(box, movement, size) for box in truth.xywh]).reshape(-1, 4)
    return _with(truth, corners)


def placed(truth: Boxes, placement: Placement) -> Boxes:
    """Return the boxes as they lie in the network's input; likewise."""
    size = placement.network_height, placement.network_width
    corners = to_network(truth.corners, placement, "resized", "integer")
    return replace(_with(truth, corners), size=size)


def to_network(boxes: Points, placement: Placement, scale: str, padding: str) -> Points:
    """Return (n, 4) boxes of the image as stored in the network's pixels, cut at its border.

    Args:
        boxes: x1, y1, x2, y2.
        placement: how the image lies in the network's input.
        scale: see :meth:`Placement.scales`.
        padding: see :meth:`Placement.start`.
    """
    cut = placement.cut
    back = undoing(placement.orientation)
    size = placement.height + cut.rows, placement.width + cut.columns
    shown = stored_boxes(boxes, back, size[::-1] if back >= 5 else size)
    top, left = placement.start(padding)
    rows, columns = placement.scales(scale)
    factor = np.array([columns, rows] * 2, np.float64)
    start = np.array([left, top] * 2, np.float64)
    found = (shown - np.array([cut.left, cut.top] * 2)) * factor + start
    ends = np.array([placement.network_width, placement.network_height] * 2)
    clipped: Points = np.clip(found, 0, ends)
    return clipped


def _with(truth: Boxes, corners: Points) -> Boxes:
    """The objects with other corners; those without any size are left out."""
    before = truth.xywh[:, 2] * truth.xywh[:, 3]
    grown = np.divide(areas(corners), before, out=np.zeros_like(before), where=before > 0)
    seen = (corners[:, 2:] > corners[:, :2]).all(axis=1)
    whole = replace(truth, xywh=xywh(corners), area=truth.area * grown)
    kept = ("xywh", "classes", "crowd", "area", "difficult")
    tracks = None if truth.tracks is None else truth.tracks[seen]
    return replace(whole, tracks=tracks, **{name: getattr(whole, name)[seen] for name in kept})


def _seen(box: Points, movement: Warp, size: Size) -> Points:
    """x1, y1, x2, y2 around the part of a moved box that is in the image; zeros where none is.

    The part is bounded by its outline, and by the image's corners that come from inside the box.
    """
    outline = movement.forward(box[:2] + _OUTLINE * box[2:])
    edges = np.array(size[::-1], np.float64)
    inside = ((outline >= -_CLOSE) & (outline <= edges + _CLOSE)).all(axis=1)
    ends = np.array([[0, 0], [0, -1], [-1, 0], [-1, -1]])
    sources = movement.sources[ends[:, 0], ends[:, 1], ::-1] + 0.5
    held = ((sources >= box[:2]) & (sources <= box[:2] + box[2:])).all(axis=1)
    points = np.concatenate([outline[inside], -ends[held][:, ::-1] * edges])
    if not len(points):
        return np.zeros(4)
    points = np.clip(points, 0, edges)
    return np.concatenate([points.min(axis=0), points.max(axis=0)])
