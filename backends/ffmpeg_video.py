"""Frames of videos, by FFmpeg's demuxers and decoders and swscale."""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from operator import or_
from pathlib import Path
from typing import Any

from simulator.contract import U8, DataError, Library
from simulator.contract.video import VideoReader, check_size

av = Library("av", distribution="av", extra="ffmpeg")
reformatter = Library("av.video.reformatter", distribution="av", extra="ffmpeg")

_FLAGS = ("BICUBIC", "ACCURATE_RND", "FULL_CHR_H_INT", "FULL_CHR_H_INP", "BITEXACT")


class FFmpegVideo(VideoReader):
    """The first video stream; damage that a decoder finds is an error and not concealed.

    swscale makes RGB with the matrix and range that the stream declares (BT.601 and limited where
    it declares none), bicubic chroma, and the same bits on every processor.
    """

    def rate(self, path: Path) -> float | None:
        """Return the average rate of the first video stream."""
        try:
            with av.open(str(path), options={"protocol_whitelist": "file"}) as file:
                found = file.streams.video[0].average_rate
        except (av.FFmpegError, OSError, IndexError):
            return None
        return float(found) if found else None

    def _frames(self, path: Path) -> Iterator[Any]:
        with av.open(str(path), options={"protocol_whitelist": "file"}) as file:
            if not file.streams.video:
                raise DataError(f"{path}: is a video without frames: it has no video stream")
            stream = file.streams.video[0]
            stream.thread_type = "AUTO"
            stream.codec_context.options = {"err_detect": "explode"}
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
                yield frame

    def _rgb(self, frame: Any) -> U8:
        names = reformatter.Interpolation
        flags = reduce(or_, (names[flag] for flag in _FLAGS))
        rgb: U8 = frame.reformat(format="rgb24", interpolation=flags, threads=1).to_ndarray()
        return rgb
