"""Classes in a table that is not in the folder of the samples; and those of ImageNet's devkit."""

from __future__ import annotations

import re
from pathlib import Path
from typing import ClassVar

from pydantic import Field

from simulator.data import remote
from simulator.data.address import Root, bare, beside, safe
from simulator.data.folder import Dataset, Files, Item, list_files
from simulator.data.folder_labels import from_table, label_of, rows_of
from simulator.data.format import DataCard, DataFormat, DataSpec
from simulator.data.labels import Labels, as_index, read_text
from simulator.data.matlab import table
from simulator.errors import DataError, one_line
from simulator.places import Where, read

ENDINGS = (".csv", ".txt")
"""A table is known by these."""
MATLAB = 2**24
"""Bytes of the devkit's ``meta.mat`` at most, packed and unpacked; it has 0.2 MB."""
_NUMBER = re.compile(r"(?:.*/)?ILSVRC\d{4}_val_(\d{8})\.\w+")
_WNID = re.compile(r"n\d{8}")


class TableSpec(DataSpec):
    """A card of samples whose classes are in a table."""

    files: str = Field(description="the folder of the samples, or its URL")
    table: str = Field(
        description="labels.csv, labels.txt or Caffe's val.txt, with paths below the folder"
    )


class Table(DataFormat):
    """Classes in a table.

    Args:
        task: the task that they are for.
    """

    format: ClassVar[str] = "table"
    Spec: ClassVar[type[DataSpec]] = TableSpec

    def __init__(self, task: str) -> None:
        self.task = task

    def load(self, card: DataCard, labels: Labels | None, files: Files) -> Dataset:
        """Open the samples that the table has; see :func:`load_table`."""
        return load_table(card.root("files"), card.place("table"), labels, files)


class DevkitSpec(DataSpec):
    """A card of the validation images of ILSVRC, as its archives bring them."""

    files: str = Field(description="the folder with ILSVRC2012_val_00000001.JPEG, or its URL")
    truth: str = Field(description="ILSVRC2012_validation_ground_truth.txt of the devkit")
    synsets: str = Field(description="the devkit's meta.mat or map_clsloc.txt")


class Devkit(DataFormat):
    """Classes in the development kit of ILSVRC 2012."""

    task = "classification"
    format: ClassVar[str] = "ilsvrc"
    Spec: ClassVar[type[DataSpec]] = DevkitSpec

    def load(self, card: DataCard, labels: Labels | None, files: Files) -> Dataset:
        """Open the images; see :func:`load_devkit`."""
        return load_devkit(
            card.root("files"), card.place("truth"), card.place("synsets"), labels, files
        )


CLASSIFICATION, AUDIO_CLASSIFICATION = Table("classification"), Table("audio_classification")
ILSVRC = Devkit()


def is_table(root: Root) -> bool:
    """Whether a path or a URL is one of a table, with paths from where it is."""
    if not bare(root).lower().endswith(ENDINGS):
        return False
    return isinstance(root, str) or root.is_file()


def load_beside(table: Root, labels: Labels | None, files: Files) -> Dataset:
    """Return the samples in the folder of a table; see :func:`load_table`."""
    root = beside(table) if isinstance(table, str) else table.parent
    return load_table(root, remote.place(table), labels, files)


def load_table(root: Root, table: Where, labels: Labels | None, files: Files) -> Dataset:
    """Return the samples of a folder that a table gives classes.

    Behind a URL nothing is listed, as web servers need not: the table says which samples there are.

    Args:
        root: the folder, or its URL.
        table: see :func:`simulator.data.folder_labels.from_table`.
        labels: the classes of the model.
        files: the files of a folder that are samples.

    Raises:
        DataError: the table or the folder cannot be used.
    """
    if isinstance(root, str):
        paths = {
            name: remote.inside(root, name)
            for line, file, _ in rows_of(table)
            if files.has(Path(name := safe(file, f"{table}:{line}")))
        }
    else:
        paths = list_files(root, files)
    known = from_table(table, paths, labels, files.noun)
    items = tuple(Item(name, paths[name], known[name]) for name in sorted(known))
    left = len(paths) - len(items)
    notes = (f"left out {files.count(left)} without a row in {_last(table)}",) if left else ()
    return Dataset(root, items, notes)


def load_devkit(
    root: Root, truth: Where, synsets: Where, labels: Labels | None, files: Files
) -> Dataset:
    """Return ILSVRC's validation images, with the classes of its development kit.

    Line n of the truth is the ILSVRC2012_ID of the image with number n; the other file says which
    WordNet id that is. These ids are in another order than networks' classes.

    Args:
        root: the folder of the images, or its URL, which is not listed.
        truth: ``ILSVRC2012_validation_ground_truth.txt``.
        synsets: ``meta.mat``, or a text like ``map_clsloc.txt``.
        labels: the classes of the model, with WordNet ids.
        files: the files of a folder that are images.

    Raises:
        DataError: a file is not what the devkit has, or the model's labels have no WordNet ids.
    """
    if labels is None or labels.wnids is None:
        raise DataError(
            f"{truth}: the devkit names classes by WordNet id, and the model's label file has "
            "none; write it as wnid<TAB>name"
        )
    wnids = _wnids(synsets)
    lines = read_text(truth).split()
    for number, text in enumerate(lines, 1):
        if as_index(text) not in wnids:
            raise DataError(f"{truth}:{number}: {text[:40]!r} is no ILSVRC2012_ID of {synsets}")
    if isinstance(root, str):
        numbered = {f"ILSVRC2012_val_{n:08}.JPEG": n for n in range(1, len(lines) + 1)}
        paths = {name: remote.inside(root, name) for name in numbered}
    else:
        paths = list_files(root, files)
        numbered = {name: int(found[1]) for name in paths if (found := _NUMBER.fullmatch(name))}
    last = max(numbered.values(), default=0)
    if not numbered or last > len(lines) or 0 in numbered.values():
        what = f"an image has the number {last}" if numbered else "no image is called so"
        raise DataError(
            f"{root}: ILSVRC2012_val_00000001.JPEG to {len(lines):08} expected, by the lines of "
            f"{truth}; {what}"
        )
    classes = {
        text: label_of(wnids[int(text)], labels, str(synsets)) for text in dict.fromkeys(lines)
    }
    items = tuple(
        Item(name, paths[name], classes[lines[number - 1]])
        for name, number in sorted(numbered.items())
    )
    left = len(paths) - len(items)
    notes = (f"left out {files.count(left)} without a number of ILSVRC",) if left else ()
    return Dataset(root, items, notes)


def _wnids(synsets: Where) -> dict[int | None, str]:
    """WordNet ids by ILSVRC2012_ID."""
    pairs = _of_matlab(synsets) if synsets.suffix.lower() == ".mat" else _of_text(synsets)
    found: dict[int | None, str] = {}
    for number, wnid in pairs:
        if found.setdefault(number, wnid) != wnid:
            raise DataError(f"{synsets}: the ILSVRC2012_ID {number} is {found[number]} and {wnid}")
    return found


def _of_text(synsets: Where) -> list[tuple[int, str]]:
    """The lines of ``map_clsloc.txt``: ``n02119789 1 kit_fox``."""
    pairs = []
    for number, line in enumerate(read_text(synsets).split("\n"), 1):
        if not line.strip():
            continue
        wnid, index = (*line.split(), "", "")[:2]
        if not _WNID.fullmatch(wnid) or (at := as_index(index)) is None:
            raise DataError(
                f"{synsets}:{number}: a WordNet id and its ILSVRC2012_ID expected, as in "
                f"'n02119789 1 kit_fox'; got {line.strip()[:60]!r}"
            )
        pairs.append((at, wnid))
    return pairs


def _of_matlab(synsets: Where) -> list[tuple[int, str]]:
    """The ``synsets`` of ``meta.mat``: ILSVRC2012_ID and WNID are their first two fields."""
    try:
        rows = table(read(synsets, MATLAB), "synsets", ("ILSVRC2012_ID", "WNID"), MATLAB)
        pairs = [(int(number), str(wnid)) for number, wnid in rows]
    except OSError as error:
        raise DataError(f"{synsets}: cannot be read: {error.strerror or error}") from error
    except (ValueError, OverflowError) as error:
        raise DataError(
            f"{synsets}: not the devkit's meta.mat, whose synsets have ILSVRC2012_ID and WNID: "
            f"{one_line(error, 200)}"
        ) from error
    strange = next((wnid for _, wnid in pairs if not _WNID.fullmatch(wnid)), None)
    if strange is not None or not pairs:
        raise DataError(f"{synsets}: {str(strange)[:40]!r} is no WordNet id")
    return pairs


def _last(where: Where) -> str:
    return Path(str(where)).name
