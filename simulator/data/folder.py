"""Folders of images, with labels in folder names, in a table, or nowhere."""

from __future__ import annotations

import csv
import io
import os
import posixpath
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from simulator.contract.encoded import Encoded, inspect
from simulator.data.labels import Labels, as_index, read_text
from simulator.errors import DataError, SampleError

SUFFIXES = frozenset({".jpg", ".jpeg", ".png"})
TABLES = ("labels.csv", "labels.txt")
_FILE_COLUMNS = ("file", "filename", "image", "path")
_LABEL_COLUMNS = ("label", "index", "class", "wnid")
_NAMED = 5
"""How many of many culprits an error names."""


@dataclass(frozen=True, slots=True)
class Item:
    """One image file.

    Attributes:
        name: its path below the data folder, with ``/`` on every system.
        path: where it is.
        truth: what people have annotated; a class index, or what the task makes of it; None where
            nobody says.
    """

    name: str
    path: Path
    truth: Any


@dataclass(frozen=True, slots=True)
class Dataset:
    """The images of one folder, sorted by name.

    Attributes:
        root: the folder.
        items: the images, at least one.
        notes: what was left out and why, one sentence each.
    """

    root: Path
    items: tuple[Item, ...]
    notes: tuple[str, ...] = ()

    @property
    def labelled(self) -> bool:
        """Whether every image has a label."""
        return all(item.truth is not None for item in self.items)


def load_folder(root: Path, labels: Labels | None) -> Dataset:
    """List the images of a folder and find their labels; no image is opened.

    Labels come from ``labels.csv`` or ``labels.txt`` in *root* where there is one, else from the
    folders below *root*; images directly in *root* and no table mean: no labels.

    Args:
        root: the folder.
        labels: the classes of the model; None where its card has no label file. Then a label must
            be a class index.

    Raises:
        DataError: the folder cannot be used; the message says why and what to do.
    """
    try:
        found = _scan(root)
        tables = [name for name in TABLES if (root / name).is_file()]
    except OSError as error:
        where = error.filename or root
        raise DataError(f"{where}: cannot be read: {error.strerror or error}") from error
    if not found.images:
        raise DataError(f"{root}: no image in it; expected {', '.join(sorted(SUFFIXES))} files")
    if len(tables) > 1:
        raise DataError(f"{root}: both {' and '.join(tables)} are there; keep one")
    if tables:
        known = _from_table(root / tables[0], found.images, labels)
    else:
        known = _from_folders(root, found.images, labels)
    items = tuple(
        Item(name, path, known[name])
        for name, path in sorted(found.images.items())
        if name in known
    )
    return Dataset(root, items, found.notes(len(items), tables))


def load_unlabelled(root: Path) -> Dataset:
    """List the images of a folder and of the folders below it, whatever their labels are.

    Raises:
        DataError: the folder cannot be read, or has no image.
    """
    try:
        names = sorted(_scan(root).images)
    except OSError as error:
        raise DataError(f"{error.filename or root}: {error.strerror}") from error
    if not names:
        raise DataError(f"{root}: there is no image in it; .jpg, .jpeg and .png are taken")
    return Dataset(root, tuple(Item(name, root / name, None) for name in names))


def subset(dataset: Dataset, limit: int | None, seed: int) -> Dataset:
    """Take a reproducible random part of a data set, in its own order.

    Args:
        dataset: where to take from.
        limit: how many images, at least 1; None, or as many as there are, takes all.
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
    return replace(dataset, items=tuple(dataset.items[index] for index in sorted(chosen)))


def read(item: Item) -> Encoded:
    """Read one image file and check its header.

    Raises:
        SampleError: it cannot be read, or is no image; the run carries on without it.
    """
    try:
        data = item.path.read_bytes()
    except OSError as error:
        raise SampleError(f"cannot be read: {error.strerror or error}") from error
    return inspect(item.name, data)


@dataclass(slots=True)
class _Found:
    """What lies in a folder: images by name, and what is ignored."""

    images: dict[str, Path] = field(default_factory=dict)
    hidden: int = 0
    other: list[str] = field(default_factory=list)

    def notes(self, taken: int, tables: list[str]) -> tuple[str, ...]:
        notes = []
        if taken < len(self.images):
            left = _plural(len(self.images) - taken, "image")
            notes.append(f"{left} without a row in {tables[0]} left out")
        if self.other:
            endings = ", ".join(sorted(SUFFIXES))
            notes.append(f"{_plural(len(self.other), 'file')} ignored: not {endings}")
        if self.hidden:
            notes.append(f"{self.hidden} hidden ignored: names with a leading dot")
        return tuple(notes)


def _plural(count: int, noun: str) -> str:
    return f"{count} {noun}" + ("" if count == 1 else "s")


def _scan(root: Path) -> _Found:
    if not root.exists():
        raise DataError(f"{root}: there is no such folder")
    if not root.is_dir():
        raise DataError(f"{root}: is a file; give the folder that holds the images")
    found = _Found()
    _walk(root, "", frozenset(), found)
    return found


def _walk(folder: Path, prefix: str, above: frozenset[str], found: _Found) -> None:
    """Add what lies in *folder* and below; a link back to a folder above is not followed."""
    real = os.path.realpath(folder)
    if real in above:
        return
    with os.scandir(folder) as opened:
        entries = list(opened)
    for entry in entries:
        path = Path(entry.path)
        # A file name need not be UTF-8, but records and reports are.
        plain = os.fsencode(entry.name).decode("utf-8", "backslashreplace")
        if plain.startswith("."):
            found.hidden += 1
        elif os.path.isdir(path):
            _walk(path, f"{prefix}{plain}/", above | {real}, found)
        elif path.suffix.lower() in SUFFIXES and (os.path.isfile(path) or os.path.islink(path)):
            # A dangling link stays: the sample is skipped, counted and listed when it is read.
            found.images[prefix + plain] = path
        elif prefix or plain not in TABLES:
            found.other.append(prefix + plain)


def _from_folders(
    root: Path, images: Mapping[str, Path], labels: Labels | None
) -> dict[str, int | None]:
    """Labels by the first folder of each name; None for all where the folder is flat."""
    folders = sorted({name.split("/")[0] for name in images if "/" in name})
    flat = [name for name in images if "/" not in name]
    if not folders:
        return dict.fromkeys(images)
    if flat:
        raise DataError(
            f"{root}: images both directly in it ({len(flat)}) and in folders"
            f" ({_some(folders)}); give one folder a class, or one flat folder"
        )
    if labels is None:
        known = {folder: as_index(folder) for folder in folders}
        strange = [folder for folder, index in known.items() if index is None or index < 0]
        problem = f"{_some(strange)}; without a label file in the model card, write the index"
    else:
        known = {folder: labels.resolve(folder) for folder in folders if labels.knows(folder)}
        strange = [folder for folder in folders if folder not in known]
        # Looking for what was meant is slow, so only for those that are named.
        reasons = [labels.why_not(folder) for folder in strange[:_NAMED]] + strange[_NAMED:]
        problem = f"{_some(reasons)}; write {labels.forms}"
    if strange:
        if len(strange) == len(folders):
            problem += "; or give the folder that holds the images itself"
        raise DataError(
            f"{root}: {len(strange)} of {_plural(len(folders), 'class folder')} unmatched:"
            f" {problem}"
        )
    return {name: known[name.split("/")[0]] for name in images}


def _from_table(
    table: Path, images: Mapping[str, Path], labels: Labels | None
) -> dict[str, int | None]:
    """Labels by the rows of labels.csv or labels.txt; images without a row are not in it."""
    rows = _csv_rows(table) if table.suffix == ".csv" else _txt_rows(table)
    known: dict[str, int | None] = {}
    lines: dict[str, int] = {}
    missing = []
    for line, file, text in rows:
        name = posixpath.normpath(file)
        if name in lines:
            raise DataError(
                f"{table}:{line}: {name!r} already has a row, in line {lines[name]}; keep one"
            )
        lines[name] = line
        if name in images:
            known[name] = _label(text, labels, f"{table}:{line}")
        else:
            missing.append(f"{file!r} (line {line})")
    if missing:
        raise DataError(
            f"{table}: {_plural(len(missing), 'row')} without an image: {_some(missing)};"
            f" write paths relative to {table.parent}, or remove the rows"
        )
    if not known:
        raise DataError(f"{table}: no row in it; write one a labelled image, or remove the file")
    return known


def _label(text: str, labels: Labels | None, where: str) -> int:
    if labels is not None:
        try:
            return labels.resolve(text)
        except DataError as error:
            raise DataError(f"{where}: {error}") from None
    index = as_index(text)
    if index is None or index < 0:
        raise DataError(
            f"{where}: class {text!r}: the model card has no label file, so write the class index"
        )
    return index


def _csv_rows(table: Path) -> Iterator[tuple[int, str, str]]:
    """(line, file, label) of each row below the header."""
    reader = csv.reader(io.StringIO(read_text(table), newline=""), strict=True)
    try:
        header = [column.strip().lower() for column in next(reader, [])]
        file = _column(table, header, "file", _FILE_COLUMNS)
        label = _column(table, header, "label", _LABEL_COLUMNS)
        for row in reader:
            if not any(cell.strip() for cell in row):
                continue
            if len(row) != len(header):
                raise DataError(
                    f"{table}:{reader.line_num}: {len(row)} columns, the header has {len(header)}"
                )
            yield reader.line_num, row[file].strip(), row[label].strip()
    except csv.Error as error:
        raise DataError(f"{table}:{reader.line_num}: not comma-separated text: {error}") from error


def _column(table: Path, header: list[str], what: str, offered: tuple[str, ...]) -> int:
    found = [index for index, column in enumerate(header) if column in offered]
    if len(found) == 1:
        return found[0]
    if found:
        several = ", ".join(header[index] for index in found)
        raise DataError(f"{table}:1: several {what} columns ({several}); keep one")
    raise DataError(
        f"{table}:1: no {what} column in the header '{','.join(header)}'; the first line must name"
        f" one of {', '.join(offered)}, separated by commas"
    )


def _txt_rows(table: Path) -> Iterator[tuple[int, str, str]]:
    """(line, file, label) of each line that is not blank; the label is the last field."""
    for number, line in enumerate(read_text(table).split("\n"), 1):
        if not line.strip():
            continue
        parts = line.strip().rsplit("\t" if "\t" in line.strip() else None, 1)
        if len(parts) != 2:
            raise DataError(f"{table}:{number}: expected 'file label', got {line.strip()!r}")
        yield number, parts[0].strip(), parts[1].strip()


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more
