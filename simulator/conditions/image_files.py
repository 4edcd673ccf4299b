"""What conditions decode, resize and write images with, so that every stack gets the same bytes."""

from __future__ import annotations

from simulator import registry
from simulator.contract import Stage
from simulator.profile.implementations import Choice, implementation

REFERENCE = "pillow"
"""The backend; it is that of the original code of ImageNet-C too."""


def decoding() -> Choice:
    """Return the decoder; it ignores the EXIF orientation."""
    return implementation(Stage.DECODE, registry.backend(REFERENCE), {"exif": "ignore"})


def resizing(interpolation: str, *, antialias: bool = True) -> Choice:
    """Return the resizer."""
    options = {"interpolation": interpolation, "antialias": antialias}
    return implementation(Stage.RESIZE, registry.backend(REFERENCE), options)


def writing() -> Choice:
    """Return the writer of PNG and JPEG files."""
    return implementation(Stage.WRITE, registry.backend(REFERENCE), {})
