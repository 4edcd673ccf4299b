"""Plugins of Pillow: HEIC by pillow-heif (libheif), JPEG XL by pillow-jxl-plugin (libjxl)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from backends.pillow import decodes
from backends.pillow.library import PIL
from backends.pillow.pixels import PillowDecoder
from backends.pillow.writer import PillowWriter, saved
from simulator.contract import U8, Backend, Library, Offer, Options, Stage

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


class HeifWriter(PillowWriter):
    """Writes HEIC, by x265 in libheif."""

    encoders: ClassVar[Mapping[str, tuple[str, dict[str, Any]]]] = {"heic": ("HEIF", {})}
    writes: ClassVar[tuple[str, ...]] = tuple(encoders)

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        pillow_heif.register_heif_opener(thumbnails=False)


class JxlWriter(PillowWriter):
    """Writes JPEG XL, by libjxl."""

    encoders: ClassVar[Mapping[str, tuple[str, dict[str, Any]]]] = {
        "jxl": ("JXL", {"num_threads": 1})
    }
    writes: ClassVar[tuple[str, ...]] = tuple(encoders)

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        pillow_jxl.load()

    def _lossy(self, rgb: U8, format: str, quality: int, orientation: int) -> bytes:
        """The plugin takes quality 100 for lossless, and refuses it otherwise."""
        name, more = self.encoders[format]
        if quality == 100:
            return saved(rgb, name, orientation, {**more, "lossless": True})
        return super()._lossy(rgb, format, quality, orientation)


_HEIF = "https://pillow-heif.readthedocs.io"
_JXL = "https://github.com/Isotr0py/pillow-jpegxl-plugin"
HEIF = Backend(
    name="pillow_heif",
    summary="Pillow with pillow-heif: HEIC besides",
    library=pillow_heif,
    companions=(PIL,),
    offers=(*decodes(HeifDecoder, _HEIF), Offer(Stage.WRITE, {}, HeifWriter, source=_HEIF)),
)
JXL = Backend(
    name="pillow_jxl",
    summary="Pillow with pillow-jxl-plugin: JPEG XL besides",
    library=pillow_jxl,
    companions=(PIL,),
    offers=(*decodes(JxlDecoder, _JXL), Offer(Stage.WRITE, {}, JxlWriter, source=_JXL)),
)
