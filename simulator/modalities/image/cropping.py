"""What is cut off an image before it is resized, and how fractions of a pixel are rounded."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from simulator.errors import SampleError


class Cut(NamedTuple):
    """Rows and columns that are cut off the sides of an image."""

    top: int = 0
    left: int = 0
    bottom: int = 0
    right: int = 0

    @property
    def rows(self) -> int:
        """Return how many rows are cut off."""
        return self.top + self.bottom

    @property
    def columns(self) -> int:
        """Return how many columns are cut off."""
        return self.left + self.right


NOTHING = Cut()


def half_up(value: float) -> int:
    """Round to the nearest whole number, a half up."""
    return math.floor(value + 0.5)


OFFSET_ROUNDING: dict[str, Callable[[float], int]] = {
    "torchvision": round,
    "dali": half_up,
    "floor": math.floor,
    "albumentations": math.floor,
    "transformers": math.floor,
    "yolos": math.floor,
    "maskformer": math.floor,
}


@dataclass(frozen=True, slots=True)
class CentralCrop:
    """A crop of the image's center before the resize.

    Attributes:
        fraction: of both sides, above 0 and below 1; None: the largest part that has the
            network's ratio of sides, rounded down (Keras' ``crop_to_aspect_ratio``).
        rounding: ``tensorflow``: both ends lose int((side - side * fraction) / 2)
            (``tf.image.central_crop``); otherwise int(side * fraction) stays, and it starts at the
            half of the rest, which ``floor`` rounds down and ``torchvision`` to even (Accuracy
            Checker's ``crop``, with OpenCV and with Pillow).
    """

    fraction: float | None
    rounding: str

    def cut(self, height: int, width: int, network: tuple[int, int]) -> Cut:
        """Return what is cut off an image of this size.

        Args:
            height: rows of the image.
            width: columns of the image.
            network: (rows, columns) that the network takes.

        Raises:
            SampleError: nothing would be left.
        """
        if self.rounding == "tensorflow" and self.fraction is not None:
            top, left = (int((side - side * self.fraction) / 2) for side in (height, width))
            return Cut(top, left, top, left)
        rows, columns = self._kept(height, width, network)
        if not rows or not columns:
            raise SampleError(f"{height}x{width} pixels: the crop before the resize leaves none")
        start = OFFSET_ROUNDING[self.rounding]
        top, left = start((height - rows) / 2), start((width - columns) / 2)
        return Cut(top, left, height - rows - top, width - columns - left)

    def _kept(self, height: int, width: int, network: tuple[int, int]) -> tuple[int, int]:
        if self.fraction is not None:
            return int(height * self.fraction), int(width * self.fraction)
        rows, columns = network
        return (
            max(1, min(height, width * rows // columns)),
            max(1, min(width, height * columns // rows)),
        )
