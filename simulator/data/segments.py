"""Where somebody speaks: a table with a line ``NAME,BEGIN,END`` in seconds for each stretch."""

from __future__ import annotations

import csv
import io
import math
from typing import ClassVar

from simulator.data.format import DataCard, DataSpec
from simulator.data.label_kind import LabelKind, Samples
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


class Segments(LabelKind):
    """Stretches of speech in one table."""

    Spec: ClassVar[type[DataSpec]] = SegmentsSpec

    def truths(
        self, samples: Samples, card: DataCard, labels: Labels | None
    ) -> dict[str, list[tuple[float, float]]]:
        """Return the stretches of speech of all sounds."""
        table = card.place("segments")
        known: dict[str, list[tuple[float, float]]] = {name: [] for name in samples.paths}
        for number, row in enumerate(csv.reader(io.StringIO(read_text(table))), 1):
            if row:
                name, begin, end = _checked(row, f"{table}:{number}")
                if name not in known:
                    raise DataError(f"{table}:{number}: there is no {name!r} in {samples.root}")
                known[name].append((begin, end))
        return known


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
