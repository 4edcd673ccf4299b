"""The charts of a report where a notebook shows them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path

from simulator.errors import UserError, unknown
from simulator.report.charts import Figure
from simulator.report.page import Page, sections_of, whole
from simulator.report.reading import read
from simulator.report.sections.head import head
from simulator.report.sections.section import Section
from simulator.report.table import Bar, Table

HEIGHT = 640
"""Pixels of the frame that a notebook shows; it scrolls."""


@dataclass(frozen=True, slots=True, repr=False)
class Charts:
    """Charts of a report.

    Attributes:
        page: they are drawn by it.
    """

    page: Page

    @property
    def figures(self) -> dict[str, Sequence[Figure]]:
        """The figures of each section as plotly.js takes them; a drawn table is none.

        ``plotly.io.from_json(figure.to_json())`` makes one of the Python package plotly.
        """
        return {
            section.key: [panel.figure for panel in section.panels]
            for section in self.page.sections
        }

    def __repr__(self) -> str:
        return f"<Charts: {', '.join(section.key for section in self.page.sections)}>"

    def _repr_html_(self) -> str:
        """Draw them in a frame of their own, which needs no network."""
        return (
            f'<iframe sandbox="allow-scripts" style="width: 100%; height: {HEIGHT}px; border: 0" '
            f'srcdoc="{escape(str(self.page.html()))}"></iframe>'
        )


def charts(folder: Path, keys: Sequence[str]) -> Charts:
    """Return the charts of a run.

    Args:
        folder: of the run.
        keys: of the sections whose charts are wanted; empty: all that have some.

    Raises:
        RunError: the folder is not a finished run.
        UserError: a section has no charts.
    """
    with whole(folder):
        run = read(folder)
        drawn = [_drawn(one) for one in sections_of(run)]
        found = {one.key: one for one in drawn if one.panels or one.tables}
        first = head(run)
    for key in keys:
        if key not in found:
            raise UserError(unknown("section with charts", key, found))
    wanted = [found[key] for key in keys or found]
    return Charts(Page(first, wanted, run.manifest.machine, str(run.manifest.created)))


def _drawn(section: Section) -> Section:
    """A section with nothing but its charts, drawn tables among them, and what is said of them."""
    tables = [replace(one, folded=False) for one in section.tables if _is_drawn(one)]
    return replace(section, tables=tables, pictures=(), html=None)


def _is_drawn(table: Table) -> bool:
    """Whether a table has bars or shades."""
    bars = any(isinstance(cell, Bar) for row in table.rows for cell in row)
    return bars or any(column.heat for column in table.heads)
