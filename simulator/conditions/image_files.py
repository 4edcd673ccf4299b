"""What conditions decode, resize and write images with, so that every stack gets the same bytes.

The backends are the entry points ``simulator.references``; Pillow, as in the code of ImageNet-C.
"""

from __future__ import annotations

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


def writing() -> Choice:
    """Return the writer of PNG and JPEG files."""
    return implementation(Stage.WRITE, registry.reference(Stage.WRITE), {})
