"""Frames of video files."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import final

from simulator.contract.backend import Implementation
from simulator.contract.encoded import MAX_PIXELS
from simulator.contract.frame import U8
from simulator.errors import DataError, SimulatorError, first_line

VIDEOS = (".mp4", ".mkv", ".avi", ".webm", ".mov")
"""The ends of the names of video files, in lower case."""


@dataclass(frozen=True, slots=True, eq=False)
class VideoFrame:
    """One frame.

    Attributes:
        index: from 0, in the order in which frames are shown.
        rgb: (H, W, 3) uint8; None where the pixels were not asked for.
    """

    index: int
    rgb: U8 | None


class VideoReader(Implementation):
    """Decodes video files."""

    @final
    def frames(self, path: Path, wanted: range) -> Iterator[VideoFrame]:
        """Yield the frames of a file in the order in which they are shown.

        Args:
            path: the file.
            wanted: the indices whose pixels are needed; none is decoded after its last.

        Raises:
            DataError: it is no video, is damaged, or a frame is too large.
        """
        try:
            for index, frame in enumerate(self._frames(path)):
                if index > wanted[-1]:
                    return
                yield VideoFrame(index, self._rgb(frame) if index in wanted else None)
        except SimulatorError:
            raise
        except Exception as error:  # the library's own reason, whatever its type
            reason = first_line(error)
            raise DataError(f"{path}: cannot be decoded as a video: {reason}") from error

    def rate(self, path: Path) -> float | None:
        """Return how many frames a second has, as the file says; None where it does not."""
        return None

    @abstractmethod
    def _frames(self, path: Path) -> Iterator[object]:
        """Yield the library's own frames."""

    @abstractmethod
    def _rgb(self, frame: object) -> U8:
        """Return (H, W, 3) of a frame, C-contiguous."""


def check_size(path: Path, height: int, width: int) -> None:
    """Refuse frames that are larger than images may be.

    Raises:
        DataError: they are.
    """
    if not 0 < height * width <= MAX_PIXELS:
        raise DataError(f"{path}: frames of {width}x{height} pixels; at most {MAX_PIXELS:,} work")
