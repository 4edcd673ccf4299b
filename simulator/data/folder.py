"""Samples and data sets, and those of a folder: labelled by folder names, by a table, or not."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from simulator.contract.encoded import Encoded, read_image
from simulator.contract.image_formats import suffixes
from simulator.data.address import Root
from simulator.data.folder_labels import CAFFE, TABLES, from_folders, from_table, is_caffe, label_of
from simulator.data.labels import Labels, Read, Written
from simulator.data.listing import Listing, list_below
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

    def has(self, name: str) -> bool:
        """Whether a file is a sample, by its name."""
        return posixpath.splitext(name)[1].lower() in self.suffixes

    @property
    def listed(self) -> str:
        """The suffixes, for messages."""
        return ", ".join(sorted(self.suffixes))


IMAGES = Files(suffixes(), "image")


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
class Film:
    """A video: how many samples are its frames, and how many a second has, where it is known."""

    frames: int
    rate: float | None


@dataclass(frozen=True, slots=True)
class Dataset:
    """The samples of one folder, sorted by name.

    Attributes:
        root: the folder, or its URL.
        items: the samples, at least one.
        notes: what was left out and why, one sentence each.
        films: the videos whose frames they are, one video after the other, each in order and its
            frames equally far apart; empty where they are not.
    """

    root: Root
    items: tuple[Item, ...]
    notes: tuple[str, ...] = ()
    films: tuple[Film, ...] = ()

    def frames(self) -> Iterator[tuple[Film, tuple[Item, ...]]]:
        """Yield each video with its frames."""
        items = iter(self.items)
        for film in self.films:
            yield film, tuple(islice(items, film.frames))

    @property
    def film(self) -> bool:
        """Whether they are frames of one video, in order and equally far apart."""
        return len(self.films) == 1

    @property
    def rate(self) -> float | None:
        """How many frames a second of that one video has, where that is known."""
        return self.films[0].rate if self.film else None

    @property
    def labelled(self) -> bool:
        """Whether every sample has a label."""
        return all(item.truth is not None for item in self.items)


Truths = Mapping[str, Any]
"""What people have annotated, by the name of the sample."""


def load_folder(root: Root, labels: Labels | None, files: Files = IMAGES) -> Dataset:
    """List the samples of a folder and find their labels; no sample is opened.

    Labels come from ``labels.csv`` or ``labels.txt`` in *root* where there is one, or from the
    ``val.txt`` of a flat folder where it has an index behind the name of a file, else from the
    folders below *root*. Samples directly in *root*, without a table, have no labels.

    Args:
        root: the folder, its URL, or the path of one sample.
        labels: the classes of the model; None where its card has no label file. Then a label must
            be a class index.
        files: the files that are samples.

    Raises:
        DataError: the folder cannot be used; the message says why and what to do.
    """
    found = listed(root, files)
    paths = samples_in(root, files, found)
    tables = [name for name in TABLES if name in found.paths]
    if CAFFE in tables and (len(tables) > 1 or not is_caffe(found.paths[CAFFE], paths)):
        tables.remove(CAFFE)
    if len(tables) > 1:
        raise DataError(f"{root}: has both {' and '.join(tables)}; keep one")
    if tables:
        known: Truths = from_table(found.paths[tables[0]], paths, files.noun)
    else:
        known = from_folders(root, paths, labels, files.noun)
    items = tuple(Item(name, paths[name], known[name]) for name in sorted(known))
    left = len(paths) - len(items)
    other = len(found.paths) + found.odd - len(paths) - len(tables)
    counts = (
        (left, f"left out {files.count(left)} without a row in {', '.join(tables)}"),
        (other, f"ignored {counted(other, 'file')} other than {files.listed}"),
        (found.hidden, f"ignored {counted(found.hidden, 'hidden file')}"),
        (found.again, f"ignored {counted(found.again, 'link')} to a folder that is there already"),
    )
    whole = Dataset(root, items, tuple(note for count, note in counts if count))
    return read_truths(whole, partial(label_of, labels=labels))


def listed(root: Root, files: Files) -> Listing:
    """List a folder; of the path of one sample that sample alone."""
    if isinstance(root, Path) and files.has(root.name) and root.is_file():
        return Listing({root.name: root})
    return list_below(root, files.noun)


def samples_in(root: Root, files: Files, found: Listing) -> dict[str, Where]:
    """Return the samples of a folder by name.

    Raises:
        DataError: there is none.
    """
    if paths := {name: path for name, path in found.paths.items() if files.has(name)}:
        return paths
    raise DataError(f"{root}: has no {files.noun}; expected {files.listed} files")


def read_truths(dataset: Dataset, read: Read) -> Dataset:
    """Return a data set with the truths that its texts say; each text is read once.

    Raises:
        DataError: a text is no truth of the task.
    """
    first: dict[str, Written] = {}
    for item in dataset.items:
        if isinstance(item.truth, Written):
            first.setdefault(item.truth.text, item.truth)
    said = {}
    for text, written in first.items():
        try:
            said[text] = read(text, written.where)
        except DataError as error:
            raise DataError(f"{error}{written.hint}") from None
    items = tuple(
        Item(one.name, one.path, said[one.truth.text]) if isinstance(one.truth, Written) else one
        for one in dataset.items
    )
    return replace(dataset, items=items)


def with_truths(dataset: Dataset, truths: Truths) -> Dataset:
    """Return the samples that have a truth by their name, with it."""
    items = tuple(
        Item(item.name, item.path, truths[item.name])
        for item in dataset.items
        if item.name in truths
    )
    whole = len(items) == len(dataset.items)
    return replace(dataset, items=items, films=dataset.films if whole else ())


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
    return replace(dataset, items=items, films=())


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
