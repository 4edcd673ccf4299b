"""The cells of a table as a page draws them: a bar or a shade beside a figure, without a script."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite

from simulator.report.table import Bar, Cell, Column, Table, has_marks, written


@dataclass(frozen=True, slots=True)
class Drawn:
    """A figure and its drawing; places are percent of the width that a bar may take.

    Attributes:
        words: the number.
        kind: ``good`` or ``bad``; empty: neither.
        heat: how strongly the cell is shaded, 0 to 1; None: it is not.
        bar: where the bar begins, and how wide it is; None: there is none.
        zero: where 0 is.
        interval: where the interval begins, and how wide it is; None: there is none.
        clear: see :class:`simulator.report.table.Bar`.
    """

    words: str
    kind: str
    heat: float | None = None
    bar: tuple[float, float] | None = None
    zero: float = 0.0
    interval: tuple[float, float] | None = None
    clear: bool = True


def shown(table: Table) -> list[list[Cell | Drawn]]:
    """Return the cells of a table; the bars of a column have one scale, and so have its shades.

    The cells of all columns with ``heat`` have one scale too, as in a matrix.
    """
    figures = [
        abs(cell)
        for row in table.rows
        for cell, column in zip(row, table.heads, strict=True)
        if column.heat and isinstance(cell, float) and isfinite(cell)
    ]
    most = max(figures, default=0.0) or 1.0
    columns = zip(table.heads, zip(*table.rows, strict=True), strict=bool(table.rows))
    found = [_column(column, cells, most) for column, cells in columns]
    return [list(row) for row in zip(*found, strict=True)]


def _column(column: Column, cells: Sequence[Cell], most: float) -> list[Cell | Drawn]:
    bars = [cell for cell in cells if isinstance(cell, Bar)]
    places = [0.0, *(place for bar in bars for place in (bar.base, _end(bar), *_interval(bar)))]
    low, wide = min(places), (max(places) - min(places)) or 1.0

    def between(start: float, end: float) -> tuple[float, float]:
        first, last = sorted(100 * (place - low) / wide for place in (start, end))
        return round(first, 2), round(last - first, 2)

    def drawn(cell: Cell) -> Cell | Drawn:
        words = written(cell, column)
        if isinstance(cell, Bar):
            value, ends = _end(cell) - cell.base, _interval(cell)
            return Drawn(
                words, _kind(column.better * value), None, between(cell.base, _end(cell)),
                between(0, 0)[0], between(*ends) if ends else None, cell.clear,
            )  # fmt: skip
        if column.heat and isinstance(cell, float) and isfinite(cell):
            return Drawn(words, _kind(column.better * cell), round(abs(cell) / most, 3))
        return cell if has_marks(cell) else words

    return [drawn(cell) for cell in cells]


def _end(bar: Bar) -> float:
    return bar.base + (bar.value if bar.value is not None and isfinite(bar.value) else 0.0)


def _interval(bar: Bar) -> tuple[float, ...]:
    known = tuple(end for end in bar.ci95 if end is not None and isfinite(end))
    return known if len(known) > 1 else ()


def _kind(value: float) -> str:
    return "good" if value > 0 else "bad" if value < 0 else ""
