"""Plugins of Pillow: HEIC by pillow-heif (libheif), JPEG XL by pillow-jxl-plugin (libjxl)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from backends.pillow import decodes
from backends.pillow.library import PIL
from backends.pillow.pixels import PillowDecoder
from simulator.contract import Backend, Library, Options

pillow_heif = Library("pillow_heif", distribution="pillow-heif", extra="formats")
pillow_jxl = Library("pillow_jxl", distribution="pillow-jxl-plugin", extra="formats")


class HeifDecoder(PillowDecoder):
    """Decodes what Pillow does, and HEIC, which libheif always turns upright."""

    codecs: ClassVar[Mapping[str, str]] = {**PillowDecoder.codecs, "heic": "HEIF"}
    reads: ClassVar[tuple[str, ...]] = tuple(codecs)
    turns: ClassVar[Mapping[str, str]] = {**PillowDecoder.turns, "heic": "apply"}

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        pillow_heif.register_heif_opener(thumbnails=False)


class JxlDecoder(PillowDecoder):
    """Decodes what Pillow does, and JPEG XL."""

    codecs: ClassVar[Mapping[str, str]] = {**PillowDecoder.codecs, "jxl": "JXL"}
    reads: ClassVar[tuple[str, ...]] = tuple(codecs)

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        pillow_jxl.load()  # registers itself


def _plugin(name: str, what: str, library: Library, make: Any, source: str) -> Backend:
    return Backend(
        name=name,
        summary=f"Pillow with {library.distribution}: {what} besides",
        library=library,
        companions=(PIL,),
        offers=decodes(make, source),
    )


HEIF = _plugin(
    "pillow_heif", "HEIC", pillow_heif, HeifDecoder, "https://pillow-heif.readthedocs.io"
)
JXL = _plugin(
    "pillow_jxl", "JPEG XL", pillow_jxl, JxlDecoder,
    "https://github.com/Isotr0py/pillow-jpegxl-plugin",
)  # fmt: skip
