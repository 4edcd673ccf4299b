"""Where boxes may lie, in which form, and what may have been done to their corners."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from simulator.modalities.image.geometry import Placement

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Place:
    """Where an image lies in the training stack's network, and how its boxes are mapped back.

    Attributes:
        at: the image in the network's input.
        scale: see :meth:`Placement.scales`.
        padding: see :meth:`Placement.start`.
    """

    at: Placement
    scale: str = "resized"
    padding: str = "integer"

    @property
    def scales(self) -> Floats:
        """From the image to the network: x, y, x, y."""
        rows, columns = self.at.scales(self.scale)
        return np.array([float(columns), float(rows)] * 2)

    @property
    def start(self) -> Floats:
        """The padding before the image, in pixels of the network."""
        top, left = self.at.start(self.padding)
        return np.array([float(left), float(top)] * 2)

    @property
    def image(self) -> Floats:
        """Width and height of the image."""
        return np.array([self.at.width, self.at.height] * 2, np.float64)

    @property
    def network(self) -> Floats:
        """Width and height of the network's input."""
        return np.array([self.at.network_width, self.at.network_height] * 2, np.float64)

    def inside(self, boxes: Floats) -> Floats:
        """Return boxes in pixels of the network."""
        found: Floats = boxes * self.scales + self.start
        return found

    def letterboxed(self, boxes: Floats, both: bool) -> Floats:
        """Return boxes mapped back as if the image had been letterboxed, padded at both sides."""
        gain = (self.network / self.image).min()
        start = (self.network - self.image * gain) / 2 if both else 0.0
        found: Floats = (self.inside(boxes) - start) / gain
        return found


Move = Callable[[Floats, Place], Floats]
Named = tuple[str, str, Move]
"""What engineers call it, what undoes it in code, and how it is done."""
_SPACES: tuple[Named, ...] = (
    ("", "", lambda boxes, _: boxes),
    ("boxes are not mapped back from the network's input",
     "subtract the padding of the letterbox and divide by its scale",
     lambda boxes, at: at.inside(boxes)),
    ("boxes are mapped back without the padding",
     "subtract the padding before dividing by the scale",
     lambda boxes, at: at.inside(boxes) / at.scales),
    ("boxes are shares of the image", "multiply by the width and height of the image",
     lambda boxes, at: boxes / at.image),
    ("boxes are shares of the network's input",
     "multiply by the network's size, subtract the padding and divide by the scale",
     lambda boxes, at: at.inside(boxes) / at.network),
    ("boxes are mapped back as if the image had been squashed to the network's size",
     "subtract the padding of the letterbox and divide by its one scale",
     lambda boxes, at: at.inside(boxes) * at.image / at.network),
    ("boxes are mapped back as if the image had been letterboxed",
     "divide by a scale for each side", lambda boxes, at: at.letterboxed(boxes, False)),
    ("boxes are mapped back as if the image had been letterboxed, with padding at both sides",
     "subtract the padding that there is", lambda boxes, at: at.letterboxed(boxes, True)),
    ("boxes are scaled with width and height of the image exchanged",
     "multiply x by the width and y by the height",
     lambda boxes, at: boxes / at.image * at.image[[1, 0, 3, 2]]),
    ("boxes are multiplied by the scale in place of divided", "divide by the scale",
     lambda boxes, at: boxes * at.scales**2),
)  # fmt: skip
_FORMS: tuple[Named, ...] = (
    ("", "", lambda boxes, _: boxes),
    ("left, top, width and height are read as corners", "add left and top to width and height",
     lambda boxes, _: np.concatenate([boxes[:, :2], boxes[:, 2:] - boxes[:, :2]], axis=1)),
    ("center, width and height are read as corners", "the corners are center ∓ half the size",
     lambda boxes, _: np.concatenate(
         [(boxes[:, :2] + boxes[:, 2:]) / 2, boxes[:, 2:] - boxes[:, :2]], axis=1)),
)  # fmt: skip
_SWAPS: tuple[Named, ...] = (
    ("", "", lambda boxes, _: boxes),
    ("x and y are exchanged", "exchange x and y of both corners",
     lambda boxes, _: boxes[:, [1, 0, 3, 2]]),
)  # fmt: skip
_ENDS: tuple[Named, ...] = (
    ("", "", lambda boxes, _: boxes),
    ("boxes are clipped to the image", "clip the training stack's boxes as well, or neither",
     lambda boxes, at: np.clip(boxes, 0, at.image)),
    ("boxes are clipped to the image less one pixel", "clip to width and height",
     lambda boxes, at: np.clip(boxes, 0, at.image - 1)),
    ("boxes are rounded to whole pixels", "keep the fractions", lambda boxes, _: np.rint(boxes)),
    ("the fractions of boxes are cut off", "keep the fractions", lambda boxes, _: np.trunc(boxes)),
    ("the right and lower sides are one pixel less", "add 1 to x2 and y2",
     lambda boxes, _: boxes - np.array([0, 0, 1, 1])),
    ("the right and lower sides are one pixel more", "subtract 1 from x2 and y2",
     lambda boxes, _: boxes + np.array([0, 0, 1, 1])),
)  # fmt: skip


def moves() -> Iterator[Named]:
    """Yield what may have happened to boxes, what is simple first."""
    every = list(product(_SPACES, _FORMS, _SWAPS, _ENDS))
    for steps in sorted(every, key=lambda steps: sum(bool(name) for name, _, _ in steps)):
        named = [one for one in steps if one[0]]

        def move(boxes: Floats, at: Place, named: list[Named] = named) -> Floats:
            for _, _, step in named:
                boxes = step(boxes, at)
            return boxes

        yield ", and ".join(n for n, _, _ in named), "; ".join(c for _, c, _ in named), move
