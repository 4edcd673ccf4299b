"""What a page shows in one place: a question, tables and figures that answer it, what to know."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from simulator.command.experiment import EXPERIMENTS
from simulator.entry_points import Table as OpenTable
from simulator.errors import UserError, unknown
from simulator.report.charts import Figure
from simulator.report.reading import Run
from simulator.report.table import Table as Figures

_LONG = 16
"""Characters of a column's name for which a phone has no room beside others."""


@dataclass(frozen=True, slots=True)
class Panel:
    """One figure.

    Attributes:
        figure: to be drawn.
        caption: what tells it from the section's other figures; empty where it is alone.
    """

    figure: Figure
    caption: str = ""


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
        code: the text.
    """

    code: str


@dataclass(frozen=True, slots=True)
class Link:
    """A way to a page beside this one.

    Attributes:
        word: what is clicked.
        place: relative to this page, quoted.
    """

    word: str
    place: str


Cell = str | Badge | Link | Code | Sequence[str | Badge | Link]


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of cells.

    Attributes:
        head: the columns; the first one names the row.
        rows: a cell for each column.
        caption: what it is a table of.
        numbers: columns from this one on are numbers.
        marked: numbers of the rows that are to be seen first.
        folded: whether only its caption is seen at first.
    """

    head: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    caption: str
    numbers: int = 99
    marked: frozenset[int] = frozenset()
    folded: bool = False

    @classmethod
    def of(cls, table: Figures, folded: bool = False) -> Table:
        """Return a table of figures as a page shows it."""
        return cls(
            table.titles, table.lines(), table.title, table.right, table.marked, folded=folded
        )

    @property
    def narrow(self) -> str:
        """How its rows stand on a phone: ``words`` below each other, ``many`` as running text.

        Empty where its columns have room on a phone too.
        """
        if self.numbers >= len(self.head) > 2:
            return "words"
        wide = len(self.head) > 4 or max(map(len, self.head)) > _LONG
        return "many" if wide else ""


@dataclass(frozen=True, slots=True)
class Picture:
    """An image file of the run.

    Attributes:
        data: its bytes, a JPEG or a PNG.
        words: what is seen.
    """

    data: bytes
    words: str

    @property
    def kind(self) -> str:
        """Its media type."""
        return "image/png" if self.data.startswith(b"\x89PNG") else "image/jpeg"


def fitting(
    run: Run, wanted: Iterable[tuple[str | None, str]], room: int
) -> tuple[list[Picture], int]:
    """Return pictures of a run that a page has room for.

    Args:
        run: their files are in its folder.
        wanted: path and words of each; those without a path are left out.
        room: bytes in base64.

    Returns:
        The pictures, and how many more there are.
    """
    found, left = [], 0
    for path, words in wanted:
        data = run.file(path) if path else None
        if data is None:
            continue
        taken = -(-len(data) // 3) * 4
        if taken > room:
            left += 1
        else:
            room -= taken
            found.append(Picture(data, words))
    return found, left


@dataclass(frozen=True, slots=True)
class Section:
    """Tables and figures under one title. All words are plain text, and may contain names.

    Attributes:
        key: of the place in the page.
        title: what is seen, with its unit.
        question: the sentence at the top: what is answered here.
        found: sentences on what is seen in this run.
        panels: the figures.
        notes: what is left out, and how figures were drawn; why there is nothing to see.
        numbered: names of the samples that the figures call 1, 2, ….
        tables: before the figures.
        pictures: after the figures.
        html: a part of another kind, escaped by who made it.
    """

    key: str
    title: str
    question: str
    found: Sequence[str] = ()
    panels: Sequence[Panel] = ()
    notes: Sequence[str] = ()
    numbered: Sequence[str] = ()
    tables: Sequence[Table] = ()
    pictures: Sequence[Picture] = ()
    html: Markup | None = None

    @property
    def empty(self) -> bool:
        """Whether only words are left."""
        return not (self.tables or self.panels or self.pictures or self.html)


@dataclass(frozen=True, slots=True)
class Part:
    """A section of the report, found by an entry point that is called ``COMMAND.NAME``.

    It is imported for the pages of that command; one called ``NAME`` alone for every page.

    Attributes:
        order: where it stands in the page; ours are multiples of 10.
        show: the section of a run, or None where it has nothing to say of it.
    """

    order: int
    show: Callable[[Run], Section | None]

    def __call__(self, run: Run) -> Section | None:
        """Return the section of a run."""
        return self.show(run)


def part(order: int) -> Callable[[Callable[[Run], Section | None]], Part]:
    """Make a function a part of the report; its entry point names it."""
    return lambda show: Part(order, show)


PARTS: OpenTable[Part] = OpenTable(
    "simulator.report_sections", "report section", lambda found: isinstance(found, Part)
)


def parts_of(command: str) -> list[Part]:
    """Import the sections of a command's pages, in their order.

    Raises:
        UserError: one of them does not load, or one is for a command that has no pages.
    """
    wanted = []
    for name, point in PARTS.points.items():
        of = name.rpartition(".")[0]
        if of and not (of in EXPERIMENTS and EXPERIMENTS[of].reported):
            raise UserError(
                f"the report section {name!r} ({point.value}) is on no page, as it is called "
                f"COMMAND.NAME: {unknown('experiment', of, EXPERIMENTS.names)}; fix or uninstall "
                "the package that brings it"
            )
        if of in ("", command):
            wanted.append(PARTS[name])
    return sorted(wanted, key=lambda part: part.order)
