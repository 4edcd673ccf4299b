"""The place ``crop224``: how the files of the published ImageNet-C were made.

Decode, resize the shorter side to 256 (Pillow's bilinear), take the middle 224x224, corrupt, and
save as JPEG of quality 85 with optimized tables and 4:2:0 chroma. Every stack decodes that file.

Source:
    https://github.com/hendrycks/robustness, ImageNet-C/create_c/make_imagenet_c.py;
    torchvision, ``Resize(256)`` (the longer side is cut to a whole number) and ``CenterCrop(224)``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from simulator import registry
from simulator.conditions.condition import Disturb
from simulator.contract import U8, Decoder, Encoded, ImageWriter, Resizer, Stage, inspect
from simulator.contract.encoded import MAX_PIXELS
from simulator.contract.recipe import Apply, Boundary, Context, Recipe, Runtimes
from simulator.errors import SampleError
from simulator.profile.implementations import Choice, implementation

REFERENCE = "pillow"
"""The backend of the original; it decodes, resizes and writes."""
SHORTER, SIDE, QUALITY = 256, 224, 85
_STEPS: tuple[tuple[str, dict[str, Any]], ...] = (
    (Stage.DECODE, {"exif": "ignore"}),
    (Stage.RESIZE, {"interpolation": "bilinear", "antialias": True}),
    (Stage.WRITE, {}),
)


@dataclass(frozen=True, eq=False)
class Shorter256(Recipe):
    """Decodes and resizes once for many conditions at this place; their own resize is then none."""

    stage = "condition"
    gives: ClassVar[Boundary | None] = Boundary.SOURCE
    timed = False

    def identity(self) -> Any:
        """Return the decoder, the resizer and the writer."""
        return ["crop224", *identity()]

    def open(self, runtimes: Runtimes) -> Apply:
        """Return a function from a file to a PNG whose shorter side is 256."""
        resize, write = resized(), writer()

        def apply(image: Encoded, context: Context) -> Encoded:
            return inspect(image.name, write.png(resize(image)[0]))

        return apply

    def words(self) -> str:
        """Return what it does."""
        return f"shorter side {SHORTER}"


def identity() -> list[Any]:
    """Return the decoder, the resizer and the writer with their library's version."""
    return [choice.identity() for choice in _choices()]


def opened(apply: Callable[[U8, np.random.Generator], U8]) -> Disturb:
    """Return a function from a file and a generator to the corrupted file of 224x224 pixels.

    The EXIF orientation is ignored, as by the original, and not written.
    """
    resize, write = resized(), writer()

    def disturb(image: Encoded, rng: np.random.Generator) -> Encoded:
        small, top, left = resize(image)
        crop = np.ascontiguousarray(small[top : top + SIDE, left : left + SIDE])
        return inspect(image.name, write.jpeg(apply(crop, rng), QUALITY, optimize=True))

    return disturb


def resized() -> Callable[[Encoded], tuple[U8, int, int]]:
    """Return a function from a file to its image, whose shorter side is 256, and to the crop.

    The crop is its first row and column; it has 224x224 pixels.
    """
    decoder: Decoder = _choices()[0].make()
    resizer: Resizer = _choices()[1].make()

    def resize(image: Encoded) -> tuple[U8, int, int]:
        whole = decoder.rgb(image).rgb
        height, width = whole.shape[:2]
        shorter = min(height, width)
        rows, columns = SHORTER * height // shorter, SHORTER * width // shorter
        if rows * columns > MAX_PIXELS:
            raise SampleError(
                f"{width}x{height} pixels would become {columns}x{rows} before the crop: more than "
                f"{MAX_PIXELS:,}"
            )
        small = resizer.resize(whole, rows, columns)
        top, left = (round((side - SIDE) / 2) for side in small.shape[:2])
        return small, top, left

    return resize


def writer() -> ImageWriter:
    """Return what writes the file."""
    found: ImageWriter = _choices()[2].make()
    return found


def _choices() -> list[Choice]:
    backend = registry.backend(REFERENCE)
    return [implementation(stage, backend, options) for stage, options in _STEPS]
