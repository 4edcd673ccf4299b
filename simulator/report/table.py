"""A table of figures and words, and the ways to write one.

A column says what its figures are counted in; how a figure of that unit is written stands here and
nowhere else. CSV has the figures as they are, for other programs.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite

from rich.markup import escape

from simulator.report import cells
from simulator.report.fitted import Fitted
from simulator.report.words import ends
from simulator.typed import Unit

NOTHING = "–"
"""In place of a figure that is not defined."""
Cell = str | float | Sequence[float | None] | None
"""A figure, both ends of an interval of points, words, or nothing."""
_FORMS: Mapping[Unit, Callable[[float], str]] = {
    Unit.SHARE: lambda value: f"{round(100 * value, 2) + 0.0:.2f}",
    Unit.RATIO: lambda value: f"{round(100 * value, 2) + 0.0:.2f}",
    Unit.POINTS: lambda value: f"{round(100 * value, 2) + 0.0:+.2f}",
    Unit.PROBABILITY: lambda value: f"{value:.2g}",
    Unit.COUNT: lambda value: f"{value:,}",
    Unit.NUMBER: lambda value: f"{value:.2f}",
}
"""How a figure is written below a title that says its unit: shares in %, without -0.00."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column.

    Attributes:
        title: its head.
        unit: of its figures, which stand to the right; None: it has words.
    """

    title: str
    unit: Unit | None = None


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of cells.

    Attributes:
        columns: the first one names the row.
        rows: a cell for each column.
        title: what it is a table of.
        marked: numbers of the rows that are to be seen first.
    """

    columns: Sequence[Column]
    rows: Sequence[Sequence[Cell]]
    title: str = ""
    marked: frozenset[int] = frozenset()

    @property
    def right(self) -> int:
        """The first column of figures, which stand to the right with all that follow."""
        return next((at for at, one in enumerate(self.columns) if one.unit is not None), 99)

    @property
    def titles(self) -> list[str]:
        """The heads of the columns."""
        return [column.title for column in self.columns]

    def lines(self) -> list[list[str]]:
        """Return the cells as people read them."""
        return [
            [_written(cell, column) for cell, column in zip(row, self.columns, strict=True)]
            for row in self.rows
        ]


def _written(cell: Cell, column: Column) -> str:
    if isinstance(cell, str):
        return cell
    if cell is None or (isinstance(cell, float) and not isfinite(cell)):
        return NOTHING
    if isinstance(cell, int | float):
        return _FORMS[column.unit or Unit.NUMBER](cell)
    return ends(cell)


def markdown(table: Table) -> str:
    """Return a Markdown table."""
    titles = table.titles
    rows = [titles, ["---"] * len(titles), *table.lines()]
    return "".join(f"| {' | '.join(map(cells.markdown, row))} |\n" for row in rows)


def latex(table: Table) -> str:
    """Return a LaTeX tabular."""
    titles, *lines = (
        " & ".join(map(cells.latex, row)) + r" \\" for row in [table.titles, *table.lines()]
    )
    sides = "".join("l" if column.unit is None else "r" for column in table.columns)
    body = "\n".join([titles, r"\hline", *lines])
    return f"\\begin{{tabular}}{{{sides}}}\n{body}\n\\end{{tabular}}\n"


def as_csv(table: Table) -> str:
    """Return the figures as they are in the summary; an empty cell is one that is not defined."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(table.titles)
    for row in table.rows:
        writer.writerow(cells.spreadsheet(one) if isinstance(one, str) else one for one in row)
    return out.getvalue()


def screen(table: Table, split: str = "") -> Fitted:
    """Return a table for the terminal.

    Args:
        table: the cells.
        split: what parts a cell into lines; empty: nothing does.
    """
    found = Fitted(*map(escape, table.titles), title=escape(table.title), right=table.right)
    for at, line in enumerate(table.lines()):
        cells_of = (escape(cell.replace(split, "\n") if split else cell) for cell in line)
        found.add_row(*cells_of, style="bold" if at in table.marked else None)
    return found


FORMS: Mapping[str, Callable[[Table], str]] = {
    "markdown": markdown, "latex": latex, "csv": as_csv,
}  # fmt: skip
"""By the name that ``--format`` has for it."""
