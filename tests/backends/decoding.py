"""Every decoder with its options, and a file of every kind, for the tests of decoders."""

from __future__ import annotations

import images
import numpy as np

from backends import (
    cgohlke_imagecodecs,
    ffmpeg,
    libvips,
    opencv,
    pillow,
    tensorflow_image,
    turbojpeg,
)
from backends.nvidia import dali_operators as dali
from backends.nvidia import imagecodec as nvidia_imagecodec
from backends.pillow import plugins
from simulator.contract import Decoder, inspect

LIBJPEG = {"exif": "ignore", "idct": "islow", "chroma_upsampling": "fancy"}
ON_CPU = {**LIBJPEG, "device": "cpu"}
SWSCALE = ["bilinear", "accurate_rnd", "full_chroma_int", "full_chroma_inp", "bitexact"]
FFMPEG = {"exif": "ignore", "idct": "ffmpeg", "swscale_flags": SWSCALE}
MAKE = {
    "pillow": (pillow.PillowDecoder, LIBJPEG),
    "pillow_heif": (plugins.HeifDecoder, LIBJPEG),
    "pillow_jxl": (plugins.JxlDecoder, LIBJPEG),
    "imagecodecs": (cgohlke_imagecodecs.ImagecodecsDecoder, LIBJPEG),
    "libvips": (libvips.VipsDecoder, LIBJPEG),
    "opencv": (opencv.OpenCVDecoder, LIBJPEG),
    "turbojpeg": (turbojpeg.TurboJpegDecoder, LIBJPEG),
    "dali": (dali.DaliDecoder, {**ON_CPU, "api": "pipeline"}),
    "dali_dynamic": (dali.DaliDecoder, {**ON_CPU, "api": "dynamic"}),
    "nvimagecodec": (nvidia_imagecodec.NvImageCodecDecoder, ON_CPU),
    "tensorflow": (tensorflow_image.TensorFlowDecoder, LIBJPEG),
    "ffmpeg": (ffmpeg.FFmpegDecoder, FFMPEG),
}
READS_PNG = tuple(name for name in MAKE if name != "turbojpeg")
ON_LIBJPEG = tuple(name for name in MAKE if name != "ffmpeg")
TURNS = (
    "pillow",
    "pillow_heif",
    "pillow_jxl",
    "libvips",
    "opencv",
    "dali",
    "dali_dynamic",
    "nvimagecodec",
)
FAST_IDCT = ("turbojpeg", "dali", "dali_dynamic", "nvimagecodec", "tensorflow")
PLAIN_CHROMA = ("turbojpeg", "nvimagecodec", "tensorflow")

PHOTO = images.picture(60, 44)
ODD = images.picture(17, 11)
JPEGS = {
    "photo": images.jpeg(PHOTO),
    "odd": images.jpeg(ODD),
    "one pixel": images.jpeg(images.picture(1, 1)),
    "long": images.jpeg(images.picture(3, 8191)),
    "tall": images.jpeg(images.picture(8191, 3)),
    "gray": images.jpeg(images.picture(17, 11, 1)),
    "progressive": images.jpeg(PHOTO, progressive=True),
    "444": images.jpeg(ODD, subsampling=0),
    "422": images.jpeg(ODD, subsampling=1),
}

DEEP = (images.picture(17, 11, 4, 1).astype(np.uint16) << 8) | images.picture(17, 11, 4, 2)
HIGH = (DEEP >> 8).astype(np.uint8)
GRAY = images.picture(17, 11, 1)
RGBA = images.picture(17, 11, 4)
PALETTE = images.picture(16, 16, 3).reshape(256, 3)
PLTE = images.chunk(b"PLTE", PALETTE.tobytes())
SEE_THROUGH = images.chunk(b"tRNS", bytes(range(256)))
ONE_COLOR = images.chunk(b"tRNS", ODD[3, 3].astype(">u2").tobytes())


def gray3(plane):
    return np.repeat(plane[..., None], 3, axis=2)


PNGS = {
    "rgb": (images.png(ODD), ODD),
    "gray": (images.png(GRAY), gray3(GRAY)),
    "gray and alpha": (images.png(RGBA[..., :2]), gray3(RGBA[..., 0])),
    "rgba": (images.png(RGBA), RGBA[..., :3]),
    "palette": (images.raw_png(GRAY, 3, 8, PLTE), PALETTE[GRAY]),
    "palette, tRNS": (images.raw_png(GRAY, 3, 8, PLTE, SEE_THROUGH), PALETTE[GRAY]),
    "rgb, tRNS": (images.raw_png(ODD, 2, 8, ONE_COLOR), ODD),
    "gray, tRNS": (images.raw_png(GRAY, 0, 8, images.chunk(b"tRNS", b"\0\x80")), gray3(GRAY)),
    "gray 16": (images.raw_png(DEEP[..., 0], 0, 16), gray3(HIGH[..., 0])),
    "gray and alpha 16": (images.raw_png(DEEP[..., :2], 4, 16), gray3(HIGH[..., 0])),
    "rgb 16": (images.raw_png(DEEP[..., :3], 2, 16), HIGH[..., :3]),
    "rgba 16": (images.raw_png(DEEP, 6, 16), HIGH[..., :3]),
    "one pixel": (images.png(RGBA[:1, :1, :3]), RGBA[:1, :1, :3]),
}


def decoder(name: str, **changed) -> Decoder:
    make, options = MAKE[name]
    return make({**options, **changed})


def rgb(name: str, data: bytes, **changed) -> np.ndarray:
    return decoder(name, **changed).rgb(inspect("test", data)).rgb
