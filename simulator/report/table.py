"""A table of figures and words, and the ways to write one.

A column says what its figures are counted in and which way is better; how a figure of that unit is
written stands here and nowhere else. CSV has the figures as they are, for other programs.
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
_FORMS: Mapping[Unit, Callable[[float], str]] = {
    Unit.SHARE: lambda value: f"{round(100 * value, 2) + 0.0:.2f}",
    Unit.RATIO: lambda value: f"{round(100 * value, 2) + 0.0:.2f}",
    Unit.POINTS: lambda value: f"{round(100 * value, 2) + 0.0:+.2f}",
    Unit.PROBABILITY: lambda value: f"{value:.2g}",
    Unit.COUNT: lambda value: f"{value:,}",
    Unit.NUMBER: lambda value: f"{value:.2f}",
}
"""How a figure is written below a title that says its unit: shares in %, without -0.00."""
_LONG = 16
"""Characters of a column's title for which a phone has no room beside others."""


@dataclass(frozen=True, slots=True)
class Badge:
    """A word that is marked.

    Attributes:
        word: what it says.
        kind: how it is marked: one of the kinds of evidence, ``good`` or ``bad``.
    """

    word: str
    kind: str


@dataclass(frozen=True, slots=True)
class Code:
    """What is typed, with its line breaks.

    Attributes:
        word: the text.
    """

    word: str


@dataclass(frozen=True, slots=True)
class Link:
    """A way to a page beside this one.

    Attributes:
        word: what is clicked.
        place: relative to this page, quoted.
    """

    word: str
    place: str


@dataclass(frozen=True, slots=True)
class Bar:
    """A figure that a page draws beside its number.

    Attributes:
        value: the figure; None where it is not defined.
        ci95: both ends of its interval; empty where there is none.
        base: where the bar begins.
        clear: whether it is more than chance; one that may be chance has an outline alone.
    """

    value: float | None
    ci95: Sequence[float | None] = ()
    base: float = 0.0
    clear: bool = True


Word = str | Badge | Link | Code
Cell = Word | float | Bar | Sequence[float | None] | Sequence[Word] | None
"""A figure, both ends of an interval of points, words, or nothing."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column.

    Attributes:
        title: its head.
        unit: of its figures, which stand to the right; None: it has words.
        better: 1 where more is better, -1 where less is, 0 where neither.
        heat: whether a page shades a cell the more the farther its figure is from 0.
    """

    title: str
    unit: Unit | None = None
    better: int = 0
    heat: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of cells.

    Attributes:
        columns: the first one names the row; one that is text alone has words.
        rows: a cell for each column.
        title: what it is a table of.
        figures: columns from this one on stand to the right; by default from the first with a unit.
        marked: numbers of the rows that are to be seen first.
        folded: whether a page shows only its title at first.
        breaks: numbers of the rows below which the screen has a line.
    """

    columns: Sequence[Column | str]
    rows: Sequence[Sequence[Cell]]
    title: str = ""
    figures: int | None = None
    marked: frozenset[int] = frozenset()
    folded: bool = False
    breaks: frozenset[int] = frozenset()

    @property
    def heads(self) -> list[Column]:
        """The columns, also those that were given as text."""
        return [Column(column) if isinstance(column, str) else column for column in self.columns]

    @property
    def titles(self) -> list[str]:
        """The heads of the columns."""
        return [column.title for column in self.heads]

    @property
    def right(self) -> int:
        """The first column of figures, which stand to the right with all that follow."""
        known = (at for at, head in enumerate(self.heads) if head.unit is not None)
        return next(known, 99) if self.figures is None else self.figures

    @property
    def narrow(self) -> str:
        """How its rows stand on a phone: ``words`` below each other, ``many`` as running text.

        Empty where its columns have room on a phone too.
        """
        if self.right >= len(self.columns) > 2:
            return "words"
        wide = len(self.columns) > 4 or max(map(len, self.titles)) > _LONG
        return "many" if wide else ""

    def lines(self) -> list[list[str]]:
        """Return the cells as text."""
        return [
            [written(cell, column) for cell, column in zip(row, self.heads, strict=True)]
            for row in self.rows
        ]


def written(cell: Cell, column: Column) -> str:
    """Return a cell as text, in the unit of its column."""
    if isinstance(cell, Bar):
        cell = cell.value
    if isinstance(cell, Word):
        return cell if isinstance(cell, str) else cell.word
    if cell is None or (isinstance(cell, float) and not isfinite(cell)):
        return NOTHING
    if isinstance(cell, int | float):
        return _FORMS.get(column.unit or Unit.NUMBER, _FORMS[Unit.NUMBER])(cell)
    if has_marks(cell):
        return " ".join(written(part, column) for part in cell)
    return ends([end for end in cell if not isinstance(end, Word)])


def has_marks(cell: Cell) -> bool:
    """Whether a page shows more of a cell than its text."""
    parts = cell if isinstance(cell, list | tuple) else [cell]
    return any(isinstance(part, Badge | Link | Code) for part in parts)


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
    sides = "".join("l" if column.unit is None else "r" for column in table.heads)
    body = "\n".join([titles, r"\hline", *lines])
    return f"\\begin{{tabular}}{{{sides}}}\n{body}\n\\end{{tabular}}\n"


def as_csv(table: Table) -> str:
    """Return the figures as they are in the summary; an empty cell is one that is not defined.

    An interval is two columns.
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    rows = [[_parts(cell) for cell in row] for row in table.rows]
    wide = [any(len(row[at]) == 2 for row in rows) for at in range(len(table.columns))]
    heads = zip(table.titles, wide, strict=True)
    writer.writerow(
        one for name, two in heads for one in ([f"{name}, from", f"{name}, to"] if two else [name])
    )
    for row in rows:
        pairs = zip(row, wide, strict=True)
        writer.writerow(one for parts, two in pairs for one in [*parts, None][: 1 + two])
    return out.getvalue()


def _parts(cell: Cell) -> list[str | float | None]:
    """A figure or words; of an interval both ends."""
    if isinstance(cell, Bar):
        cell = cell.value
    if cell is None or isinstance(cell, int | float):
        return [cell]
    if isinstance(cell, list | tuple) and len(cell) == 2:
        figures = [one for one in cell if not isinstance(one, Word)]
        if len(figures) == 2:
            return [*figures]
    return [cells.spreadsheet(written(cell, Column("")))]


def screen(table: Table, split: str = "") -> Fitted:
    """Return a table for the terminal.

    Args:
        table: the cells.
        split: what parts a cell into lines; empty: nothing does.
    """
    found = Fitted(*map(escape, table.titles), title=escape(table.title), right=table.right)
    for at, line in enumerate(table.lines()):
        cells_of = (escape(cell.replace(split, "\n") if split else cell) for cell in line)
        style = "bold" if at in table.marked else None
        found.add_row(*cells_of, style=style, end_section=at in table.breaks)
    return found


FORMS: Mapping[str, Callable[[Table], str]] = {
    "markdown": markdown, "latex": latex, "csv": as_csv,
}  # fmt: skip
"""By the name that ``--format`` has for it."""
