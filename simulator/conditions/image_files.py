"""What conditions decode, resize and write images with, so that every stack gets the same bytes.

The backends are the entry points ``simulator.references``; Pillow, as in the code of ImageNet-C.
Formats that it does not write are by those of ``simulator.services``.
"""

from __future__ import annotations

from itertools import chain

from simulator import registry
from simulator.contract import Stage
from simulator.profile.implementations import Choice, implementation


def decoding() -> Choice:
    """Return the decoder; it ignores the EXIF orientation."""
    return implementation(Stage.DECODE, registry.reference(Stage.DECODE), {"exif": "ignore"})


def resizing(interpolation: str, *, antialias: bool = True) -> Choice:
    """Return the resizer."""
    options = {"interpolation": interpolation, "antialias": antialias}
    return implementation(Stage.RESIZE, registry.reference(Stage.RESIZE), options)


def writing(format: str = "png") -> Choice:
    """Return the writer of files of a format: the reference, or the first that writes them."""
    able = chain((registry.reference(Stage.WRITE),), registry.serving(Stage.WRITE))
    found = next(one for one in able if format in one.of(Stage.WRITE)[0].make.writes)
    return implementation(Stage.WRITE, found, {})
