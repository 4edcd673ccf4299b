"""Pillow: files to pixels, resizing, index masks and pictures."""

from __future__ import annotations

from backends.pillow.library import PIL
from backends.pillow.masks import PillowMasks
from backends.pillow.painter import PillowPainter
from backends.pillow.pixels import PillowDecoder, PillowResizer
from backends.pillow.writer import PillowWriter
from simulator.contract import Backend, Offer, Stage

BACKEND = Backend(
    name="pillow",
    summary="Pillow: JPEG and PNG, antialiased resizing, index masks, pictures",
    library=PIL,
    offers=(
        Offer(
            Stage.DECODE,
            {"exif": ("apply", "ignore"), "idct": ("islow",), "chroma_upsampling": ("fancy",)},
            PillowDecoder,
            source="Pillow handbook, 'Image file formats'; libjpeg-turbo defaults",
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
