"""Pillow: files to pixels, resizing, index masks and pictures."""

from __future__ import annotations

from backends.pillow.library import PIL
from backends.pillow.masks import PillowMasks
from backends.pillow.painter import PillowPainter
from backends.pillow.pixels import PillowDecoder, PillowResizer
from backends.pillow.writer import PillowWriter
from simulator.contract import Backend, Decoder, Offer, Stage


def decodes(make: type[Decoder], source: str) -> tuple[Offer, ...]:
    """Return what a decoder on Pillow offers: profiles ignored, or applied."""
    fields = {"exif": ("apply", "ignore"), "idct": ("islow",), "chroma_upsampling": ("fancy",)}
    both = (fields, {**fields, "profile": ("to_srgb",)})
    return tuple(Offer(Stage.DECODE, options, make, source=source) for options in both)


BACKEND = Backend(
    name="pillow",
    summary="Pillow: image files, ICC profiles, antialiased resizing, index masks, pictures",
    library=PIL,
    offers=(
        *decodes(
            PillowDecoder, "Pillow handbook, 'Image file formats', ImageCms; libjpeg-turbo defaults"
        ),
        Offer(
            Stage.RESIZE,
            {
                "interpolation": ("bilinear", "bicubic", "box", "hamming", "lanczos"),
                "antialias": (True,),
            },
            PillowResizer,
            source="Pillow handbook, 'Concepts: Filters'",
        ),
        Offer(
            Stage.RESIZE,
            {"interpolation": ("nearest",), "antialias": (False,)},
            PillowResizer,
            source="Pillow handbook, 'Concepts: Filters'",
        ),
        Offer(Stage.MASK, {}, PillowMasks, source="PNG specification 11.2.2"),
        Offer(Stage.DRAW, {}, PillowPainter),
        Offer(Stage.WRITE, {}, PillowWriter, source="Pillow handbook, 'Image file formats'"),
    ),
)
