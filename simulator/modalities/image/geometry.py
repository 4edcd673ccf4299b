"""How an image of any size is brought to the network's size, and with which rounding."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Final, Literal

import numpy as np

from simulator.contract import Array, Asked
from simulator.contract.encoded import MAX_PIXELS
from simulator.errors import SampleError
from simulator.modalities.image.cropping import (
    NOTHING,
    OFFSET_ROUNDING,
    CentralCrop,
    Cut,
    half_up,
)
from simulator.modalities.image.orientation import UPRIGHT

Size = tuple[int, int]
"""Rows and columns."""
PADDED = ("letterbox", "keep_ratio", "native")
"""The kinds that crop nothing."""
ZERO: Final = "zero"
"""A padding with numbers of 0 after the normalization, of the color of the mean."""
_NOT_FIXED = ("sizes", "multiple_of", "least", "most", "shortest", "longest")


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
            ``letterbox``: scale the image into ``height`` x ``width``, pad the rest with ``value``;
            ``keep_ratio``: scale the short side to ``shortest``, or the long side to ``longest``
            where it would be longer, and pad right and below; ``native``: pad only.
        height: rows that the network takes; of a letterbox in several sizes, of its box.
        width: columns, likewise; 0 where neither is known before the image is.
        rounding: ``torchvision``: the long side is int(short · long / short side) and the crop
            starts at int(round((size - crop) / 2)), ties to even (torchvision
            ``transforms.functional.center_crop``); ``dali``: both round half up; ``floor``:
            both round down; ``albumentations``: the side to the nearest, ties to even, and the
            start down (its ``SmallestMaxSize`` and ``CenterCrop``, PaddleClas' ``ResizeImage``);
            ``transformers``: its ``get_size_with_aspect_ratio``; ``yolos``: the same, down to
            multiples of 16; ``maskformer``: up to multiples of 32.
        short_side: pixels, for ``short_side_crop`` and ``squash_crop``.
        position: ``center`` or ``top_left``, for ``letterbox``.
        value: gray level of the padding; ``zero``: numbers of 0, see :meth:`surround`.
        crop_before_resize: a crop of the image itself; the rest then applies to what it leaves.
        sizes: that the network takes; the smallest that holds the resized image is used, and an
            image that none holds is scaled down. Empty: ``height`` x ``width``, or any.
        multiple_of: of which both sides of the network's input are multiples, where it takes any
            size; 0 where it takes ``sizes``.
        least: pixels that a side of the network's input has at least, where it takes any size.
        most: that it has at most; 0 for no limit.
        shortest: pixels, for ``keep_ratio``.
        longest: pixels, for ``keep_ratio``.
    """

    kind: str
    height: int
    width: int
    rounding: str = "torchvision"
    short_side: int = 0
    position: str = "center"
    value: int | Literal["zero"] = 0
    crop_before_resize: CentralCrop | None = None
    sizes: tuple[Size, ...] = ()
    multiple_of: int = 0
    least: int = 0
    most: int = 0
    shortest: int = 0
    longest: int = 0

    def identity(self) -> dict[str, object]:
        """Return all attributes that say something; equal geometries have equal identities."""
        found = asdict(self)
        return {name: one for name, one in found.items() if name not in _NOT_FIXED or one}

    @property
    def network(self) -> Size | None:
        """The one size that the network takes; None where images differ."""
        if self.multiple_of or len(self.sizes) > 1:
            return None
        return self.sizes[0] if self.sizes else (self.height, self.width)

    def cut(self, height: int, width: int) -> Cut:
        """Return what is cut off an image of this size before it is resized.

        Raises:
            SampleError: nothing would be left.
        """
        crop = self.crop_before_resize
        return crop.cut(height, width, (self.height, self.width)) if crop else NOTHING

    def resized(self, height: int, width: int) -> Size:
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

    def taken(self, rows: int, columns: int) -> Size:
        """Return the size of the network's input for a resized image.

        Raises:
            SampleError: the network takes no input as large as that.
        """
        if not self.multiple_of:
            sizes = self.sizes or ((self.height, self.width),)
            if len(sizes) == 1:
                return sizes[0]
            fitting = [one for one in sizes if _holds(one, (rows, columns))]
            return min(fitting or sizes, key=lambda one: (one[0] * one[1], one))
        step = self.multiple_of
        height, width = (-(-max(side, self.least) // step) * step for side in (rows, columns))
        if self.most and max(height, width) > self.most:
            raise SampleError(
                f"{rows}x{columns} pixels after resize make an input of {height}x{width}, and the "
                f"network takes {self.most} a side at most; resize to less, or write "
                "geometry.input_size"
            )
        return height, width

    def asked(self) -> Asked | None:
        """Return what both sides are scaled alike to; None where each has its own scale."""
        if self.kind == "short_side_crop":
            return Asked(self.short_side, self.short_side, cover=True)
        if self.kind == "letterbox" and len(self.sizes) < 2:
            return Asked(self.height, self.width, cover=False)
        return None

    def _resized(self, height: int, width: int) -> Size:
        if self.kind == "squash":
            return self.height, self.width
        if self.kind == "squash_crop":
            return self.short_side, self.short_side
        if self.kind == "short_side_crop":
            short, long = sorted((height, width))
            other = _SIZE_ROUNDING[self.rounding](self.short_side * long / short)
            return (self.short_side, other) if height <= width else (other, self.short_side)
        wanted = self._wanted(height, width)
        if not self.sizes or any(_holds(size, wanted) for size in self.sizes):
            return wanted
        best = max(self.sizes, key=lambda one: min(one[0] / height, one[1] / width))
        return self._into(best, height, width)

    def _wanted(self, height: int, width: int) -> Size:
        """The size of an image that is not cropped, whatever the network takes."""
        if self.kind == "native":
            return height, width
        if self.kind == "keep_ratio":
            return self._keeping(height, width)
        return self._into((self.height, self.width), height, width)

    def _into(self, box: Size, height: int, width: int) -> Size:
        """The largest size in a box."""
        fraction = _SIZE_ROUNDING[self.rounding]
        scale = min(box[0] / height, box[1] / width)
        return (
            min(box[0], max(1, fraction(height * scale))),
            min(box[1], max(1, fraction(width * scale))),
        )

    def _keeping(self, height: int, width: int) -> Size:
        """The size of ``keep_ratio``.

        Source:
            mmcv ``rescale_size``, torchvision ``GeneralizedRCNNTransform``; for ``torchvision``
            its ``Resize`` with ``max_size``, for ``transformers`` ``get_size_with_aspect_ratio``.
        """
        short, long = sorted((height, width))
        if self.rounding == "torchvision":
            sides = self.shortest, int(self.shortest * long / short)
            if sides[1] > self.longest:
                sides = int(self.longest * sides[0] / sides[1]), self.longest
        elif self.rounding in ("transformers", "yolos", "maskformer"):
            raw: float = self.shortest
            if long / short * self.shortest > self.longest:
                raw = self.longest * short / long
            sides = round(raw), int(raw * long / short)
            if short == round(raw):
                sides = short, long
            if self.rounding == "yolos":
                sides = sides[0] // 16 * 16, sides[1] // 16 * 16
            if self.rounding == "maskformer":
                sides = -(-sides[0] // 32) * 32, -(-sides[1] // 32) * 32
        else:
            fraction = _SIZE_ROUNDING[self.rounding]
            scale = min(self.longest / long, self.shortest / short)
            sides = fraction(short * scale), fraction(long * scale)
        found = max(1, sides[0]), max(1, sides[1])
        return found if height <= width else (found[1], found[0])

    def fit(self, rgb: Array) -> Array:
        """Crop or pad a resized image to the network's size.

        Args:
            rgb: (rows, columns, 3) uint8 or float32, about of the size that :meth:`resized` gives.

        Returns:
            (height, width, 3) of the same dtype; a view where nothing is padded. Zeros follow
            later, see :meth:`surround`.

        Raises:
            SampleError: the image is smaller than the crop.
        """
        if self.kind in PADDED:
            return rgb if self.value == ZERO else self._padded(rgb, self.value)
        rows, columns = rgb.shape[:2]
        height, width = network = self.taken(rows, columns)
        if (rows, columns) == network:
            return rgb
        if rows < height or columns < width:
            raise SampleError(
                f"{rows}x{columns} pixels after resize are too few for {height}x{width}"
            )
        top, left = self._start((rows, columns), network)
        return rgb[-top : -top + height, -left : -left + width]

    def surround(self, pixels: Array) -> Array:
        """Pad (rows, columns, ...) with zeros to the network's size."""
        return self._padded(pixels, 0)

    def _padded(self, pixels: Array, value: int) -> Array:
        rows, columns = pixels.shape[:2]
        network = self.taken(rows, columns)
        if (rows, columns) == network:
            return pixels
        top, left = self._start((rows, columns), network)
        out = np.full((*network, *pixels.shape[2:]), value, pixels.dtype)
        out[top : top + rows, left : left + columns] = pixels
        return out

    def placement(self, image: Size, resampled: Size) -> Placement:
        """Return the position of an image in the network's input.

        Args:
            image: (rows, columns) of the decoded image, once cut.
            resampled: (rows, columns) after the resize.

        Raises:
            SampleError: the network takes no input as large as that.
        """
        network = self.taken(*resampled)
        top, left = self._start(resampled, network)
        centered = self.kind == "letterbox" and self.position == "center"
        factor = self._factor(image, network)
        return Placement(*image, *resampled, top, left, *network, centered, factor)

    def _factor(self, image: Size, network: Size) -> Fraction | None:
        if self.kind == "short_side_crop":
            return Fraction(self.short_side, min(image))
        if self.kind == "letterbox":  # of a rectangle too, as YOLOv5's scale_boxes does
            return min(Fraction(network[0], image[0]), Fraction(network[1], image[1]))
        return None

    def _start(self, resampled: Size, network: Size) -> Size:
        """The first row and column of a resampled image in the network's input."""
        over = network[0] - resampled[0], network[1] - resampled[1]
        if self.kind in ("short_side_crop", "squash_crop"):
            offset = OFFSET_ROUNDING[self.rounding]
            return -offset(-over[0] / 2), -offset(-over[1] / 2)
        if self.kind == "letterbox" and self.position == "center":
            return over[0] // 2, over[1] // 2
        return 0, 0


def _holds(size: Size, image: Size) -> bool:
    return size[0] >= image[0] and size[1] >= image[1]


_SIZE_ROUNDING: dict[str, Callable[[float], int]] = {
    "torchvision": int,
    "dali": half_up,
    "floor": math.floor,
    "albumentations": round,
    "transformers": round,
    "yolos": round,
    "maskformer": round,
}
