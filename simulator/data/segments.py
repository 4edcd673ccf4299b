"""Where somebody speaks: a table with a line ``NAME,BEGIN,END`` in seconds for each stretch."""

from __future__ import annotations

import csv
import io
import math
from typing import ClassVar

from simulator.data.folder import Dataset, Files, Item, load_unlabelled
from simulator.data.format import DataCard, DataFormat, DataSpec
from simulator.data.labels import Labels, read_text
from simulator.errors import DataError


class SegmentsSpec(DataSpec):
    """A card of sounds with a table of speech.

    Attributes:
        files: the folder of the sounds; one without a line in the table is silent.
        segments: the table.
    """

    files: str
    segments: str


class Segments(DataFormat):
    """Stretches of speech in one table."""

    task = "voice_activity"
    format: ClassVar[str] = "segments"
    Spec: ClassVar[type[DataSpec]] = SegmentsSpec

    def load(self, card: DataCard, labels: Labels | None, files: Files) -> Dataset:
        """Return all sounds of the folder with their stretches of speech."""
        table, folder = card.place("segments"), load_unlabelled(card.root("files"), files)
        known: dict[str, list[tuple[float, float]]] = {one.name: [] for one in folder.items}
        for number, row in enumerate(csv.reader(io.StringIO(read_text(table))), 1):
            if row:
                name, begin, end = _checked(row, f"{table}:{number}")
                if name not in known:
                    raise DataError(f"{table}:{number}: there is no {name!r} in {folder.root}")
                known[name].append((begin, end))
        items = tuple(Item(one.name, one.path, known[one.name]) for one in folder.items)
        return Dataset(folder.root, items)


def _checked(row: list[str], where: str) -> tuple[str, float, float]:
    try:
        name, *ends = row
        begin, end = map(float, ends)
    except ValueError:
        begin = end = math.nan
    if not 0 <= begin < end < math.inf:
        raise DataError(f"{where}: NAME,BEGIN,END in seconds expected, got {','.join(row):.80}")
    return name.strip(), begin, end


SEGMENTS = Segments()
