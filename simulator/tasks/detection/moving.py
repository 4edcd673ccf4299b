"""Annotated boxes that follow the pixels of their image."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from simulator.contract.warp import Size, WarpOf
from simulator.data.truth import Boxes
from simulator.tasks.detection.boxes import areas, xywh

_STEPS = np.linspace(0, 1, 9)
_OUTLINE = np.concatenate(
    [
        np.stack([_STEPS, np.zeros(9)], axis=1),
        np.stack([_STEPS, np.ones(9)], axis=1),
        np.stack([np.zeros(9), _STEPS], axis=1),
        np.stack([np.ones(9), _STEPS], axis=1),
    ]
)
"""Points around a box of side 1; a straight side may become a curve."""


def moved(truth: Boxes, warp: WarpOf, size: Size) -> Boxes:
    """Return the boxes around where the outlines go, cut at the edges of the image.

    The area of an object changes as that of its box; an object that leaves the image is left out.

    Args:
        truth: the boxes as annotated.
        warp: where pixels go.
        size: rows and columns of the image.
    """
    outlines = truth.xywh[:, None, :2] + _OUTLINE * truth.xywh[:, None, 2:]
    gone = warp(size).forward(outlines.reshape(-1, 2)).reshape(outlines.shape)
    edges = np.array(size[::-1], np.float64)
    low, high = (np.clip(end, 0, edges) for end in (gone.min(axis=1), gone.max(axis=1)))
    corners = np.concatenate([low, high], axis=1)
    before = truth.xywh[:, 2] * truth.xywh[:, 3]
    grown = np.divide(areas(corners), before, out=np.zeros_like(before), where=before > 0)
    seen = (high > low).all(axis=1)
    whole = replace(truth, xywh=xywh(corners), area=truth.area * grown)
    kept = ("xywh", "classes", "crowd", "area", "difficult")
    return replace(whole, **{name: getattr(whole, name)[seen] for name in kept})
