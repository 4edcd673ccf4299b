"""WebDataset: tar archives with the files of a sample side by side, ``a.jpg`` and ``a.cls``.

A sample is read in place, by offset and size.
"""

from __future__ import annotations

import json
import os
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from types import SimpleNamespace
from typing import IO, Any, ClassVar, NamedTuple

from pydantic import Field

from simulator.data.address import safe
from simulator.data.archive import Archive
from simulator.data.folder import Files
from simulator.data.format import DataSpec
from simulator.data.shards import Reader, Row, Shards
from simulator.data.tally import Tally
from simulator.errors import DataError, one_line, reading
from simulator.places import ByteSource, too_large

BLOCK = 512
HEADER = 2**20
"""Bytes of one header at most, the long names of a member among it."""
LABEL = 2**20
"""Bytes of a member that is read as a label at most."""
PACKED = (".tar.gz", ".tgz", ".tar.bz2", ".tar.xz", ".tar.zst", ".tar.lz4", ".tar.lzma")


@dataclass(frozen=True, slots=True)
class TarMember(ByteSource):
    """A file in a tar archive.

    Attributes:
        shard: the archive.
        offset: of its first byte there.
        length: in bytes.
        suffix: the ending of its name, with the dot.
    """

    shard: Archive
    offset: int
    length: int
    suffix: str

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
        why = "is packed, and no part of it can be read by itself; unpack it to .tar"
        raise DataError(f"{shard.where}: {why}")
    try:
        with reading(shard.where), shard.opened() as file:
            yield from _members(shard, file)
    except tarfile.ReadError as error:
        raise DataError(f"{shard.where}: no tar archive, or damaged: {one_line(error)}") from error


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
    for member in members(shard):
        if isinstance(member, str):
            yield member
            continue
        folder, name = os.path.split(member.name)
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
            raise DataError(f"{shard.where}: two members are called {member.name!r}")
        parts[ending.lower()] = member
    if key is not None:
        yield key, parts


def _scan(
    shard: Archive, tally: Tally, files: Files, label: str | None, sample: str | None
) -> Iterator[Row]:
    ending, _, key = (label or "").partition(".")
    for one in grouped(shard):
        if isinstance(one, str):
            tally.add("left out", "member", one, shard.name)
            continue
        name, parts = one
        wanted = [
            own for own in parts if own == sample or (not sample and f".{own}" in files.suffixes)
        ]
        if len(wanted) > 1:
            which = f"which is the {files.noun}? Write `sample` in a data card"
            raise DataError(f"{shard.where}: {name} has {' and '.join(wanted)}: {which}")
        if not wanted:
            tally.add("left out", "group of files", "without a sample", f"{shard.name}/{name}")
            continue
        place = parts[wanted[0]]
        text = _label(shard, parts[ending], key) if ending in parts else None
        yield Row(f"{name}.{wanted[0]}", place.offset, place.size, f".{wanted[0]}", text)


def _label(shard: Archive, member: Member, key: str) -> str:
    where = f"{shard.where}: {member.name}"
    if member.size > LABEL:
        raise DataError(f"{where}: {member.size:,} bytes are no label")
    with reading(where):
        data = shard.part(member.offset, member.size)
    try:
        text = data.decode("utf-8")
        found = json.loads(text)[key] if key else text.strip()
    except (ValueError, RecursionError, KeyError, TypeError, IndexError) as error:
        told = f"there is no key {key!r}" if isinstance(error, KeyError) else one_line(error)
        raise DataError(f"{where}: is no label: {told}") from error
    if isinstance(found, bool) or not isinstance(found, str | int):
        raise DataError(f"{where}: {key}: a text or an integer expected")
    return str(found)


class WebDatasetSpec(DataSpec):
    """A card of tar archives."""

    files: str = Field(description="an archive, a folder of them, `val-{0000..0049}.tar` or a URL")
    label: str | None = Field(
        default=None,
        description="the ending of the file with the label, or json.KEY; none: no truth",
    )
    sample: str | None = Field(
        default=None, description="the ending of the samples, where several could be one"
    )


class WebDataset(Shards):
    """Samples in tar archives, with their labels, called ``SHARD.tar/KEY.ENDING``.

    Without a card a ``.cls`` file has the label.
    """

    Spec: ClassVar[type[DataSpec]] = WebDatasetSpec
    classes: ClassVar[Any] = SimpleNamespace(label="cls", sample=None)
    suffix = ".tar"
    packed = PACKED

    def reader(self, first: Archive, files: Files, spec: Any) -> Reader:
        """Return how archives are read."""
        label, sample = (spec.label, spec.sample) if spec else (None, None)
        identity = [sorted(files.suffixes), files.noun, label, sample]
        rows = partial(_scan, files=files, label=label, sample=sample)
        return Reader(identity, rows, _place)


def _place(shard: Archive, row: Row) -> TarMember:
    return TarMember(shard, row.first, row.second, row.ending)


WEBDATASET = WebDataset()
