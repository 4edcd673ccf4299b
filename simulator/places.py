"""Where the bytes of a sample are: a file of its own, or a part of something larger."""

from __future__ import annotations

import errno
import hashlib
from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path, PurePath, PurePosixPath

from simulator.errors import DataError, SampleError
from simulator.files import read_file


@dataclass(frozen=True, slots=True)
class Moment:
    """One frame of a video file.

    Attributes:
        clip: the path of the file.
        time: when it is shown, in seconds from the start of the stream.
        before: when the frames before it are shown, the nearest first; a few at most.
        back: how many frames before it the one is that is seen in its place.
    """

    clip: str
    time: float
    before: tuple[float, ...] = ()
    back: int = 0

    @property
    def seen(self) -> float:
        """When the frame is shown that is seen."""
        return self.before[self.back - 1] if self.back else self.time

    def __str__(self) -> str:
        return f"{self.seen:.3f} s of {PurePath(self.clip).name}"


class ByteSource(ABC):
    """Bytes that are no file of their own: of an archive, of a table, behind an address, in memory.

    Small plain data, a frozen dataclass with slots: it is sent to the process that reads it, and
    opened there. ``str`` of it says where it is, for messages.
    """

    __slots__ = ()

    @property
    @abstractmethod
    def suffix(self) -> str:
        """The ending that a file with these bytes would have, with the dot; empty: not known."""

    @abstractmethod
    def read(self, most: int) -> bytes:
        """Return the bytes.

        Args:
            most: how many there may be.

        Raises:
            OSError: they cannot be read, are more than *most*, or are not what they were when the
                place was found.
        """

    @property
    def moment(self) -> Moment | None:
        """Which frame of a clip the bytes show; None where they are of no clip."""
        return None

    def size(self) -> int | None:
        """Return how many bytes there are; None where only reading them tells."""
        return None

    def state(self) -> tuple[int, ...]:
        """Return numbers that change where the bytes do, without reading them."""
        return ()


class Unreachable(OSError):
    """No server answers where bytes are: none of its samples can be read now."""

    def stop(self) -> DataError:
        """Return the error that ends what reads samples, as every further one would fail too."""
        return DataError(
            f"{self.filename}: {self.strerror}; a run that has begun goes on with `simulate resume`"
        )


Where = Path | ByteSource
"""Where the bytes of a sample are."""


@dataclass(frozen=True, slots=True)
class InMemory(ByteSource):
    """Bytes that travel with their place, for a process that cannot reach where they were.

    Attributes:
        name: for messages, with the ending of a file.
        data: the bytes.
        moment: the frame of a clip that they show.
    """

    name: str
    data: bytes
    moment: Moment | None = None

    @classmethod
    def of(cls, where: Where, most: int) -> InMemory:
        """Read a place, to send its bytes away.

        Raises:
            OSError: it cannot be read.
        """
        return cls(str(where), read(where, most), moment_of(where))

    @property
    def suffix(self) -> str:
        """The ending of the name."""
        return PurePosixPath(self.name).suffix

    def read(self, most: int) -> bytes:
        """Return the bytes."""
        if len(self.data) > most:
            raise too_large(self, len(self.data), most)
        return self.data

    def size(self) -> int:
        """Return how many bytes there are."""
        return len(self.data)

    def __str__(self) -> str:
        return self.name


CHANGED = "changed during the run: its bytes are others than those that were hashed at the start"


@dataclass(frozen=True, slots=True)
class Sealed(ByteSource):
    """A place whose bytes are known: others are refused.

    Attributes:
        there: where they are.
        sha256: of the bytes, in hexadecimal; empty where they could not be read at the start.
    """

    there: Where
    sha256: str

    @property
    def suffix(self) -> str:
        """The ending of the place."""
        return self.there.suffix

    @property
    def moment(self) -> Moment | None:
        """The frame of a clip that the place shows."""
        return moment_of(self.there)

    def read(self, most: int) -> bytes:
        """Return the bytes; OSError where they are others."""
        data = read(self.there, most)
        if hashlib.sha256(data).hexdigest() != self.sha256:
            raise OSError(errno.ESTALE, CHANGED, str(self))
        return data

    def size(self) -> int | None:
        """Return how many bytes there are."""
        return size_of(self.there)

    def state(self) -> tuple[int, ...]:
        """Return numbers that change where the bytes do."""
        return state_of(self.there)

    def __str__(self) -> str:
        return str(self.there)


def read(where: Where, most: int) -> bytes:
    """Return the bytes at a place.

    Raises:
        OSError: they cannot be read, or are more than *most*.
    """
    return where.read(most) if isinstance(where, ByteSource) else read_file(where, most)


def read_sample(where: Where, most: int) -> bytes:
    """Return the bytes of a sample; every modality reads its samples by this.

    Raises:
        SampleError: they cannot be read, or are more than *most*.
        DataError: the server that has them does not answer any more.
    """
    try:
        return read(where, most)
    except Unreachable as error:
        raise error.stop() from error
    except OSError as error:
        raise SampleError(f"cannot be read: {error.strerror or error}") from error


def moment_of(where: Where) -> Moment | None:
    """Return which frame of a clip the bytes at a place show; None where they are of no clip."""
    return where.moment if isinstance(where, ByteSource) else None


def size_of(where: Where) -> int | None:
    """Return how many bytes there are; None where nothing is there, or only reading tells."""
    try:
        return where.size() if isinstance(where, ByteSource) else where.stat().st_size
    except OSError:
        return None


def state_of(where: Where) -> tuple[int, ...]:
    """Return numbers that change where the bytes do; of a file, its time in nanoseconds and size.

    Nothing is read. A file that is not there has (-1, -1).
    """
    if isinstance(where, ByteSource):
        return where.state()
    try:
        found = where.stat()
    except OSError:
        return -1, -1
    return found.st_mtime_ns, found.st_size


def too_large(where: object, size: int, most: int) -> OSError:
    """Return the error of a place with more bytes than may be read."""
    return OSError(errno.EFBIG, f"{size:,} bytes; at most {most:,} are read", str(where))
