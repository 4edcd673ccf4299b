"""A label kind of Acme's own: a table of the grades of files, wherever these are.

The data card says ``task: acme_wear``, ``format: table``, ``files: FOLDER`` and
``grades: FILE.csv``; the table has a line ``NAME,GRADE`` for each file.
"""

from __future__ import annotations

import csv
from typing import ClassVar

from simulator.data.format import DataCard, DataSpec
from simulator.data.label_kind import LabelKind, Samples
from simulator.data.labels import Labels
from simulator.errors import DataError


class TableSpec(DataSpec):
    """A card of such a data set."""

    files: str
    grades: str


class Table(LabelKind):
    """Grades by file name."""

    Spec: ClassVar[type[TableSpec]] = TableSpec
    none = "grades: grades none of the files in"

    def truths(self, samples: Samples, card: DataCard, labels: Labels | None) -> dict[str, int]:
        """Return the grades of the files that have one."""
        table = card.file("grades")
        with table.open(newline="") as lines:
            rows = [row for row in csv.reader(lines) if row]
        if bad := [row for row in rows if len(row) != 2 or not row[1].isdigit()]:
            raise DataError(f"{table}: NAME,GRADE expected, got {','.join(bad[0])}")
        return {name: int(grade) for name, grade in rows if name in samples.paths}


TABLE = Table()
