"""Samples in tar archives, as WebDataset lays them out: read in place, by offset and size."""

from __future__ import annotations

import os
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, NamedTuple

from simulator.data.address import safe
from simulator.data.archive import Archive
from simulator.errors import DataError, one_line
from simulator.places import Place, too_large

BLOCK = 512
HEADER = 2**20
"""Bytes of one header at most, the long names of a member among it."""
LABEL = 2**20
"""Bytes of a member that is read as a label at most."""
PACKED = (".tar.gz", ".tgz", ".tar.bz2", ".tar.xz", ".tar.zst")


@dataclass(frozen=True, slots=True)
class TarMember(Place):
    """A file in a tar archive.

    Attributes:
        shard: the archive.
        offset: of its first byte there.
        length: in bytes.
        ending: the ending of its name, with the dot.
    """

    shard: Archive
    offset: int
    length: int
    ending: str

    @property
    def suffix(self) -> str:
        """The ending of its name."""
        return self.ending

    def read(self, most: int) -> bytes:
        """Return its bytes."""
        if self.length > most:
            raise too_large(self, self.length, most)
        return self.shard.part(self.offset, self.length)

    def size(self) -> int:
        """Return how many bytes it has."""
        return self.length

    def state(self) -> tuple[int, ...]:
        """Return the time and size of the archive, and where this is in it."""
        return self.shard.time, self.shard.size, self.offset, self.length

    def __str__(self) -> str:
        return f"{self.shard.where}@{self.offset}"


class Member(NamedTuple):
    """A regular file of an archive."""

    name: str
    offset: int
    size: int


class _Headers:
    """The file as tarfile reads it: headers only, none of them larger than it may be."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.seek, self.tell = file.seek, file.tell

    def read(self, size: int = -1) -> bytes:
        if not 0 <= size <= HEADER:
            raise tarfile.ReadError(f"a header of {size:,} bytes; {HEADER:,} at most")
        return self._file.read(size)


def members(shard: Archive) -> Iterator[Member | str]:
    """Yield the regular files of an archive in order, and of others why they are left out.

    Only headers are read. Nothing is ever unpacked, so that names and links lead nowhere; names
    are checked all the same, as results show them.

    Raises:
        DataError: it is no tar archive, is packed, cut off or damaged, or a name leads out of it.
    """
    if shard.where.lower().endswith(PACKED):
        raise DataError(
            f"{shard.where}: is packed, and no part of it can be read by itself; unpack it to .tar"
        )
    try:
        with shard.opened() as file:
            yield from _members(shard, file)
    except tarfile.ReadError as error:
        raise DataError(f"{shard.where}: no tar archive, or damaged: {one_line(error)}") from error
    except OSError as error:
        raise DataError(f"{shard.where}: cannot be read: {error.strerror or error}") from error


def _members(shard: Archive, file: IO[bytes]) -> Iterator[Member | str]:
    with tarfile.open(fileobj=_Headers(file), mode="r:", errorlevel=1) as opened:  # type: ignore[call-overload]
        while one := opened.next():
            opened.members = []  # it would keep them all
            name = os.fsencode(one.name).decode("utf-8", "backslashreplace")
            where = f"{shard.where}: {name[:200]!r}"
            if one.isdir():
                continue
            if not one.isreg() or one.issparse():
                yield "other than plain files"
            elif one.offset_data + one.size > shard.size:
                raise DataError(f"{where}: is cut off: the archive ends before it")
            else:
                yield Member(safe(name, where), one.offset_data, one.size)
        end = opened.offset
    file.seek(end)
    rest = file.read(BLOCK)
    if rest != bytes(BLOCK):
        what = "it ends without the mark of its end" if not rest else f"no header at byte {end:,}"
        raise DataError(f"{shard.where}: is cut off or damaged: {what}")


def grouped(shard: Archive) -> Iterator[tuple[str, dict[str, Member]] | str]:
    """Yield samples as WebDataset groups them: neighbours whose names differ behind the first dot.

    Yields:
        The name without its ending, and the members by ending, without the dot; of what is
        left out the reason.

    Raises:
        DataError: see :func:`members`; or two members of a sample have one name.
    """
    key: str | None = None
    parts: dict[str, Member] = {}
    for one in members(shard):
        if isinstance(one, str):
            yield one
            continue
        folder, name = os.path.split(one.name)
        stem, _, ending = name.partition(".")
        if not stem:
            yield "without a name before its first dot"
            continue
        whole = os.path.join(folder, stem)
        if whole != key:
            if key is not None:
                yield key, parts
            key, parts = whole, {}
        if ending.lower() in parts:
            raise DataError(f"{shard.where}: two members are called {one.name!r}")
        parts[ending.lower()] = one
    if key is not None:
        yield key, parts
