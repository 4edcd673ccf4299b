"""Sources of plain files: a folder of samples, a ZIP archive of one, a table that names some."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

from pydantic import Field

from simulator.data import remote
from simulator.data.address import Root, bare, beside, in_full, root_of, safe
from simulator.data.folder import Dataset, Files, Item, listed, load_folder, samples_in, with_truths
from simulator.data.folder_labels import from_table, rows_of
from simulator.data.format import DataCard, DataSpec
from simulator.data.labels import Labels
from simulator.data.source import Given, Source, samples_of
from simulator.places import Where


class Folder(Source):
    """A folder, or its URL, with the folders below it; for classes see :func:`load_folder`."""

    def open(self, root: Root, files: Files, spec: Any = None) -> Dataset:
        """Find the samples, which have no texts."""
        paths = samples_in(root, files, listed(root, files))
        return Dataset(root, tuple(Item(name, path, None) for name, path in sorted(paths.items())))

    def load_classes(self, root: Root, files: Files, labels: Labels | None) -> Dataset:
        """Find the samples and their classes; see :func:`load_folder`."""
        return load_folder(root, labels, files)


class Zip(Folder):
    """A ZIP archive, or its URL, as the folder that was packed; read in place, by fsspec."""

    def takes(self, given: Given) -> bool:
        """Whether this is the path of a ZIP archive, or its URL."""
        return given.ends_with(".zip") and "::" not in str(given.root)

    def open(self, root: Root, files: Files, spec: Any = None) -> Dataset:
        """Find the samples, which have no texts."""
        return replace(super().open(_packed(root), files), root=root)

    def load_classes(self, root: Root, files: Files, labels: Labels | None) -> Dataset:
        """Find the samples and their classes; see :func:`load_folder`."""
        return replace(super().load_classes(_packed(root), files, labels), root=root)


def _packed(root: Root) -> Root:
    """Return the URL of what is in a ZIP archive."""
    if isinstance(root, Path):
        return f"zip://::{root.resolve()}"
    return root_of(f"zip://::{in_full(root)}")


class TableSpec(DataSpec):
    """A card of samples whose labels are in a table."""

    files: str = Field(description="the folder of the samples, or its URL")
    table: str = Field(
        description="labels.csv, labels.txt or Caffe's val.txt, with paths below the folder"
    )


class Table(Source):
    """Samples that a table names, with a label each."""

    Spec: ClassVar[type[DataSpec]] = TableSpec

    def takes(self, given: Given) -> bool:
        """Whether this is the path of a table, or its URL."""
        here = isinstance(given.root, str) or given.root.is_file()
        is_sample = given.files.has(bare(given.root))
        return here and not is_sample and given.ends_with(".csv", ".txt")

    def open(self, root: Root, files: Files, spec: Any = None) -> Dataset:
        """Find the samples of a table, with paths from where it is."""
        folder = beside(root) if isinstance(root, str) else root.parent
        return load_table(folder, remote.place(root), files)

    def load(self, card: DataCard, labels: Labels | None, files: Files) -> Dataset:
        """Find the samples of a card's table."""
        return load_table(card.root("files"), card.place("table"), files)


def load_table(root: Root, table: Where, files: Files) -> Dataset:
    """Return the samples of a folder that a table labels.

    Behind a URL nothing is listed, as web servers need not: the table says which samples there are.

    Args:
        root: the folder, or its URL.
        table: see :func:`simulator.data.folder_labels.from_table`.
        files: the files of a folder that are samples.

    Raises:
        DataError: the table or the folder cannot be used.
    """
    if isinstance(root, str):
        written = (safe(file, f"{table}:{line}") for line, file, _ in rows_of(table))
        names = sorted({name for name in written if files.has(name)})
        items = tuple(Item(name, remote.inside(root, name), None) for name in names)
    else:
        items = samples_of(root, files).items
    known = from_table(table, {item.name: item.path for item in items}, files.noun)
    left = len(items) - len(known)
    where = Path(str(table)).name
    notes = (f"left out {files.count(left)} without a row in {where}",) if left else ()
    return with_truths(Dataset(root, items, notes), known)


FOLDER, TABLE, ZIP = Folder(), Table(), Zip()
