"""What a page shows in one place: a question, figures and tables that answer it, what to know."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from simulator.command.experiment import EXPERIMENTS
from simulator.entry_points import Table as OpenTable
from simulator.errors import UserError, unknown
from simulator.report.charts import Figure
from simulator.report.reading import Run
from simulator.report.table import Badge, Cell, Code, Link, Table

__all__ = ["PARTS", "Badge", "Cell", "Code", "Link", "Panel", "Part", "Picture", "Section",
           "Table", "fitting", "part", "parts_of"]  # fmt: skip


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
    run: Run[Any], wanted: Iterable[tuple[str | None, str]], room: int
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
    """Figures and tables under one title. All words are plain text, and may contain names.

    Attributes:
        key: of the place in the page.
        title: what is seen, with its unit.
        question: the sentence at the top: what is answered here.
        found: sentences on what is seen in this run.
        panels: the figures.
        notes: what is left out, and how figures were drawn; why there is nothing to see.
        numbered: names of the samples that the figures call 1, 2, ….
        tables: after the figures, and then folded: a figure and its table say the same.
        pictures: before the tables.
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
    """Sections of the report, found by an entry point that is called ``COMMAND.NAME``.

    It is imported for the pages of that command; one called ``NAME`` alone for every page.

    Attributes:
        order: where it stands in the page; ours are multiples of 10.
        show: the section of a run, or several; None where it has nothing to say of it.
    """

    order: int
    show: Callable[[Run[Any]], Section | Iterable[Section] | None]

    def __call__(self, run: Run[Any]) -> Any:
        """Return what :attr:`show` returns."""
        return self.show(run)

    def sections(self, run: Run[Any]) -> list[Section]:
        """Return the sections of a run."""
        found = self.show(run)
        return [found] if isinstance(found, Section) else list(found or ())


Show = Callable[[Run[Any]], Section | Iterable[Section] | None]


def part(order: int) -> Callable[[Show], Part]:
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
        mine = of in ("", command)
        if of and (of not in EXPERIMENTS or (mine and not EXPERIMENTS[of].reported)):
            raise UserError(
                f"the report section {name!r} ({point.value}) is on no page, as it is called "
                f"COMMAND.NAME: {unknown('experiment', of, EXPERIMENTS.names)}; fix or uninstall "
                "the package that brings it"
            )
        if mine:
            wanted.append(PARTS[name])
    return sorted(wanted, key=lambda part: part.order)
