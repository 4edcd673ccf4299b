"""The position of an image in the network's input, for a given stack."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from simulator.contract import Encoded
from simulator.modalities.image.geometry import Cut, Geometry, Placement
from simulator.modalities.image.orientation import UPRIGHT
from simulator.modalities.image.steps import target


@dataclass(frozen=True)
class ImagePlacing:
    """Gives the position of an image for one stack.

    The tensors of a recorded stack are assumed to follow its profile, too.

    Attributes:
        geometry: resize, crop and padding.
        exif: ``apply`` or ``ignore``.
        drop: whether an odd last row and column is dropped.
        even: whether images are resized to even sizes.
    """

    geometry: Geometry
    exif: str
    drop: bool
    even: bool

    def identity(self) -> Any:
        """Return all attributes; equal rules have equal identities."""
        return [self.geometry.identity(), self.exif, self.drop, self.even]

    def __call__(self, source: Encoded) -> Placement:
        """Return the position of an image.

        Raises:
            SampleError: the resized image would be too large, or nothing is left to resize.
        """
        orientation = source.orientation if self.exif == "apply" else UPRIGHT
        return _placement(self, *source.size(self.exif), orientation)


@lru_cache(maxsize=1024)
def _placement(rules: ImagePlacing, height: int, width: int, orientation: int) -> Placement:
    """The position of an image of a size; many images of a data set have the same size."""
    dropped = (height & 1, width & 1) if rules.drop else (0, 0)
    top, left, bottom, right = rules.geometry.cut(height - dropped[0], width - dropped[1])
    cut = Cut(top, left, bottom + dropped[0], right + dropped[1])
    seen = height - cut.rows, width - cut.columns
    placement = rules.geometry.placement(seen, target(rules.geometry, *seen, rules.even))
    return replace(placement, cut=cut, orientation=orientation)
