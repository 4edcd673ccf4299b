"""A source of Acme's own: the readings of one drive, in a NumPy archive, ``drive.npz``.

``--data drive.npz`` takes it, and so does ``files: drive.npz`` in a data card of any label kind.
"""

from __future__ import annotations

import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from simulator.data.address import Root
from simulator.data.folder import Dataset, Files, Item
from simulator.data.source import Given, Source
from simulator.errors import reading
from simulator.places import ByteSource, too_large


@dataclass(frozen=True, slots=True)
class Reading(ByteSource):
    """One array of an archive.

    Attributes:
        drive: the archive.
        name: of the array, with ``.npy``.
    """

    drive: Path
    name: str

    @property
    def suffix(self) -> str:
        """The ending of an array's file."""
        return ".npy"

    def read(self, most: int) -> bytes:
        """Return the bytes of the array's file."""
        with zipfile.ZipFile(self.drive) as archive:
            size = archive.getinfo(self.name).file_size
            if size > most:
                raise too_large(self, size, most)
            return archive.read(self.name)

    def __str__(self) -> str:
        return f"{self.drive}: {self.name}"


class Drive(Source):
    """The arrays of an archive, without labels."""

    annotated = False

    def takes(self, given: Given) -> bool:
        """Whether this is the path of an archive."""
        return isinstance(given.root, Path) and given.ends_with(".npz")

    def open(self, root: Root, files: Files, spec: Any = None) -> Dataset:
        """Find the arrays."""
        path = Path(root)
        with reading(path, zipfile.BadZipFile), zipfile.ZipFile(path) as archive:
            names = sorted(archive.namelist())
        return Dataset(path, tuple(Item(name, Reading(path, name), None) for name in names))


DRIVE = Drive()
