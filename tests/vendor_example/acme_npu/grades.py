"""A data format of Acme's own: a folder of files, and a table of their grades.

The data card says ``task: acme_wear``, ``format: table``, ``files: FOLDER`` and
``grades: FILE.csv``; the table has a line ``NAME,GRADE`` for each file.
"""

from __future__ import annotations

import csv
from typing import ClassVar

from simulator.data.folder import Dataset, Files, Item, load_unlabelled
from simulator.data.format import DataCard, DataFormat, DataSpec
from simulator.data.labels import Labels
from simulator.errors import DataError


class TableSpec(DataSpec):
    """A card of such a data set."""

    files: str
    grades: str


class Table(DataFormat):
    """Grades by file name."""

    task = "acme_wear"
    format = "table"
    Spec: ClassVar[type[TableSpec]] = TableSpec

    def load(self, card: DataCard, labels: Labels | None, files: Files) -> Dataset:
        """Return the files that have a grade."""
        table, folder = card.file("grades"), load_unlabelled(card.file("files"), files)
        with table.open(newline="") as lines:
            rows = [row for row in csv.reader(lines) if row]
        if bad := [row for row in rows if len(row) != 2 or not row[1].isdigit()]:
            raise DataError(f"{table}: NAME,GRADE expected, got {','.join(bad[0])}")
        grades = {name: int(grade) for name, grade in rows}
        items = tuple(
            Item(item.name, item.path, grades[item.name])
            for item in folder.items
            if item.name in grades
        )
        if not items:
            raise DataError(f"{table}: grades none of the files in {folder.root}")
        return Dataset(folder.root, items)


TABLE = Table()
