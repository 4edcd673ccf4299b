"""A table that no terminal is too narrow for: whole words, all columns, nothing cut."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

_SPACE = re.compile(r"\s+(?!%|points?\b|ms\b)")
"""Where a cell breaks first: at a space, but not between a number and its unit."""
_NAME = re.compile(r"(?<=\w/)(?=\w)|(?<=\w\+)(?=[^\W\d])")
"""Where a long name breaks: after ``/``, and after a ``+`` that is no sign."""


class Fitted(Table):
    """A table as wide as its content, or as the terminal where that is less.

    Cells are folded at spaces, then behind ``/`` and ``+``. Where even that is too wide, the
    columns go below each other: each part begins with the first column again. A single word
    that is wider than the terminal is folded anywhere.
    """

    def __init__(self, *columns: str, title: str = "", right: int = 99) -> None:
        """Make a table without rows.

        Args:
            columns: the heads, as markup.
            title: printed above, as markup; it may be wider than the table.
            right: from this column on cells are numbers, which stand to the right.
        """
        super().__init__(title=title, box=SIMPLE_HEAD, pad_edge=False)
        for index, column in enumerate(columns):
            self.add_column(column, justify="right" if index >= right else "left")

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the title, and the table in as many parts as it needs."""
        if self.title:
            yield Text.from_markup(str(self.title), style="bold", emoji=False)
        cells = [
            [
                console.render_str(str(cell), highlight=False)
                for cell in (column.header, *column.cells)
            ]
            for column in self.columns
        ]
        for shown in _groups(cells, options.max_width):
            yield self._part(shown, cells, options.max_width)

    def _part(self, shown: Sequence[int], cells: Sequence[Sequence[Text]], width: int) -> Table:
        """Return some of the columns as a table of its own."""
        found = Table(box=self.box, pad_edge=False)
        widths = _widths([cells[index] for index in shown], width)
        folded = []
        for index, wide in zip(shown, widths, strict=True):
            head, *rest = (_fold(cell, wide) for cell in cells[index])
            justify = self.columns[index].justify
            found.add_column(head, justify=justify, width=wide, overflow="fold")
            folded.append(rest)
        for row, line in zip(self.rows, zip(*folded, strict=True), strict=True):
            found.add_row(*line, end_section=row.end_section)
        return found


def _groups(cells: Sequence[Sequence[Text]], width: int) -> list[list[int]]:
    """Return which columns stand side by side; the first one is in every group."""
    least = [_longest(column, _SPACE, _NAME) for column in cells]
    groups = [[0]]
    for index in range(1, len(cells)):
        together = [*groups[-1], index]
        if len(together) > 2 and sum(least[one] for one in together) > _room(together, width):
            groups.append([0])
        groups[-1].append(index)
    return groups


def _room(columns: Sequence[object], width: int) -> int:
    """Return how many characters of a line are left for cells: edges and gaps go off."""
    return width - 3 * len(columns) + 1


def _widths(columns: Sequence[Sequence[Text]], width: int) -> list[int]:
    """Return the width of each column: the widest gives way first, and words as late as can be."""
    widths = [_longest(column) for column in columns]
    for floor in (
        [_longest(column, _SPACE) for column in columns],
        [_longest(column, _SPACE, _NAME) for column in columns],
        [1] * len(columns),
    ):
        while sum(widths) > _room(columns, width):
            loose = [at for at, least in enumerate(floor) if widths[at] > least]
            if not loose:
                break
            widths[max(loose, key=widths.__getitem__)] -= 1
    return widths


def _longest(column: Sequence[Text], *breaks: re.Pattern[str]) -> int:
    """Return the width of the longest piece of a column that does not break at any of these."""
    pieces = [line for cell in column for line in cell.plain.split("\n")]
    for one in breaks:
        pieces = [
            text[start:end]
            for text in pieces
            for start, end in pairwise([0, *_ends(one, text), len(text)])
        ]
    return max(1, *(cell_len(piece.rstrip()) for piece in pieces))


def _ends(breaks: re.Pattern[str], text: str) -> list[int]:
    return [found.end() for found in breaks.finditer(text)]


def _fold(cell: Text, width: int) -> Text:
    """Return a cell in lines of a width."""
    lines = cell.split("\n", allow_blank=True)
    return Text("\n").join(part for line in lines for part in _folded(line, width))


def _folded(line: Text, width: int) -> Iterator[Text]:
    while line.cell_len > width:
        text = line.plain
        spaces = [found.span() for found in _SPACE.finditer(text) if 0 < found.start() <= width]
        names = [(end, end) for end in _ends(_NAME, text) if end <= width]
        if not (spaces or names):
            break
        end, start = (spaces or names)[-1]
        yield line[:end]
        line = line[start:]
    yield line
