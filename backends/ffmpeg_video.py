"""Frames of videos, by FFmpeg's demuxers and decoders and swscale."""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from operator import or_
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from simulator.contract import (
    U8,
    DataError,
    Frame,
    Library,
    Matrix,
    Offer,
    Options,
    PixelFormat,
    Range,
    SampleError,
    Stage,
    Subset,
    Unsupported,
    yuv_frame,
)
from simulator.contract.video import VideoReader, check_size

av = Library("av", distribution="av", extra="ffmpeg")
reformatter = Library("av.video.reformatter", distribution="av", extra="ffmpeg")

INTERPOLATION = ("fast_bilinear", "bilinear", "bicubic", "point")
SWITCHES = {
    "accurate_rnd": "ACCURATE_RND",
    "full_chroma_int": "FULL_CHR_H_INT",
    "full_chroma_inp": "FULL_CHR_H_INP",
    "bitexact": "BITEXACT",
}
_MATRICES = {"bt601": "ITU601", "bt709": "ITU709"}
_RANGES = {"limited": "MPEG", "full": "JPEG"}
_BT709, _FULL = 1, 2
_MATRIX_NAMES = {_BT709: "bt709", 2: "no matrix", 5: "bt601", 6: "bt601"}
_RANGE_NAMES = {0: "no range", 1: "limited range", _FULL: "full range"}
"""As H.273 numbers matrices, and FFmpeg ranges."""


class FFmpegVideo(VideoReader):
    """The first video stream; damage that a decoder finds is an error and not concealed.

    swscale makes RGB with the matrix and range that the stream declares (BT.601 and limited where
    it declares none), or with those of the profile whatever the stream declares.
    """

    gives_planes: ClassVar[bool] = True
    reference: ClassVar[Options | None] = {
        "matrix": "tags",
        "range": "tags",
        "deblocking": True,
        "swscale_flags": ("bicubic", *SWITCHES),
    }

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        self._flags = swscale(options["swscale_flags"])

    def rate(self, path: Path) -> float | None:
        """Return the average rate of the first video stream."""
        stream = self._stream(path)
        return float(stream.average_rate) if stream and stream.average_rate else None

    def declares(self, path: Path) -> str | None:
        """Return what the first video stream declares."""
        if (stream := self._stream(path)) is None:
            return None
        matrix, range = stream.codec_context.colorspace, stream.codec_context.color_range
        return f"{_MATRIX_NAMES.get(matrix, 'another matrix')} and {_RANGE_NAMES.get(range, range)}"

    def _stream(self, path: Path) -> Any:
        """The first video stream of a file, closed; None where there is none."""
        try:
            with av.open(str(path), options={"protocol_whitelist": "file"}) as file:
                return file.streams.video[0]
        except (av.FFmpegError, OSError, IndexError):
            return None

    def _frames(self, path: Path) -> Iterator[tuple[float, Any]]:
        with av.open(str(path), options={"protocol_whitelist": "file"}) as file:
            if not file.streams.video:
                raise DataError(f"{path}: is a video without frames: it has no video stream")
            stream = file.streams.video[0]
            stream.codec_context.thread_count = 1
            deblocking = {} if self.options["deblocking"] else {"skip_loop_filter": "all"}
            stream.codec_context.options = {"err_detect": "explode", **deblocking}
            check_size(path, stream.height, stream.width)
            for frame in file.decode(stream):
                check_size(path, frame.height, frame.width)
                if frame.rotation:
                    raise DataError(
                        f"{path}: is turned by {frame.rotation} degrees when it is shown; write it "
                        f"upright, for example with ffmpeg -i {path.name} upright{path.suffix}"
                    )
                if frame.is_corrupt:
                    raise DataError(f"{path}: the frame at {frame.time} s is damaged")
                if frame.pts is None:
                    raise DataError(f"{path}: its frames have no times; write it as .mp4 or .mkv")
                yield float((frame.pts - (stream.start_time or 0)) * stream.time_base), frame

    def _rgb(self, frame: Any) -> U8:
        asked: dict[str, Any] = {}
        if (matrix := self.options["matrix"]) != "tags":
            asked["src_colorspace"] = reformatter.Colorspace[_MATRICES[matrix]]
        if (range := self.options["range"]) != "tags":
            asked["src_color_range"] = reformatter.ColorRange[_RANGES[range]]
        rgb: U8 = frame.reformat(
            format="rgb24", interpolation=self._flags, threads=1, **asked
        ).to_ndarray()
        return rgb

    def _planes(self, frame: Any) -> Frame:
        if frame.format.name not in ("yuv420p", "yuvj420p"):
            raise SampleError(
                f"the clip's frames are {frame.format.name}, not 4:2:0 of 8 bits; "
                "write color.source: encode"
            )
        y, u, v = map(plane, frame.planes)
        declared = Matrix.BT709 if frame.colorspace == _BT709 else Matrix.BT601
        full = frame.color_range == _FULL or frame.format.name == "yuvj420p"
        return yuv_frame(PixelFormat.I420, y, u, v, declared, Range.FULL if full else Range.LIMITED)


def swscale(flags: Any) -> Any:
    """Return swscale's flags as PyAV takes them: together, one number.

    Raises:
        Unsupported: they do not hold exactly one interpolation.
    """
    if len(set(flags) & set(INTERPOLATION)) != 1:
        raise Unsupported(
            f"swscale_flags must hold exactly one of {', '.join(INTERPOLATION)}; "
            f"got {', '.join(flags) or 'none'}"
        )
    known = reformatter.Interpolation
    return reduce(or_, (known[SWITCHES.get(flag, flag.upper())] for flag in flags))


def plane(found: Any) -> U8:
    """Copy one plane, without the padding at the end of each row."""
    rows = np.frombuffer(found, np.uint8).reshape(found.height, found.line_size)
    return rows[:, : found.width].copy()


OFFER = Offer(
    Stage.VIDEO,
    {
        "matrix": ("tags", *_MATRICES),
        "range": ("tags", *_RANGES),
        "deblocking": (True, False),
        "swscale_flags": Subset((*INTERPOLATION, *SWITCHES)),
    },
    FFmpegVideo,
    source="FFmpeg documentation, 'ffmpeg-codecs' and 'ffmpeg-scaler'",
)
