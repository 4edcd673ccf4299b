"""What people have annotated: the truth that answers are held against."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, eq=False)
class Boxes:
    """The annotated objects of one image; all arrays have n rows, and n may be 0.

    Attributes:
        xywh: (n, 4) float64, left, top, width and height in pixels of the image as it is stored,
            without +1 (the COCO form).
        classes: (n,) int64, indices into the model's labels.
        crowd: (n,) bool: a region of many objects; neither found nor missed (COCO's iscrowd).
        area: (n,) float64 square pixels, of the outline where there is one, else of the box.
        difficult: (n,) bool: Pascal VOC's flag; counted neither as found nor as missed.
        size: rows and columns of the image, where the annotations say them.
        tracks: (n,) int64: in frames of a video one number for all boxes of one object, -1 of a
            crowd; None where the annotations do not say which boxes are of one object.
    """

    xywh: NDArray[np.float64]
    classes: NDArray[np.int64]
    crowd: NDArray[np.bool_]
    area: NDArray[np.float64]
    difficult: NDArray[np.bool_]
    size: tuple[int, int] | None = None
    tracks: NDArray[np.int64] | None = None

    def __len__(self) -> int:
        return len(self.classes)

    @property
    def corners(self) -> NDArray[np.float64]:
        """(n, 4) x1, y1, x2, y2 of the boxes."""
        return np.concatenate([self.xywh[:, :2], self.xywh[:, :2] + self.xywh[:, 2:]], axis=1)
