"""Labels of the samples of a folder: from the names of the folders in it, or from a table."""

from __future__ import annotations

import csv
import io
import posixpath
from collections.abc import Iterator, Mapping

from simulator.data.address import Root
from simulator.data.labels import Labels, Written, as_index, numbered_lines, read_text
from simulator.data.tally import NAMED, counted, some
from simulator.errors import DataError
from simulator.places import Where

CAFFE = "val.txt"
"""The table that Caffe's ``get_ilsvrc_aux.sh`` brings: a file and a class index in each line."""
TABLES = ("labels.csv", "labels.txt", CAFFE)
_FILE_COLUMNS = ("file", "filename", "image", "path")
_LABEL_COLUMNS = ("label", "index", "class", "wnid")


def from_folders(
    root: Root, samples: Mapping[str, Where], labels: Labels | None, noun: str
) -> dict[str, int | None]:
    """Return the labels that folder names give, or None for all samples of a flat folder.

    Args:
        root: the folder.
        samples: by their names below it; the first folder of a name is its class.
        labels: the classes of the model; None: folders are called by class indices.
        noun: one sample, in the singular.

    Raises:
        DataError: a folder is no class of the model.
    """
    folders = sorted({name.split("/")[0] for name in samples if "/" in name})
    flat = [name for name in samples if "/" not in name]
    if not folders:
        return dict.fromkeys(samples)
    if flat:
        what = f"{counted(len(flat), noun)} directly in it and others in folders ({some(folders)})"
        raise DataError(f"{root}: {what}; use one folder for each class, or one flat folder")
    if labels is None:
        known = {folder: as_index(folder) for folder in folders}
        strange = [folder for folder, index in known.items() if index is None or index < 0]
        problem = f"{some(strange)}; the model card has no label file, so write the class index"
    else:
        known = {folder: labels.resolve(folder) for folder in folders if labels.knows(folder)}
        strange = [folder for folder in folders if folder not in known]
        # Looking for what was meant is slow, so only for those that are named.
        reasons = [labels.why_not(folder) for folder in strange[:NAMED]] + strange[NAMED:]
        problem = f"{some(reasons)}; write {labels.forms}"
    if strange:
        if len(strange) == len(folders):
            problem += f"; or give the folder that holds the {noun}s itself"
        count = f"{len(strange)} of {counted(len(folders), 'class folder')}"
        raise DataError(f"{root}: no class of the model for {count}: {problem}")
    return {name: known[name.split("/")[0]] for name in samples}


def from_table(table: Where, samples: Mapping[str, Where], noun: str) -> dict[str, Written]:
    """Return the labels that a table of :data:`TABLES` gives; some samples may have none.

    Args:
        table: the file.
        samples: by their names below its folder.
        noun: one sample, in the singular.

    Raises:
        DataError: a row cannot be read, or is of no sample; as ``file:line: what``.
    """
    known: dict[str, Written] = {}
    texts: dict[str, Written] = {}
    lines: dict[str, int] = {}
    missing = []
    for line, file, text in rows_of(table):
        name = posixpath.normpath(file)
        if name in lines:
            why = f"already has a row in line {lines[name]}; keep one"
            raise DataError(f"{table}:{line}: {name!r} {why}")
        lines[name] = line
        if name in samples:
            known[name] = texts.setdefault(text, Written(text, f"{table}:{line}"))
        else:
            missing.append(f"{file!r} (line {line})")
    if missing:
        remedy = "write paths relative to the folder of the table, or remove the rows"
        count = counted(len(missing), "row")
        raise DataError(f"{table}: {count} without a file: {some(missing)}; {remedy}")
    if not known:
        remedy = f"write one for each labelled {noun}, or remove the file"
        raise DataError(f"{table}: has no row; {remedy}")
    return known


def rows_of(table: Where) -> Iterator[tuple[int, str, str]]:
    """Yield line, file and label of each row of a table.

    Raises:
        DataError: it cannot be read, or a row is malformed.
    """
    return _csv_rows(table) if table.suffix.lower() == ".csv" else _txt_rows(table)


def is_caffe(table: Where, samples: Mapping[str, Where]) -> bool:
    """Whether a ``val.txt`` is one of Caffe's: of files of a flat folder, each with an index.

    Other data sets have a file of this name that lists a part of them.
    """
    try:
        words = read_text(table).lstrip().partition("\n")[0].split()
    except DataError:
        return False
    flat = not any("/" in name for name in samples)
    return flat and len(words) == 2 and words[0] in samples and as_index(words[1]) is not None


def label_of(text: str, where: str, labels: Labels | None) -> int:
    """Return the class that a word names.

    Args:
        text: a class of the model, or its index.
        where: begins the message.
        labels: the classes of the model; None: an index is expected.

    Raises:
        DataError: it is no class of the model.
    """
    if labels is not None:
        try:
            return labels.resolve(text)
        except DataError as error:
            raise DataError(f"{where}: {error}") from None
    index = as_index(text)
    if index is None or index < 0:
        why = "the model card has no label file, so write the class index"
        raise DataError(f"{where}: class {text!r}: {why}")
    return index


def _csv_rows(table: Where) -> Iterator[tuple[int, str, str]]:
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
                found = f"{len(row)} columns, the header has {len(header)}"
                raise DataError(f"{table}:{reader.line_num}: {found}")
            yield reader.line_num, row[file].strip(), row[label].strip()
    except csv.Error as error:
        raise DataError(f"{table}:{reader.line_num}: not comma-separated text: {error}") from error


def _column(table: Where, header: list[str], what: str, offered: tuple[str, ...]) -> int:
    found = [index for index, column in enumerate(header) if column in offered]
    if len(found) == 1:
        return found[0]
    if found:
        several = ", ".join(header[index] for index in found)
        raise DataError(f"{table}:1: several {what} columns ({several}); keep one")
    must = f"the first line must name one of {', '.join(offered)}, separated by commas"
    raise DataError(f"{table}:1: no {what} column in the header {','.join(header)!r}; {must}")


def _txt_rows(table: Where) -> Iterator[tuple[int, str, str]]:
    """(line, file, label) of each line that is not blank; the label is the last field."""
    for number, line in numbered_lines(table):
        parts = line.strip().rsplit("\t" if "\t" in line.strip() else None, 1)
        if len(parts) != 2:
            raise DataError(f"{table}:{number}: expected 'file label', got {line.strip()!r}")
        yield number, parts[0].strip(), parts[1].strip()
