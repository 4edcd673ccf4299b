"""libvips through pyvips: libjpeg-turbo, libspng, libwebp, libheif's AVIF, libtiff; Little CMS."""

from __future__ import annotations

import os
from collections.abc import Mapping
from types import ModuleType
from typing import Any, ClassVar

import numpy as np

from simulator.contract import (
    U8,
    Admits,
    Array,
    Backend,
    Decoder,
    Encoded,
    Library,
    Offer,
    SampleError,
    Stage,
    three_channels,
)
from simulator.errors import first_line


class _OneThread(Library):
    def load(self) -> ModuleType:
        os.environ.setdefault("VIPS_CONCURRENCY", "1")
        module = super().load()
        module.cache_set_max(0)
        return module


pyvips = _OneThread("pyvips", distribution="pyvips", extra="formats")


class VipsDecoder(Decoder):
    """Decodes with ``pyvips.Image.new_from_buffer``; EXIF by ``autorot``, 16 bits by ``>> 8``.

    AVIF is always turned upright, by libheif. CMYK becomes RGB by libvips' built-in CMYK profile.

    Args:
        options: with ``profile: to_srgb`` an embedded ICC profile is applied with
            ``icc_transform("srgb", embedded=True)``.
    """

    reads: ClassVar[tuple[str, ...]] = ("jpeg", "png", "webp", "avif", "tiff", "gif")
    turns: ClassVar[Mapping[str, str]] = {"avif": "apply"}

    def _rgb(self, image: Encoded) -> U8:
        try:
            return self._decoded(pyvips.Image.new_from_buffer(image.data, ""))
        except pyvips.Error as error:  # its first line does not say why
            raise SampleError(f"libvips: {first_line(ValueError(error.detail))}") from error

    def _decoded(self, picture: Any) -> U8:
        if self.options["exif"] == "apply":
            picture = picture.autorot()
        embedded = picture.get_typeof("icc-profile-data") != 0
        if self.options.get("profile") == "to_srgb" and embedded:
            picture = picture.icc_transform("srgb", embedded=True)
        elif picture.interpretation == "cmyk":
            picture = picture.colourspace("srgb")
        samples: Array = picture.numpy().reshape(picture.height, picture.width, picture.bands)
        if samples.dtype == np.uint16:
            samples = (samples >> 8).astype(np.uint8)
        if samples.dtype != np.uint8:
            samples = np.clip(np.rint(samples), 0, 255).astype(np.uint8)
        return np.array(three_channels(samples))


_FIELDS: dict[str, Admits] = {
    "exif": ("apply", "ignore"), "idct": ("islow",), "chroma_upsampling": ("fancy",)
}  # fmt: skip
BACKEND = Backend(
    name="libvips",
    summary="libvips: JPEG, PNG, WebP, AVIF, TIFF and GIF, ICC profiles",
    library=pyvips,
    offers=tuple(
        Offer(Stage.DECODE, fields, VipsDecoder, source="https://www.libvips.org/API/8.18/")
        for fields in (_FIELDS, {**_FIELDS, "profile": ("to_srgb",)})
    ),
)
