"""Samples behind URLs, read by fsspec: ``s3://``, ``https://``, ``memory://`` and many more."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import IO, Any

from simulator.errors import DataError, MissingLibrary, one_line
from simulator.places import Place, too_large

_PIECE = 2**20


@dataclass(frozen=True, slots=True)
class Url(Place):
    """The bytes behind a URL.

    Attributes:
        url: with its protocol.
        length: how many bytes it was listed with; None: the listing did not say.
    """

    url: str
    length: int | None = None

    @property
    def suffix(self) -> str:
        """The ending of the URL."""
        return PurePosixPath(self.url).suffix

    def read(self, most: int) -> bytes:
        """Return the bytes; one request."""
        if self.length is not None and self.length > most:
            raise too_large(self, self.length, most)
        with _as_os_errors(self.url):
            files, path = filesystem(self.url)
            # The listing may be old or lie, so that no more than is allowed is ever taken in.
            with files.open(path, "rb", **_streamed(files)) as file:
                return b"".join(_pieces(file, most, self))

    def size(self) -> int | None:
        """Return the bytes of the listing."""
        return self.length

    def __str__(self) -> str:
        return self.url


def _pieces(file: IO[bytes], most: int, place: Url) -> Iterator[bytes]:
    total = 0
    while piece := file.read(_PIECE):
        total += len(piece)
        if total > most:
            raise too_large(place, total, most)
        yield piece


def _streamed(files: Any) -> dict[str, Any]:
    """What opens a URL for one pass, without a request for its size first."""
    return {"block_size": 0} if "http" in files.protocol else {}


def filesystem(url: str) -> tuple[Any, str]:
    """Return the file system of a URL, and the path in it.

    Raises:
        MissingLibrary: fsspec, or what it needs for the protocol, is not installed.
        DataError: no library has this protocol.
    """
    try:
        import fsspec

        found: tuple[Any, str] = fsspec.core.url_to_fs(url)
    except ImportError as error:
        raise MissingLibrary(
            f"{url}: {one_line(error)}; try: pip install 'pipeline-simulator[remote]'"
        ) from error
    except ValueError as error:
        raise DataError(f"{url}: {one_line(error)}") from error
    return found


def size_and_time(url: str) -> tuple[int, int]:
    """Return how many bytes a URL has, and a number that changes when it is written again.

    Raises:
        OSError: it cannot be reached, or does not say how long it is.
    """
    with _as_os_errors(url):
        files, path = filesystem(url)
        found = files.info(path)
        if not isinstance(found.get("size"), int):
            raise OSError(errno.ESPIPE, "the server does not say how long it is", url)
        mark = next((found[key] for key in ("ETag", "mtime", "created") if found.get(key)), "")
        return found["size"], int.from_bytes(str(mark).encode()[-8:], "big")


@contextmanager
def opened(url: str) -> Iterator[IO[bytes]]:
    """Open a URL to be read in any order.

    Raises:
        OSError: it cannot be reached or not be read in any order.
    """
    with _as_os_errors(url):
        files, path = filesystem(url)
        with files.open(path, "rb") as file:
            if not file.seekable():
                raise OSError(errno.ESPIPE, "the server gives no part of a file", url)
            yield file


def names(url: str) -> list[str]:
    """Return what is directly in a folder; the names of folders end in ``/``.

    Raises:
        OSError: it cannot be listed.
    """
    with _as_os_errors(url):
        files, root = filesystem(url)
        found = [(one["name"].rstrip("/"), one["type"]) for one in files.ls(root, detail=True)]
        return [
            name.rpartition("/")[2] + "/" * (kind == "directory") for name, kind in sorted(found)
        ]


def listed(url: str) -> dict[str, Url]:
    """Return the files below a URL by their names from there, sorted.

    Raises:
        DataError: it cannot be listed.
    """
    try:
        with _as_os_errors(url):
            files, root = filesystem(url)
            root = root.rstrip("/")
            found = files.find(root, detail=True)
            return {
                path[len(root) + 1 :]: Url(files.unstrip_protocol(path), one.get("size"))
                for path, one in sorted(found.items())
                if path.startswith(f"{root}/") and one.get("type", "file") == "file"
            }
    except OSError as error:
        raise DataError(f"{url}: cannot be listed: {error.strerror or error}") from error


@contextmanager
def _as_os_errors(url: str) -> Iterator[None]:
    """Turn what libraries of protocols raise, which have no error in common, into OSError."""
    try:
        yield
    except (OSError, MissingLibrary, DataError):
        raise
    except Exception as error:
        raise OSError(errno.EIO, f"{type(error).__name__}: {one_line(error)}", url) from error
