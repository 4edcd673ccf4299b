"""Folders of samples, with labels in folder names, in a table, or nowhere."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

import numpy as np

from simulator.contract.encoded import SUFFIXES, Encoded, read_image
from simulator.data import remote
from simulator.data.address import Root
from simulator.data.folder_labels import CAFFE, TABLES, from_folders, from_table, is_caffe
from simulator.data.labels import Labels
from simulator.data.tally import counted
from simulator.errors import DataError
from simulator.places import Where, size_of

if TYPE_CHECKING:
    from simulator.modalities.modality import Modality


@dataclass(frozen=True, slots=True)
class Files:
    """Which files of a folder are samples.

    Attributes:
        suffixes: the ends of their names, in lower case with the dot.
        noun: one sample, in the singular, for messages.
    """

    suffixes: tuple[str, ...]
    noun: str

    @classmethod
    def of(cls, modality: Modality) -> Files:
        """Return the files that are samples of a modality."""
        return cls(modality.suffixes, modality.unit)

    def count(self, number: int) -> str:
        """Return a number of samples in words."""
        return counted(number, self.noun)

    def has(self, path: Path) -> bool:
        """Whether a file is a sample, by its name."""
        return path.suffix.lower() in self.suffixes

    @property
    def listed(self) -> str:
        """The suffixes, for messages."""
        return ", ".join(sorted(self.suffixes))


IMAGES = Files(SUFFIXES, "image")


@dataclass(frozen=True, slots=True)
class Item:
    """One sample.

    Attributes:
        name: its path below the data folder, with ``/`` on every system.
        path: where its bytes are.
        truth: what people have annotated: a class index, or what a data format makes of it; None
            where nobody has.
        sha256: of its bytes in hexadecimal, where they were hashed: others are then refused; empty
            where they could not be read.
    """

    name: str
    path: Where
    truth: Any
    sha256: str | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Dataset:
    """The samples of one folder, sorted by name.

    Attributes:
        root: the folder, or its URL.
        items: the samples, at least one.
        notes: what was left out and why, one sentence each.
        film: whether they are frames of one video, in order and equally far apart.
    """

    root: Root
    items: tuple[Item, ...]
    notes: tuple[str, ...] = ()
    film: bool = False

    @property
    def labelled(self) -> bool:
        """Whether every sample has a label."""
        return all(item.truth is not None for item in self.items)


def load_folder(root: Root, labels: Labels | None, files: Files = IMAGES) -> Dataset:
    """List the samples of a folder and find their labels; no sample is opened.

    Labels come from ``labels.csv`` or ``labels.txt`` in *root* where there is one, or from the
    ``val.txt`` of a flat folder where it has an index behind the name of a file, else from the
    folders below *root*. Samples directly in *root*, without a table, have no labels.

    Args:
        root: the folder, or its URL.
        labels: the classes of the model; None where its card has no label file. Then a label must
            be a class index.
        files: the files that are samples.

    Raises:
        DataError: the folder cannot be used; the message says why and what to do.
    """
    found = _scan(root, files)
    tables = list(found.tables)
    if len(tables) > 1:
        raise DataError(f"{root}: has both {' and '.join(tables)}; keep one")
    if tables:
        known = from_table(found.tables[tables[0]], found.paths, labels, files.noun)
    else:
        known = from_folders(root, found.paths, labels, files.noun)
    items = tuple(
        Item(name, path, known[name]) for name, path in sorted(found.paths.items()) if name in known
    )
    return Dataset(root, items, found.notes(len(items), tables))


def load_unlabelled(root: Root, files: Files = IMAGES) -> Dataset:
    """List the samples of a folder and of the folders below it, whatever their labels are.

    Raises:
        DataError: the folder cannot be read, or has no sample.
    """
    found = _scan(root, files).paths
    return Dataset(root, tuple(Item(name, path, None) for name, path in sorted(found.items())))


def list_files(root: Root, files: Files = IMAGES) -> dict[str, Where]:
    """Return where the samples of a folder and of the folders below it are by name, sorted.

    Raises:
        DataError: the folder cannot be read, or has no sample.
    """
    return dict(sorted(_scan(root, files).paths.items()))


def subset(dataset: Dataset, limit: int | None, seed: int) -> Dataset:
    """Take a reproducible random part of a data set, in its own order.

    Args:
        dataset: where to take from.
        limit: how many samples, at least 1; None, or as many as there are, takes all.
        seed: of ``numpy.random.default_rng``, at least 0.

    Raises:
        DataError: the limit is below 1 or the seed below 0.
    """
    if limit is not None and limit < 1:
        raise DataError(f"limit must be at least 1, got {limit}")
    if seed < 0:
        raise DataError(f"seed must be at least 0, got {seed}")
    if limit is None or limit >= len(dataset.items):
        return dataset
    chosen = np.random.default_rng(seed).choice(len(dataset.items), size=limit, replace=False)
    items = tuple(dataset.items[index] for index in sorted(chosen))
    return replace(dataset, items=items, film=False)


def may_equal(places: Sequence[Where], items: Iterable[Item]) -> list[Item]:
    """Return the samples that may have the bytes of one of some places, by how many they are."""
    sizes = {size_of(place) for place in places}
    known = ((item, size_of(item.path)) for item in items if sizes)
    return [item for item, size in known if size is None or {size, None} & sizes]


def read(item: Item) -> Encoded:
    """Read one image and check its header.

    Raises:
        SampleError: it cannot be read, or is no image; the run carries on without it.
    """
    return read_image(item.name, item.path)


@dataclass(slots=True)
class _Found:
    """What a folder holds: samples by name, tables of labels, and what is ignored."""

    files: Files
    paths: dict[str, Where] = field(default_factory=dict)
    tables: dict[str, Where] = field(default_factory=dict)
    hidden: int = 0
    other: int = 0
    again: int = 0

    def notes(self, taken: int, tables: list[str]) -> tuple[str, ...]:
        notes = []
        if taken < len(self.paths):
            left = self.files.count(len(self.paths) - taken)
            notes.append(f"left out {left} without a row in {tables[0]}")
        if self.other:
            notes.append(f"ignored {counted(self.other, 'file')} other than {self.files.listed}")
        if self.hidden:
            notes.append(f"ignored {counted(self.hidden, 'hidden file')}")
        if self.again:
            notes.append(f"ignored {counted(self.again, 'link')} to a folder that is there already")
        return tuple(notes)

    def walk(self, root: Path) -> None:
        """Add what is in *root* and below; a folder that links reach again is taken once.

        Raises:
            OSError: a folder cannot be read.
            DataError: two files have one name.
        """
        seen: set[str] = set()
        folders = deque([(root, "", os.path.realpath(root))])
        links = deque[tuple[Path, str, str]]()
        while folders or links:
            folder, prefix, real = (folders or links).popleft()
            if real in seen:
                self.again += 1
                continue
            seen.add(real)
            for path, plain in _entries(folder):
                inside = f"{prefix}{plain}/"
                if plain.startswith("."):
                    self.hidden += 1
                elif not os.path.isdir(path):
                    self._file(path, prefix, plain)
                elif os.path.islink(path):
                    links.append((path, inside, os.path.realpath(path)))
                else:
                    folders.append((path, inside, os.path.join(real, path.name)))

    def _file(self, path: Path, prefix: str, plain: str) -> None:
        # A link stays, even a dangling one: its sample is skipped and listed when it is read.
        if self.files.has(path) and (os.path.isfile(path) or os.path.islink(path)):
            name = prefix + plain
            if name in self.paths:
                raise DataError(
                    f"{path.parent}: two files would be called {name!r}, as a name that is not "
                    "UTF-8 is written with backslashes; rename one"
                )
            self.paths[name] = path
        else:
            self._other(path, prefix + plain)

    def _other(self, place: Where, name: str) -> None:
        self.tables |= {name: place} if name in TABLES else {}
        self.other += name not in TABLES

    def settle(self) -> None:
        """Count a ``val.txt`` that is no table of labels as another file."""
        if CAFFE in self.tables and (
            len(self.tables) > 1 or not is_caffe(self.tables[CAFFE], self.paths)
        ):
            del self.tables[CAFFE]
            self.other += 1

    def listed(self, url: str) -> None:
        """Add what is behind a URL and below.

        Raises:
            DataError: it cannot be listed.
        """
        for name, place in remote.listed(url).items():
            if any(part.startswith(".") for part in name.split("/")):
                self.hidden += 1
            elif PurePosixPath(name).suffix.lower() in self.files.suffixes:
                self.paths[name] = place
            else:
                self._other(place, name)


def _scan(root: Root, files: Files) -> _Found:
    """List a folder and those below it.

    Raises:
        DataError: it cannot be read, or has no sample.
    """
    found = _Found(files)
    if isinstance(root, str):
        found.listed(root)
    elif not root.exists():
        raise DataError(f"{root}: there is no such folder")
    elif not root.is_dir():
        raise DataError(f"{root}: is a file; give the folder that holds the {files.noun}s")
    else:
        try:
            found.walk(root)
        except OSError as error:
            where = error.filename or root
            raise DataError(f"{where}: cannot be read: {error.strerror or error}") from error
    found.settle()
    if not found.paths:
        raise DataError(f"{root}: has no {files.noun}; expected {files.listed} files")
    return found


def _entries(folder: Path) -> list[tuple[Path, str]]:
    """What is in a folder, in order: each path, and its name as records and reports have it."""
    with os.scandir(folder) as opened:
        return [
            (Path(entry.path), os.fsencode(entry.name).decode("utf-8", "backslashreplace"))
            for entry in sorted(opened, key=lambda one: one.name)
        ]
