"""How an image of any size is brought to the network's size, and with which rounding."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from simulator.contract import Array, Asked
from simulator.contract.encoded import MAX_PIXELS
from simulator.errors import SampleError
from simulator.modalities.image.orientation import UPRIGHT


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
        start = _OFFSET_ROUNDING[self.rounding]
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


@dataclass(frozen=True, slots=True)
class Placement:
    """The position of an image in the network's input; all sizes in whole pixels.

    Attributes:
        height: rows of the decoded image, without those of ``cut``.
        width: columns of the decoded image, likewise.
        rows: rows of that image after the resize.
        columns: columns of that image after the resize.
        top: the row of the network's input where the resized image begins; negative where rows
            of it were cropped.
        left: the column, likewise.
        network_height: rows of the network's input.
        network_width: columns of the network's input.
        centered: whether the padding is split between both ends.
        factor: the scale of both sides before rounding; None where they differ (``squash...``).
        cut: what the stack cut off the decoded image before the resize.
        orientation: the EXIF orientation that the decoder applied, 1 to 8; 1 if it applied none.
    """

    height: int
    width: int
    rows: int
    columns: int
    top: int
    left: int
    network_height: int
    network_width: int
    centered: bool = False
    factor: Fraction | None = None
    cut: Cut = NOTHING
    orientation: int = UPRIGHT

    def scales(self, rule: str) -> tuple[Fraction, Fraction]:
        """Return the scale from the image to the network's input, for rows and for columns.

        Args:
            rule: ``resized``: the rounded size after the resize, by the size before; ``ratio``:
                the one factor before rounding, where there is one (YOLOv5's ``gain``).
        """
        if rule == "ratio" and self.factor is not None:
            return self.factor, self.factor
        return Fraction(self.rows, self.height), Fraction(self.columns, self.width)

    def start(self, rule: str) -> tuple[Fraction, Fraction]:
        """Return the row and column of the network's input where the image begins.

        Args:
            rule: ``integer``: the whole pixel that was used; ``exact``: half of the padding, which
                may end in half a pixel, where the padding is centered (YOLOv5's ``pad``).
        """
        if rule == "exact" and self.centered:
            over = self.network_height - self.rows, self.network_width - self.columns
            return Fraction(over[0], 2), Fraction(over[1], 2)
        return Fraction(self.top), Fraction(self.left)


@dataclass(frozen=True, slots=True)
class Geometry:
    """A profile's geometry with the sizes of a model card.

    Attributes:
        kind: ``short_side_crop``: scale the short side to ``short_side``, crop the center;
            ``squash_crop``: scale both sides to ``short_side``, crop the center;
            ``squash``: scale both sides to the network's size;
            ``letterbox``: scale the long side to fit, pad the rest with ``value``.
        height: rows that the network takes.
        width: columns that the network takes.
        rounding: ``torchvision``: the long side is int(short · long / short side) and the crop
            starts at int(round((size - crop) / 2)), ties to even (torchvision
            ``transforms.functional.center_crop``); ``dali``: both round half up; ``floor``:
            both round down; ``albumentations``: the side to the nearest, ties to even, and the
            start down (its ``SmallestMaxSize`` and ``CenterCrop``, PaddleClas' ``ResizeImage``).
        short_side: pixels, for ``short_side_crop`` and ``squash_crop``.
        position: ``center`` or ``top_left``, for ``letterbox``.
        value: gray level of the padding, for ``letterbox``.
        crop_before_resize: a crop of the image itself; the rest then applies to what it leaves.
    """

    kind: str
    height: int
    width: int
    rounding: str = "torchvision"
    short_side: int = 0
    position: str = "center"
    value: int = 0
    crop_before_resize: CentralCrop | None = None

    def identity(self) -> dict[str, object]:
        """Return all attributes; equal geometries have equal identities."""
        return asdict(self)

    def cut(self, height: int, width: int) -> Cut:
        """Return what is cut off an image of this size before it is resized.

        Raises:
            SampleError: nothing would be left.
        """
        crop = self.crop_before_resize
        return crop.cut(height, width, (self.height, self.width)) if crop else NOTHING

    def resized(self, height: int, width: int) -> tuple[int, int]:
        """Return (rows, columns) to which an image of this size, once cut, is resized.

        Raises:
            SampleError: a long thin image would become larger than the limit.
        """
        rows, columns = self._resized(height, width)
        if rows * columns > MAX_PIXELS:
            raise SampleError(
                f"{height}x{width} pixels would be resized to {rows}x{columns}, but the limit is "
                f"{MAX_PIXELS:,} pixels"
            )
        return rows, columns

    def asked(self) -> Asked | None:
        """Return what both sides are scaled alike to; None where each has its own scale."""
        if self.kind == "short_side_crop":
            return Asked(self.short_side, self.short_side, cover=True)
        if self.kind == "letterbox":
            return Asked(self.height, self.width, cover=False)
        return None

    def _resized(self, height: int, width: int) -> tuple[int, int]:
        if self.kind == "squash":
            return self.height, self.width
        if self.kind == "squash_crop":
            return self.short_side, self.short_side
        fraction = _SIZE_ROUNDING[self.rounding]
        if self.kind == "short_side_crop":
            short, long = sorted((height, width))
            other = fraction(self.short_side * long / short)
            return (self.short_side, other) if height <= width else (other, self.short_side)
        scale = min(self.height / height, self.width / width)
        return (
            min(self.height, max(1, fraction(height * scale))),
            min(self.width, max(1, fraction(width * scale))),
        )

    def fit(self, rgb: Array) -> Array:
        """Crop or pad a resized image to the network's size.

        Args:
            rgb: (rows, columns, 3) uint8 or float32, about of the size that :meth:`resized` gives.

        Returns:
            (height, width, 3) of the same dtype; a view where nothing is padded.

        Raises:
            SampleError: the image is smaller than the crop.
        """
        rows, columns = rgb.shape[:2]
        if (rows, columns) == (self.height, self.width):
            return rgb
        top, left = self._start(rows, columns)
        if self.kind == "letterbox":
            out = np.full((self.height, self.width, 3), self.value, rgb.dtype)
            out[top : top + rows, left : left + columns] = rgb
            return out
        if rows < self.height or columns < self.width:
            raise SampleError(
                f"{rows}x{columns} pixels after resize are too few for {self.height}x{self.width}"
            )
        return rgb[-top : -top + self.height, -left : -left + self.width]

    def placement(self, image: tuple[int, int], resampled: tuple[int, int]) -> Placement:
        """Return the position of an image in the network's input.

        Args:
            image: (rows, columns) of the decoded image, once cut.
            resampled: (rows, columns) after the resize.
        """
        top, left = self._start(*resampled)
        centered = self.kind == "letterbox" and self.position == "center"
        network = self.height, self.width
        return Placement(*image, *resampled, top, left, *network, centered, self._factor(*image))

    def _factor(self, height: int, width: int) -> Fraction | None:
        if self.kind in ("squash", "squash_crop"):
            return None
        if self.kind == "short_side_crop":
            return Fraction(self.short_side, min(height, width))
        return min(Fraction(self.height, height), Fraction(self.width, width))

    def _start(self, rows: int, columns: int) -> tuple[int, int]:
        """The first row and column of a resampled image in the network's input."""
        if self.kind in ("short_side_crop", "squash_crop"):
            offset = _OFFSET_ROUNDING[self.rounding]
            return -offset((rows - self.height) / 2), -offset((columns - self.width) / 2)
        if self.kind == "letterbox" and self.position == "center":
            return (self.height - rows) // 2, (self.width - columns) // 2
        return 0, 0


def _half_up(value: float) -> int:
    return math.floor(value + 0.5)


_SIZE_ROUNDING: dict[str, Callable[[float], int]] = {
    "torchvision": int,
    "dali": _half_up,
    "floor": math.floor,
    "albumentations": round,
}
_OFFSET_ROUNDING: dict[str, Callable[[float], int]] = {
    "torchvision": round,
    "dali": _half_up,
    "floor": math.floor,
    "albumentations": math.floor,
}
