"""Decoding by libjpeg-turbo and libpng through PIL, and its antialiasing resampler."""

from __future__ import annotations

import io
import warnings

import numpy as np

from backends.pillow.library import Image, ImageOps
from simulator.contract import U8, Decoder, Encoded, Options, Resizer, SampleError


class PillowDecoder(Decoder):
    """Decodes with ``PIL.Image.open(...).convert("RGB")``.

    CMYK and YCCK become RGB by Pillow's own formula, without a color profile. Two behaviours of
    Pillow are undone, because all decoders follow the same rules: 16-bit gray (``I;16``) keeps its
    high byte, which ``convert`` would clip, and transparency is dropped.
    """

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        # Large images (`inspect` has its own limit), odd EXIF, malformed MPO.
        warnings.filterwarnings("ignore", module=r"PIL\.")

    def _rgb(self, image: Encoded) -> U8:
        try:
            opened = Image.open(io.BytesIO(image.data), formats=("JPEG", "PNG"))
        except Image.UnidentifiedImageError as error:  # its text is an address in memory
            raise SampleError(f"Pillow cannot read the header of this {image.format}") from error
        with opened:
            opened.load()
            picture = opened
            if self.options["exif"] == "apply":
                picture = ImageOps.exif_transpose(picture)
            if picture.mode.startswith("I"):
                gray = (np.asarray(picture) >> 8).astype(np.uint8)
                return np.repeat(gray[..., None], 3, axis=2)
            if picture.mode != "RGB":
                picture.info.pop("transparency", None)
                picture = picture.convert("RGB")
            return np.array(picture)  # a copy: the view would be read-only


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
