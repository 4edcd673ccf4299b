"""What an attack sees of an image: the pixels that reach the network, in a frame that stacks keep.

Pillow decodes the file and resizes it as the model card says. The attack changes the part that the
card's geometry keeps. The rest stays around it, so that a stack with the same geometry resizes by a
factor of 1 and crops exactly the attacked part.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simulator.conditions.attacks.steps import within
from simulator.conditions.image_files import decoded, resizing
from simulator.contract import U8, Encoded, Resizer
from simulator.errors import SampleError
from simulator.modalities.image.card import resolve
from simulator.modalities.image.geometry import ZERO, Geometry

F32 = NDArray[np.float32]
_HALF = 1e-3
"""So many levels from the middle between two still count as the middle, for float32."""
FILTERS = ("bilinear", "bicubic", "box", "hamming", "lanczos")


@dataclass(frozen=True, slots=True, eq=False)
class View:
    """A resized image and the part of it that is attacked.

    Attributes:
        image: (rows, columns, 3) uint8.
        part: the rows and columns of it that reach the network.
        height: rows of the network's input.
        width: columns of the network's input.
        place: the rows and columns of the input where the part lies; the rest is padding.
        padding: gray level in [0, 1].
    """

    image: U8
    part: tuple[slice, slice]
    height: int
    width: int
    place: tuple[slice, slice]
    padding: float

    @property
    def clean(self) -> F32:
        """The part, in [0, 1]."""
        return np.asarray(self.image[self.part] / np.float32(255))

    def whole(self, part: F32) -> F32:
        """Return the network's input of a changed part, (height, width, 3) in [0, 1]."""
        found = np.full((self.height, self.width, 3), self.padding, np.float32)
        found[self.place] = part
        return found

    def written(self, part: F32, norm: str, budget: float) -> U8:
        """Return the image with a changed part, rounded to whole levels within a budget.

        Half a level goes back to the clean pixel.
        """
        found = self.image.copy()
        clean = found[self.part]
        levels = part * 255.0
        back = np.copysign(_HALF, clean - levels)
        rounded = np.rint(levels + back).astype(np.uint8)
        found[self.part] = within(rounded, clean, part, norm, budget)
        return found


def geometry_of(card: Any) -> Geometry:
    """Return the geometry that a model card has."""
    own = resolve(card.geometry, card.input, card.geometry.rounding)
    return replace(own, crop_before_resize=None)


def viewer(geometry: Geometry, filter: str) -> Callable[[Encoded], View]:
    """Return a function from a file to what an attack sees of it.

    It raises SampleError where the image cannot be decoded, or is too small for the crop.
    """
    decode = decoded()
    resizer: Resizer = resizing(filter).make()

    def view(image: Encoded) -> View:
        whole, _ = decode(image)
        rows, columns = geometry.resized(*whole.shape[:2])
        small = np.ascontiguousarray(resizer.resize(whole, rows, columns))
        geometry.fit(small)
        at = geometry.placement(whole.shape[:2], (rows, columns))
        part, place = zip(
            _overlap(at.top, rows, at.network_height), _overlap(at.left, columns, at.network_width),
            strict=True,
        )  # fmt: skip
        if geometry.value == ZERO and (rows, columns) != (at.network_height, at.network_width):
            raise SampleError("an attack sees a padding of a gray level, and this one is zero")
        gray = 0.0 if geometry.value == ZERO else geometry.value / 255
        return View(small, part, at.network_height, at.network_width, place, gray)

    return view


def _overlap(start: int, size: int, room: int) -> tuple[slice, slice]:
    """What of an image lies in the network's input, in the image and in the input."""
    first, last = max(start, 0), min(start + size, room)
    return slice(first - start, last - start), slice(first, last)
