"""imagecodecs: libjpeg-turbo, libpng, libwebp, libavif, libjxl, OpenJPEG and giflib, as arrays."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from simulator.contract import (
    U8,
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

imagecodecs = Library("imagecodecs", distribution="imagecodecs", extra="formats")

_CODECS = {
    "jpeg": "jpeg8", "png": "png", "webp": "webp", "avif": "avif", "jxl": "jpegxl",
    "jpeg2000": "jpeg2k", "gif": "gif",
}  # fmt: skip
_MORE = {name: {"numthreads": 1} for name in ("avif", "jxl", "jpeg2000")} | {"gif": {"index": 0}}
"""One thread; of an animation the first frame only."""


class ImagecodecsDecoder(Decoder):
    """Decodes with ``imagecodecs.*_decode``, one thread; nothing is ever turned.

    CMYK is refused. Samples of more than 8 bits keep their high 8.
    """

    reads: ClassVar[tuple[str, ...]] = tuple(_CODECS)

    def _rgb(self, image: Encoded) -> U8:
        decode = getattr(imagecodecs, f"{_CODECS[image.format]}_decode")
        samples: Array = decode(image.data, **_MORE.get(image.format, {}))
        if image.format == "jpeg" and image.channels == 4:
            raise SampleError("imagecodecs gives CMYK as it is; it has no RGB")
        if samples.dtype == np.uint16:
            deep = image.bits if image.bits > 8 else 16
            samples = (samples >> (deep - 8)).astype(np.uint8)
        return three_channels(samples)


BACKEND = Backend(
    name="imagecodecs",
    summary="imagecodecs: JPEG, PNG, WebP, AVIF, JPEG XL, JPEG 2000 and GIF, as arrays",
    library=imagecodecs,
    offers=(
        Offer(
            Stage.DECODE,
            {"exif": ("ignore",), "idct": ("islow",), "chroma_upsampling": ("fancy",)},
            ImagecodecsDecoder,
            source="https://github.com/cgohlke/imagecodecs; defaults of the libraries",
        ),
    ),
)
