"""Zip files from strangers: read without writing anything, and never more than was promised."""

from __future__ import annotations

import hashlib
import re
import stat
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from simulator.closing import Closing
from simulator.errors import RunError
from simulator.files import LARGE, check_file

MOST_MEMBERS = 20_000
MOST_BYTES = 2**32
"""Of all members together, unpacked."""
MOST_RATIO = 1000
"""Unpacked to packed, of one member above :data:`SMALL`; text that says something is below 100."""
SMALL = 2**20
_CHUNK = 2**20
_EPOCH = (1980, 1, 1, 0, 0, 0)
_REGULAR = (stat.S_IFREG | 0o644) << 16
_UNIX = 3
_PLAIN = re.compile(r"[^\x00-\x1f\x7f\\:*?\"<>|]+")
_BROKEN = (
    zipfile.BadZipFile, zlib.error, EOFError, OSError, NotImplementedError, RuntimeError,
    ValueError, OverflowError, MemoryError,
)  # fmt: skip
"""What :mod:`zipfile` raises for files that are none, cut off, encrypted or packed otherwise."""


def write(place: Path, root: Path, names: Sequence[str], more: dict[str, bytes]) -> None:
    """Write a zip file whose bytes depend on names and contents alone.

    Args:
        place: the file.
        root: a folder.
        names: files below it, with ``/``.
        more: further members, by their names.
    """
    with zipfile.ZipFile(place, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as packed:
        for name in sorted({*names, *more}):
            info = zipfile.ZipInfo(name, _EPOCH)
            info.compress_type, info.create_system = zipfile.ZIP_DEFLATED, _UNIX
            info.external_attr = _REGULAR
            if name in more:
                packed.writestr(info, more[name])
                continue
            info.file_size = (root / name).stat().st_size
            with (root / name).open("rb") as source, packed.open(info, "w") as target:
                while chunk := source.read(_CHUNK):
                    target.write(chunk)


class Archive(Closing):
    """A zip file whose list of members was checked; a context manager.

    Raises:
        RunError: it cannot be read, or holds what no bundle of ours does: one line.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            check_file(path, LARGE)
            self._packed = zipfile.ZipFile(path)
        except _BROKEN as error:
            raise RunError(
                f"{path}: not a bundle, or one that was cut off: {_why(error)}"
            ) from error
        try:
            self._members = {one.filename: one for one in self._checked(self._packed.infolist())}
        except BaseException:
            self._packed.close()
            raise
        self.names = sorted(self._members)

    def _checked(self, members: Sequence[zipfile.ZipInfo]) -> Sequence[zipfile.ZipInfo]:
        if len(members) > MOST_MEMBERS:
            raise RunError(f"{self.path}: {len(members):,} members; {MOST_MEMBERS:,} at most")
        known: set[str] = set()
        for one in members:
            if problem := _problem(one, known):
                raise RunError(f"{self.path}: {one.filename[:200]!r} {problem}; nothing was read")
            known.add(one.filename.lower())
        total = sum(member.file_size for member in members)
        if total > MOST_BYTES:
            raise RunError(
                f"{self.path}: would unpack to {total:,} bytes; {MOST_BYTES:,} at most; "
                "nothing was read"
            )
        return members

    def size(self, name: str) -> int:
        """Return how long a member says that it is."""
        return self._members[name].file_size

    def read(self, name: str, most: int) -> bytes:
        """Return the content of a member.

        Raises:
            RunError: it is not there, is longer than *most*, or is damaged.
        """
        if name not in self._members:
            raise RunError(f"{self.path}: {name} is not in it")
        if self.size(name) > most:
            raise RunError(f"{self.path}: {name} has {self.size(name):,} bytes; {most:,} at most")
        return b"".join(self._chunks(name))

    def sha256(self, name: str) -> str:
        """Return the digest of a member's content.

        Raises:
            RunError: it is damaged.
        """
        found = hashlib.sha256()
        for chunk in self._chunks(name):
            found.update(chunk)
        return found.hexdigest()

    def _chunks(self, name: str) -> Iterator[bytes]:
        try:
            with self._packed.open(self._members[name]) as file:
                while chunk := file.read(_CHUNK):
                    yield chunk
        except _BROKEN as error:
            raise RunError(f"{self.path}: {name} is damaged: {_why(error)}") from error

    def close(self) -> None:
        """Close the file."""
        self._packed.close()


def _problem(member: zipfile.ZipInfo, known: set[str]) -> str:
    """What is wrong with a member before a byte of it is read; empty: nothing."""
    name, mode = member.filename, member.external_attr >> 16
    parts = name.split("/")
    if name.lower() in known:
        return "is there twice"
    if not _PLAIN.fullmatch(name) or any(part in ("", ".", "..") for part in parts):
        return "is not a path below a folder"
    if stat.S_IFMT(mode) not in (0, stat.S_IFREG):  # many tools write no type
        return "is a link" if stat.S_ISLNK(mode) else "is not a regular file"
    if member.flag_bits & 1:
        return "is encrypted"
    if member.file_size > max(SMALL, MOST_RATIO * member.compress_size):
        return f"would unpack {member.compress_size:,} bytes to {member.file_size:,}"
    return ""


def _why(error: BaseException) -> str:
    said = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return " ".join(said.split())[:200]
