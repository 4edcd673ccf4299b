"""What conditions decode, resize and write images with, so that every stack gets the same bytes.

The backends are the entry points ``simulator.references``; Pillow, as in the code of ImageNet-C.
Formats that it does not read or write are by those of ``simulator.services``.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain

from simulator import registry
from simulator.contract import U8, Decoder, Encoded, Stage
from simulator.errors import SampleError
from simulator.profile.implementations import Choice, implementation


def decoding(format: str = "jpeg") -> Choice:
    """Return the decoder of a format: the reference, or the first service that reads it.

    It ignores the orientation, unless its library turns every file of the format.

    Raises:
        SampleError: there is none.
    """
    able = chain((registry.reference(Stage.DECODE),), registry.serving(Stage.DECODE))
    for one in able:
        make = one.of(Stage.DECODE)[0].make
        if format in make.reads:
            options = {"exif": make.turns.get(format, "ignore")}
            return implementation(Stage.DECODE, one, options)
    raise SampleError(f"conditions decode no {format}; save the file in another format")


def decoded() -> Callable[[Encoded], tuple[U8, int]]:
    """Return a function from a file to its pixels, and to the orientation that they still have."""
    made: dict[str, Decoder] = {}

    def decode(image: Encoded) -> tuple[U8, int]:
        if image.format not in made:
            choice = decoding(image.format)
            choice.require()
            made[image.format] = choice.make()
        decoder = made[image.format]
        turned = decoder.options["exif"] == "apply"
        return decoder.rgb(image).rgb, 1 if turned else image.orientation

    return decode


def resizing(interpolation: str, *, antialias: bool = True) -> Choice:
    """Return the resizer."""
    options = {"interpolation": interpolation, "antialias": antialias}
    return implementation(Stage.RESIZE, registry.reference(Stage.RESIZE), options)


def writing(format: str = "png") -> Choice:
    """Return the writer of files of a format: the reference, or the first that writes them."""
    able = chain((registry.reference(Stage.WRITE),), registry.serving(Stage.WRITE))
    found = next(one for one in able if format in one.of(Stage.WRITE)[0].make.writes)
    return implementation(Stage.WRITE, found, {})
