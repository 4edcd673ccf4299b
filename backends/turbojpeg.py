"""TurboJPEG (libjpeg-turbo's own API) through simplejpeg."""

from __future__ import annotations

from typing import ClassVar

from simulator.contract import U8, Backend, Decoder, Encoded, Library, Offer, Stage

simplejpeg = Library("simplejpeg", distribution="simplejpeg", extra="turbojpeg")


class TurboJpegDecoder(Decoder):
    """Decodes with ``simplejpeg.decode_jpeg``: JPEG only, EXIF ignored.

    simplejpeg is strict: it refuses files with corrupt data for which libjpeg only warns.
    """

    reads: ClassVar[tuple[str, ...]] = ("jpeg",)

    def _rgb(self, image: Encoded) -> U8:
        rgb: U8 = simplejpeg.decode_jpeg(
            image.data,
            fastdct=self.options["idct"] == "ifast",
            fastupsample=self.options["chroma_upsampling"] == "plain",
        )
        return rgb


BACKEND = Backend(
    name="turbojpeg",
    summary="TurboJPEG: libjpeg-turbo with optional fast IDCT and plain chroma upsampling",
    library=simplejpeg,
    offers=(
        Offer(
            Stage.DECODE,
            {
                "exif": ("ignore",),
                "idct": ("islow", "ifast"),
                "chroma_upsampling": ("fancy", "plain"),
            },
            TurboJpegDecoder,
            source="libjpeg-turbo, turbojpeg.h: TJFLAG_FASTDCT, TJFLAG_FASTUPSAMPLE",
        ),
    ),
    fields={
        "idct": "libjpeg's accurate or fast integer one",
        "chroma_upsampling": "libjpeg's triangle filter, or replication",
    },
)
