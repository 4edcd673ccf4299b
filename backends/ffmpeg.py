"""FFmpeg through PyAV: its own decoders of images, swscale, and the planes of JPEGs."""

from __future__ import annotations

import io
from typing import Any, ClassVar

import numpy as np

from backends.ffmpeg_video import INTERPOLATION, SWITCHES, av, plane, swscale
from backends.ffmpeg_video import OFFER as VIDEO
from backends.sound.ffmpeg_sound import OFFERS as SOUND
from simulator.contract import (
    U8,
    Array,
    Backend,
    Decoder,
    Encoded,
    Frame,
    Matrix,
    Offer,
    Options,
    PixelFormat,
    Range,
    SampleError,
    Stage,
    Subset,
    yuv_frame,
)

_CODECS = {"jpeg": "mjpeg", "png": "png"}
_CONTAINERS = {
    "webp": "webp_pipe", "avif": "mov", "jpeg2000": "j2k_pipe",
    "tiff": "tiff_pipe", "bmp": "bmp_pipe", "gif": "gif",
}  # fmt: skip
"""FFmpeg's demuxers, by name: none is guessed."""
_PLANES = {
    "yuvj420p": PixelFormat.I420,
    "yuvj411p": PixelFormat.YUV411,
    "yuvj422p": PixelFormat.YUV422,
    "yuvj440p": PixelFormat.YUV440,
    "yuvj444p": PixelFormat.YUV444,
}


class FFmpegDecoder(Decoder):
    """Decodes with FFmpeg's own codecs (AV1: dav1d), and converts to RGB with swscale.

    Nothing is ever turned. HEIC is not offered: its crop is not applied (measured: 376 columns of
    375), and of a picture in tiles only the first is given. An animated WebP is refused.

    swscale has a shortcut (measured, x86-64): if the height is even, it repeats 4:2:0 and 4:2:2
    chroma, whatever the interpolation, unless ``accurate_rnd`` is given. Otherwise an odd width
    implies ``full_chroma_int``. Corrupt pixel data is concealed, not refused.

    Args:
        options: ``swscale_flags`` has one interpolation, which upsamples the chroma, and any of
            swscale's switches, by FFmpeg's names.

    Raises:
        Unsupported: ``swscale_flags`` does not hold exactly one interpolation.
    """

    reads: ClassVar[tuple[str, ...]] = (*_CODECS, *_CONTAINERS)
    gives_planes: ClassVar[bool] = True

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        self._flags = swscale(options["swscale_flags"])

    def _rgb(self, image: Encoded) -> U8:
        picture = _decode(image)
        # swscale rounds 16 bits to 8; the contract keeps the high byte.
        wide = image.bits == 16
        target = "rgb48le" if wide else "rgb24"
        made = picture.reformat(format=target, interpolation=self._flags, threads=1)
        rgb: Array = made.to_ndarray()
        return (rgb >> 8 if wide else rgb).astype(np.uint8, copy=False)

    def _planes(self, image: Encoded) -> Frame:
        picture = _decode(image)
        layout = picture.format.name
        y, *chroma = map(plane, picture.planes)
        if layout == "gray":
            format = PixelFormat.I420
            small = (-(-picture.height // 2), -(-picture.width // 2))
            u = v = np.full(small, 128, np.uint8)
        elif layout in _PLANES:
            format = _PLANES[layout]
            u, v = chroma
        else:
            raise SampleError(f"FFmpeg decodes this JPEG to {layout}: not full-range YUV planes")
        return yuv_frame(format, y, u, v, Matrix.BT601, Range.FULL)


def _decode(image: Encoded) -> Any:
    """Return the first ``av.VideoFrame`` of the file, in the codec's own pixel format."""
    try:
        if image.format in _CONTAINERS:
            source, demuxer = io.BytesIO(image.data), _CONTAINERS[image.format]
            with av.open(source, format=demuxer, metadata_errors="replace") as file:
                file.streams.video[0].codec_context.thread_count = 1
                frames = [next(file.decode(video=0))]
        else:
            codec = av.CodecContext.create(_CODECS[image.format], "r")
            codec.thread_count = 1
            frames = codec.decode(av.Packet(image.data)) or codec.decode(None)
    except (StopIteration, IndexError):
        frames = []
    except av.FFmpegError as error:
        raise SampleError(f"FFmpeg: {error.strerror}") from error
    if not frames:
        raise SampleError(f"FFmpeg found no picture in this {image.format} file")
    return frames[0]


BACKEND = Backend(
    name="ffmpeg",
    summary="FFmpeg (PyAV): its own decoders of eight formats, swscale, YUV planes, videos, sound",
    library=av,
    offers=(
        Offer(
            Stage.DECODE,
            {
                "exif": ("ignore",),
                "idct": ("ffmpeg",),
                "swscale_flags": Subset((*INTERPOLATION, *SWITCHES)),
            },
            FFmpegDecoder,
            source="FFmpeg documentation, 'ffmpeg-scaler': sws_flags",
        ),
        VIDEO,
        *SOUND,
    ),
    fields={
        "swscale_flags": "used if the library itself converts to RGB",
        "idct": "ffmpeg: FFmpeg's own",
        "matrix": "of YUV to RGB: by the stream's tags, or one whatever they say",
        "range": "that samples are taken to have: by the tags, 16-235 or 0-255",
        "deblocking": "the codec's loop filter; false: skip_loop_filter",
    },
)
