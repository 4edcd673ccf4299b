"""The report of a run: one file that needs nothing else, and no network."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import jinja2
from markupsafe import Markup

from simulator.errors import RunError, UserError, one_line
from simulator.report.colors import DARK, css
from simulator.report.reading import Run, read
from simulator.report.rendering import charts, content, render
from simulator.report.rules import notes
from simulator.report.sections.head import Head, head
from simulator.report.sections.provenance import records
from simulator.report.sections.section import Section, parts_of
from simulator.report.svg import svg
from simulator.report.words import PAGE, failures, run_on
from simulator.results.layout import SUMMARY
from simulator.results.manifest import MachineDescription
from simulator.results.read import DAMAGE
from simulator.results.shared import ModelSummary

_DAMAGE = (*DAMAGE, jinja2.UndefinedError, UserError)
"""What is raised where a run does not hold what runs hold, by templates too."""


def write(folder: Path, out: Path | None = None) -> Path:
    """Write the report of a finished run.

    Args:
        folder: of any command.
        out: where it goes; ``report.html`` in *folder* by default.

    Returns:
        The file: whole, or as it was before.

    Raises:
        RunError: the folder is not a run, or the file cannot be written.
        UserError: a package that brings a section does not load.
    """
    with whole(folder):
        run = read(folder)
    parts_of(run.command)  # a package that does not load is no damage of the run
    with whole(folder):
        page = html(run)
    return put(page, out or folder / PAGE)


@contextmanager
def whole(folder: Path) -> Iterator[None]:
    """Take a failure within for damage of the run.

    Raises:
        RunError: the folder is not a finished run, or what it holds is not what runs hold.
    """
    try:
        yield
    except RunError:
        raise
    except _DAMAGE as error:
        what = f"{type(error).__name__}: {one_line(error)}"
        raise RunError(f"{folder}: a run of another version, or a damaged one: {what}") from error


def put(page: str, place: Path) -> Path:
    """Write a page to a file, which is whole or as it was before.

    Raises:
        RunError: the file cannot be written.
    """
    if os.path.isdir(place):
        raise RunError(f"{place}: cannot be written: it is a folder")
    draft = place.with_name(f".{place.name}.part")
    try:
        draft.write_text(page, encoding="utf-8", errors="replace", newline="\n")
        os.replace(draft, place)
    except OSError as error:
        with suppress(OSError):
            draft.unlink()
        raise RunError(f"{place}: cannot be written: {error.strerror or error}") from error
    return place


def html(run: Run) -> str:
    """Return the page of a run."""
    summary, manifest = run.summary, run.manifest
    about = summary.facts
    warnings: Sequence[object] = summary.notices
    if isinstance(summary, ModelSummary):
        scenario = summary.get("scenario")
        about = [f"{run_on(summary)}{f', {scenario}' if scenario else ''}", *about]
    elif summary.of_runs:
        warnings = notes(summary["pairs"])
    return Page(
        head(run),
        sections_of(run),
        manifest.machine,
        str(manifest.created),
        about,
        [
            *(f"fails: {line}" for line in failures(summary)),
            *map(str, warnings),
            *(f"skipped: {one.sample}: {one.why}" for one in summary.get("skipped_samples", ())),
        ],
        records(run),
    ).html()


@dataclass(frozen=True, slots=True)
class Page:
    """What a page shows.

    Attributes:
        head: its first lines.
        sections: in their order.
        machine: that the figures were measured on.
        created: when.
        facts: a line each, on what was compared.
        notes: a line each, on what the reader should know; names are shown as they are.
        records: what the page offers as a file; None: nothing.
        numbers: the file with the figures, for those who see none.
    """

    head: Head
    sections: Sequence[Section]
    machine: MachineDescription
    created: str
    facts: Sequence[str] = ()
    notes: Sequence[str] = ()
    records: str | None = None
    numbers: str = SUMMARY

    def html(self) -> str:
        """Return the file.

        Plotly is in it compressed, where there is a figure, and the page inflates it. Scripts are
        allowed by their hashes alone, and connections not at all (Content Security
        Policy, level 3): what a data set may call its files runs nowhere.
        """
        scripts = [*map(content, ("page.js", "gallery.js"))]
        packed = charts() if any(section.panels for section in self.sections) else None
        allowed = [script.encode() for script in scripts]
        allowed += [gzip.decompress(packed)] if packed else []
        return render(
            "report.html.j2",
            page=self,
            style=Markup("\n".join([css(), *map(content, ("page.css", "gallery.css"))])),
            scripts=[Markup(script) for script in scripts],
            hashes=[_hash(script) for script in allowed],
            charts=base64.b64encode(packed).decode() if packed else None,
            figures=_embedded(self.sections),
        )


def sections_of(run: Run) -> list[Section]:
    """Return what the page shows of a run."""
    return [section for part in parts_of(run.command) for section in part.sections(run)]


def drawn(sections: Sequence[Section], place: Path) -> list[Path]:
    """Write the charts of sections as SVG files, KEY-NUMBER.svg; those of other forms are left out.

    Args:
        sections: of a page.
        place: a folder, which is made.

    Raises:
        RunError: a file cannot be written.
    """
    place.mkdir(parents=True, exist_ok=True)
    found = []
    for section in sections:
        for number, panel in enumerate(section.panels, 1):
            if image := svg(panel.figure, panel.caption or section.title):
                found.append(put(image, place / f"{section.key}-{number}.svg"))
    return found


def _embedded(sections: Sequence[Section]) -> Markup:
    """The figures and the colors of dark screens as JSON that cannot end its own element."""
    figures = ",".join(panel.figure.to_json() for section in sections for panel in section.panels)
    data = f'{{"dark":{json.dumps(DARK)},"figures":[{figures}]}}'
    return Markup(data.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))


def _hash(script: bytes) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(script).digest()).decode()
