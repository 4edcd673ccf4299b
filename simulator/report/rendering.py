"""Templates, the cells of their tables, and how many bytes of a page each part may take."""

from __future__ import annotations

import base64
import hashlib
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib import resources
from math import isfinite
from pathlib import Path
from typing import Any

import jinja2
from jinja2.bccache import Bucket
from markupsafe import Markup

from simulator import cache as user_cache
from simulator.contract.library import installed_version
from simulator.errors import RunError
from simulator.report.table import Bar, Cell, Column, Table, has_marks, written

LOOKS, PICTURES, RECORDS = 1_150_000, 450_000, 2_600_000
"""Bytes of looks in base64, of which worst flips take their part where they have pictures; and of
compressed records. With plotly's 0.7 MB an ordinary page is under 2 MB, and one with very many
records under 6 MB. What is more stays in the run.
"""
_ROOM = "templates"
_CODE = "code"
_NO_CACHE = (OSError, RuntimeError, RunError)
"""Why nothing is kept: a folder that cannot be read or written, or no home folder at all."""
_CHARTS = ("plotlyjs", "plotly-cartesian.min.js.gz")


def render(name: str, **values: Any) -> Markup:
    """Fill in a template; all values are escaped but those that are :class:`Markup`."""
    return Markup(_template(name).render(values))


@cache
def _template(name: str) -> jinja2.Template:
    return environment().get_template(name)


class _Compiled(jinja2.BytecodeCache):
    """Templates as jinja2 compiled them, in the user's cache; compiled anew where there is none."""

    def load_bytecode(self, bucket: Bucket) -> None:
        """Read what was compiled before."""
        with suppress(*_NO_CACHE):
            if (place := user_cache.found(_entry(bucket))) is not None:
                bucket.bytecode_from_string((place / _CODE).read_bytes())

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Keep what has just been compiled."""

        def write(folder: Path) -> None:
            (folder / _CODE).write_bytes(bucket.bytecode_to_string())

        with suppress(*_NO_CACHE):
            user_cache.entry(_entry(bucket), write)


def _entry(bucket: Bucket) -> str:
    """Return the name in the cache: of the template's text, and of what compiles it and how."""
    of, by = bucket.environment, (installed_version("jinja2"), sys.version)
    parts = bucket.key, bucket.checksum, *by, of.autoescape, of.trim_blocks, of.lstrip_blocks
    return f"templates/{hashlib.sha256(repr(parts).encode()).hexdigest()}"


@cache
def environment() -> jinja2.Environment:
    """Return what templates are compiled and filled in with; one for the process."""
    made = jinja2.Environment(
        loader=jinja2.FunctionLoader(content),
        bytecode_cache=_Compiled(),
        undefined=jinja2.StrictUndefined,
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["drawn"] = shown
    made.filters["base64"] = lambda data: base64.b64encode(data).decode()
    return made


def charts() -> bytes:
    """Return plotly.js with the charts that a page has, compressed by gzip."""
    return resources.files("simulator.report").joinpath(*_CHARTS).read_bytes()


def content(name: str) -> str:
    """Return a file of the templates' folder."""
    return resources.files("simulator.report").joinpath(_ROOM, name).read_text(encoding="utf-8")


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
