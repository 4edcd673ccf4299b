"""Files that hold many samples: shards, known by their size and time."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from simulator.data import remote
from simulator.data.address import Root, bare, is_url
from simulator.errors import reading
from simulator.files import open_file

MOST = 2**43
"""Bytes of one shard at most."""


@dataclass(frozen=True, slots=True)
class Archive:
    """A shard as it was when it was indexed; all places in it share one of these.

    Attributes:
        where: its full path, or its URL.
        size: its bytes.
        time: when it was written, in nanoseconds; of a URL a number that its version has.
    """

    where: str
    size: int
    time: int

    @property
    def name(self) -> str:
        """The last part of its path."""
        return bare(self.where).rstrip("/").rpartition("/")[2]

    @contextmanager
    def opened(self) -> Iterator[IO[bytes]]:
        """Open it to be read in any order.

        Raises:
            OSError: it cannot be read, or is not what it was.
        """
        if is_url(self.where):
            with remote.opened(self.where) as file:
                yield file
            return
        with open_file(self.where, MOST) as file:
            found = os.fstat(file.fileno())
            if (found.st_size, found.st_mtime_ns) != (self.size, self.time):
                raise OSError(errno.ESTALE, f"{self.name} changed since it was indexed", self.where)
            yield file

    def part(self, offset: int, size: int) -> bytes:
        """Return some of its bytes.

        Raises:
            OSError: they cannot be read.
        """
        if is_url(self.where):
            data = remote.part(self.where, offset, size, self.size)
        else:
            with self.opened() as file:
                file.seek(offset)
                data = file.read(size)
        if len(data) != size:
            raise OSError(errno.EIO, f"{self.name} ends too early", self.where)
        return data


def archive(root: Root) -> Archive:
    """Return a shard as it is now.

    Raises:
        DataError: it cannot be read.
    """
    with reading(root):
        if isinstance(root, str):
            return Archive(root, *remote.size_and_time(root))
        place = Path(os.path.realpath(root))
        found = place.stat()
    return Archive(str(place), found.st_size, found.st_mtime_ns)
