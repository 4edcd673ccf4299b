"""Regular files: no pipe or device that never ends, no more bytes than a bound."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import IO

IMAGE = 2**30
"""Bytes of one image or mask at most."""
SOUND = 2**30
"""Bytes of one sound file at most."""
TEXT = 2**31
"""Bytes of one file of labels, annotations or results at most."""
LARGE = 2**34
"""Bytes of one model, artifact or recording at most."""
NPY = threading.Lock()
"""Held where threads read NumPy's files: their header is parsed as Python, which fails now and then
in two threads at once (CPython 3.11: "AST constructor recursion depth mismatch")."""
_CHUNK = 2**20


def open_file(path: str | os.PathLike[str], most: int) -> IO[bytes]:
    """Open a file for reading; its kind and size are checked before a byte is read.

    Args:
        path: where it is.
        most: bytes that it may have.

    Raises:
        OSError: it cannot be opened, is not a regular file, or is larger than *most*.
    """
    return os.fdopen(_opened(path, most)[0], "rb")


def _opened(path: str | os.PathLike[str], most: int) -> tuple[int, int]:
    """The descriptor of a file, and its size; see :func:`open_file`."""
    try:
        number = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except ValueError:  # a NUL, or a character that file names cannot have
        raise OSError(errno.EINVAL, "not a name that a file can have", str(path)) from None
    found = os.fstat(number)
    if stat.S_ISREG(found.st_mode) and found.st_size <= most:
        return number, found.st_size
    os.close(number)
    if stat.S_ISDIR(found.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if not stat.S_ISREG(found.st_mode):
        raise OSError(errno.EINVAL, "not a regular file, but a pipe or a device", str(path))
    why = f"{found.st_size:,} bytes; at most {most:,} are read"
    raise OSError(errno.EFBIG, why, str(path))


def check_file(path: str | os.PathLike[str], most: int) -> None:
    """Check what :func:`open_file` checks, for a library that opens the file itself.

    Raises:
        OSError: as for :func:`open_file`.
    """
    os.close(_opened(path, most)[0])


def read_file(path: str | os.PathLike[str], most: int) -> bytes:
    """Return the content of a file.

    Raises:
        OSError: as for :func:`open_file`, or it cannot be read.
    """
    number, size = _opened(path, most)
    try:
        data = os.read(number, size + 1)
        if len(data) == size:
            return data
        found = bytearray(data)
        while more := os.read(number, _CHUNK):  # it grew, or is one of /proc, which say 0 bytes
            found += more
            if len(found) > most:
                raise OSError(errno.EFBIG, f"more than {most:,} bytes", str(path))
        return bytes(found)
    finally:
        os.close(number)


def json_before(data: bytes) -> bytes:
    """Return the JSON that Ultralytics writes before an engine: its length, then it; or nothing."""
    length = int.from_bytes(data[:4], "little")
    found = data[4 : 4 + length]
    return found if found[:1] == b"{" and found[-1:] == b"}" and len(found) == length else b""


def hash_folder(folder: Path) -> str:
    """Return the SHA-256 of the names and contents of all files in a folder.

    Raises:
        OSError: one of them cannot be read.
    """
    whole = hashlib.sha256()
    for file in sorted(folder.rglob("*")):
        if file.is_file():
            whole.update(f"{file.relative_to(folder).as_posix()}\0{hash_file(file)}\0".encode())
    return whole.hexdigest()


def hash_file(path: str | os.PathLike[str], most: int = LARGE) -> str:
    """Return the SHA-256 of a file in hexadecimal; it is never in memory as a whole.

    Raises:
        OSError: as for :func:`open_file`, or it cannot be read.
    """
    found = hashlib.sha256()
    with open_file(path, most) as file:
        while chunk := file.read(_CHUNK):
            found.update(chunk)
    return found.hexdigest()


def write_whole(place: Path, data: bytes) -> None:
    """Write a file in one step; see :func:`write_parts`."""
    write_parts(place, [data])


def write_parts(place: Path, parts: Iterable[bytes]) -> None:
    """Write a file in one step: readers see the old one or the new one, also after a power cut.

    Args:
        place: where it is.
        parts: what is in it, one after another; only one of them is in memory.

    Raises:
        OSError: it cannot be written.
    """
    draft = place.with_name(f".{place.name}.part")
    draft.unlink(missing_ok=True)  # it may be a link
    with draft.open("wb") as file:
        file.writelines(parts)
    make_durable(draft)
    os.replace(draft, place)
    make_durable(place.parent)


def make_durable(path: Path) -> None:
    """Wait until a file or the names in a folder are on the disk."""
    number = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(number)
    finally:
        os.close(number)
