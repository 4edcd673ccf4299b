"""A resize, as every tool has it, and the words of a profile for how it rounds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from simulator.importers.draft import together
from simulator.importers.keys import Keys

Size = tuple[int, int]
"""Height and width, in pixels."""
Scaling = Literal["squash", "short_side", "fit", "keep_ratio"]
"""Both sides to a size; the short side to one; both by one factor, so that they fit; or so that
they fit into a box that turns with the image, its short and its long side."""
Rounding = Literal["down", "half_up", "even", "torchvision", "transformers", "yolos", "maskformer"]
"""Of fractions of a pixel: down; to the nearest, halves up; to the nearest, ties to even; or by a
library's own rule where the ratio is kept."""
_ROUNDINGS: dict[tuple[Rounding, Rounding], str] = {
    ("down", "even"): "torchvision", ("half_up", "half_up"): "dali", ("down", "down"): "floor",
    ("even", "down"): "albumentations",
}  # fmt: skip
"""``geometry.rounding`` by how the resized side, and how the start of the crop, is rounded."""
_KEEPING = {"down": "floor", "half_up": "dali", "even": "albumentations"}
"""The same where nothing is cropped."""


@dataclass(frozen=True, slots=True)
class Kernel:
    """A resizer of the section ``resize``.

    Attributes:
        backend, interpolation: as a profile has them.
        library: where the document says the first.
        origin: where it says the second.
        source: the evidence, of this kind.
        fields: further fields.
        kind: of evidence.
    """

    backend: str
    interpolation: str
    library: str
    origin: str
    source: str
    fields: Mapping[str, object] = field(default_factory=dict)
    kind: str = "native"


@dataclass(frozen=True, slots=True)
class Resize:
    """A resize that was followed.

    Attributes:
        keys: of its step.
        key: the key that says the size.
        scaling: what *size* is.
        size: see :meth:`ImageSteps.resize`; (0, 0) where the document does not say it.
        rounding: of the side that follows from the other.
        how: the key that says the kind of scaling, if there is one.
    """

    keys: Keys
    key: str
    scaling: Scaling
    size: Size
    rounding: Rounding
    how: str

    @property
    def origin(self) -> str:
        """Where its size, and the kind of scaling, are written."""
        keys = [self.key, self.how] if self.how in self.keys else [self.key]
        return together(*map(self.keys.origin, keys))

    def rule(self, tool: str) -> tuple[str, str]:
        """Return how sides are rounded where nothing is cropped, and that *tool* does so."""
        if self.rounding not in _KEEPING:
            return self.rounding, f"{tool}'s own rule"
        said = f"{tool}: sides are rounded {self.rounding.replace('_', ' ')}"
        return _KEEPING[self.rounding], said

    def cropped(self, start: Rounding) -> tuple[Rounding, str | None]:
        """Return how sides are rounded before a crop, and the profile's word for that.

        Args:
            start: the rounding of where the crop begins.

        Returns:
            None in place of the word where no profile rounds so.
        """
        if self.scaling == "squash":
            return "down", next(name for (_, one), name in _ROUNDINGS.items() if one == start)
        return self.rounding, _ROUNDINGS.get((self.rounding, start))
