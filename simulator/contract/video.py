"""Frames of video files, found by the time at which they are shown, never by their number."""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar, TypeVar, final

import numpy as np

from simulator.contract.backend import Implementation, Options
from simulator.contract.encoded import MAX_PIXELS, Encoded
from simulator.contract.frame import U8, Frame, check_planes, rgb_frame
from simulator.errors import DataError, SampleError, SimulatorError, Unsupported, first_line
from simulator.places import Moment

T = TypeVar("T")
VIDEOS = (".mp4", ".mkv", ".avi", ".webm", ".mov")
"""The ends of the names of video files, in lower case."""
NEAR = 0.0005
"""Seconds within which two times are the same."""
KEPT = 8
"""The frames of a clip that stay, so that one may be asked for that was already passed."""


class VideoReader(Implementation):
    """Decodes video files, each from its first frame to its last.

    Each thread that asks has a decoder of its own, which stays open while the frames that it asks
    for are of one clip and in order. A frame before the last :data:`KEPT` opens the clip again.

    Args:
        options: the checked fields of the profile's ``video`` section.

    Attributes:
        gives_planes: whether `planes` works: the library returns the frame's own 4:2:0 planes.
        reference: the options with which the engine itself decodes; None: it never does.
    """

    gives_planes: ClassVar[bool] = False
    reference: ClassVar[Options | None] = None

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        self._here = threading.local()

    @final
    def rgb(self, image: Encoded) -> Frame:
        """Decode a frame to RGB with the library's own color conversion.

        Args:
            image: a frame of a clip, as the engine sees it.

        Raises:
            SampleError: the library has no frame at that time, or cannot decode the clip so far.
        """
        return self._checked(image, rgb_frame(self.shown(_moment(image))))

    @final
    def planes(self, image: Encoded) -> Frame:
        """Return the planes of a frame, with the matrix and range that the stream declares.

        Raises:
            SampleError: as :meth:`rgb`.
            Unsupported: the library does not return YUV planes.
        """
        return self._checked(image, self._made(self._planes, _moment(image)))

    @final
    def shown(self, moment: Moment) -> U8:
        """Return (H, W, 3) of the frame at a time, C-contiguous."""
        return np.ascontiguousarray(self._made(self._rgb, moment))

    @final
    def times(self, path: Path) -> Iterator[float]:
        """Yield when the frames of a file are shown, in seconds from the start of the stream.

        Raises:
            DataError: it is no video, is damaged, or a frame is too large.
        """
        try:
            for time, _ in self._frames(path):
                yield time
        except SimulatorError:
            raise
        except Exception as error:  # the library's own reason, whatever its type
            reason = getattr(error, "strerror", None) or first_line(error)
            raise DataError(f"{path}: cannot be decoded as a video: {reason}") from error

    def rate(self, path: Path) -> float | None:
        """Return how many frames a second has, as the file says; None where it does not."""
        return None

    def declares(self, path: Path) -> str | None:
        """Return the matrix and range that a file's stream declares; None where it is not known."""
        return None

    @abstractmethod
    def _frames(self, path: Path) -> Iterator[tuple[float, Any]]:
        """Yield times and the library's own frames, as shown; these stay valid."""

    @abstractmethod
    def _rgb(self, frame: Any) -> U8:
        """Return (H, W, 3) of a frame."""

    def _planes(self, frame: Any) -> Frame:
        raise Unsupported(f"{type(self).__name__} does not give YUV planes")

    def _made(self, make: Callable[[Any], T], moment: Moment) -> T:
        return self._ask(make, self._found(moment))

    def _found(self, moment: Moment) -> Any:
        clip: _Clip | None = getattr(self._here, "clip", None)
        if clip is None or clip.path != moment.clip or clip.is_past(moment.seen):
            if clip is not None:
                clip.close()
            clip = self._here.clip = _Clip(moment.clip, self._frames(Path(moment.clip)))
        found = clip.at(moment.seen)
        if found is None:
            raise SampleError(f"{type(self).__name__} has no frame at {moment}: {clip.ends()}")
        return found

    def _checked(self, image: Encoded, frame: Frame) -> Frame:
        problem, wanted = check_planes(frame), (image.height, image.width)
        if problem is None and (frame.height, frame.width) != wanted:
            problem = f"decoded to {(frame.height, frame.width)}, the clip has {wanted}"
        if problem:
            raise SampleError(f"{type(self).__name__}: {problem}")
        return frame


class _Clip:
    """A clip that is open, and its last frames."""

    def __init__(self, path: str, frames: Iterator[tuple[float, Any]]) -> None:
        self.path = path
        self._frames = frames
        self._kept: deque[tuple[float, Any]] = deque(maxlen=KEPT)
        self._lost = False
        self._over: str | None = None

    def is_past(self, time: float) -> bool:
        """Whether a frame that it had may have been dropped."""
        return self._lost and time < self._kept[0][0] - NEAR

    def at(self, time: float) -> Any:
        """Return the frame at a time; None where there is none."""
        while self._over is None and not (self._kept and self._kept[-1][0] > time - NEAR):
            try:
                self._lost = self._lost or len(self._kept) == KEPT
                self._kept.append(next(self._frames))
            except StopIteration:
                self._over = "its last is"
            except Exception as error:  # the library's own reason, whatever its type
                self._over = f"{first_line(error)}, and its last is"
        return next((frame for when, frame in self._kept if abs(when - time) <= NEAR), None)

    def ends(self) -> str:
        """Say where it is, for messages."""
        if not self._kept:
            return f"{self._over} none"
        return f"{self._over or 'the one behind it is'} at {self._kept[-1][0]:.3f} s"

    def close(self) -> None:
        """Close the file."""
        close = getattr(self._frames, "close", None)
        if close:
            close()


def check_size(path: Path, height: int, width: int) -> None:
    """Refuse frames that are larger than images may be.

    Raises:
        DataError: they are.
    """
    if not 0 < height * width <= MAX_PIXELS:
        raise DataError(f"{path}: frames of {width}x{height} pixels; at most {MAX_PIXELS:,} work")


def _moment(image: Encoded) -> Moment:
    if image.moment is None:
        raise SampleError("is an image, not a frame of a video")
    return image.moment
