"""Decoding through PIL, color profiles by its Little CMS, and its antialiasing resampler."""

from __future__ import annotations

import io
import warnings
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from backends.pillow.library import Image, ImageCms, ImageOps
from simulator.contract import U8, Decoder, Encoded, Options, Resizer, SampleError

_SRGB_GAMMA = (0.45, 0.46)
"""The gamma chunks that are sRGB's 1 / 2.2."""


class PillowDecoder(Decoder):
    """Decodes with ``PIL.Image.open(...).convert("RGB")``.

    CMYK and YCCK become RGB by Pillow's own formula, without a color profile. Two behaviours of
    Pillow are undone, because all decoders follow the same rules: 16-bit gray (``I;16``) keeps its
    high byte, which ``convert`` would clip, and transparency is dropped. Floats are clipped to
    0-255, and TIFF is always turned upright.

    Args:
        options: with ``profile: to_srgb`` an embedded ICC profile is applied with
            ``ImageCms.profileToProfile`` in its default, perceptual intent.
    """

    codecs: ClassVar[Mapping[str, str]] = {
        "jpeg": "JPEG", "png": "PNG", "webp": "WEBP", "avif": "AVIF", "jpeg2000": "JPEG2000",
        "tiff": "TIFF", "bmp": "BMP", "gif": "GIF",
    }  # fmt: skip
    reads: ClassVar[tuple[str, ...]] = tuple(codecs)
    turns: ClassVar[Mapping[str, str]] = {"tiff": "apply"}

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        # Large images (`inspect` has its own limit), odd EXIF, malformed MPO.
        warnings.filterwarnings("ignore", module=r"PIL\.")

    def _rgb(self, image: Encoded) -> U8:
        try:
            opened = Image.open(io.BytesIO(image.data), formats=(self.codecs[image.format],))
        except Image.UnidentifiedImageError as error:  # its text is an address in memory
            raise SampleError(f"Pillow cannot read the header of this {image.format}") from error
        with opened:
            opened.load()
            picture = opened
            if self.options["exif"] == "apply":
                picture = ImageOps.exif_transpose(picture)
            if self.options.get("profile") == "to_srgb":
                picture = _to_srgb(picture)
            if picture.mode.startswith("I"):
                gray = (np.asarray(picture) >> 8).astype(np.uint8)
                return np.repeat(gray[..., None], 3, axis=2)
            if picture.mode != "RGB":
                picture.info.pop("transparency", None)
                picture = picture.convert("RGB")
            return np.array(picture)  # a copy: the view would be read-only


def _to_srgb(picture: Any) -> Any:
    """Apply the ICC profile of a picture, if it has one."""
    profile, gamma = picture.info.get("icc_profile"), picture.info.get("gamma")
    if not profile:
        if gamma and not _SRGB_GAMMA[0] < gamma < _SRGB_GAMMA[1] and "srgb" not in picture.info:
            raise SampleError(f"has a gamma chunk of {gamma:g}, which Pillow does not apply")
        return picture
    if picture.mode not in ("RGB", "CMYK", "L"):
        picture = picture.convert("L" if picture.mode in ("LA", "1") else "RGB")
    given = ImageCms.ImageCmsProfile(io.BytesIO(profile))
    wanted = ImageCms.createProfile("sRGB")
    return ImageCms.profileToProfile(picture, given, wanted, outputMode="RGB")


class PillowResizer(Resizer):
    """Resamples with ``PIL.Image.resize``; an (H, W, 2) plane one channel at a time.

    Pillow widens every kernel except ``nearest`` when shrinking (its handbook, "Filters"). It would
    treat two channels as gray and alpha, and weight gray by alpha.
    """

    def _resize(self, plane: U8, height: int, width: int) -> U8:
        if plane.ndim == 3 and plane.shape[2] == 2:
            halves = [self._resize(plane[..., i], height, width) for i in (0, 1)]
            return np.stack(halves, axis=-1)
        kernel = Image.Resampling[self.options["interpolation"].upper()]
        picture = Image.fromarray(np.ascontiguousarray(plane))
        return np.array(picture.resize((width, height), kernel))
