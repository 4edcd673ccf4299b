"""Templates, and how many bytes of a page each part may take."""

from __future__ import annotations

import base64
from functools import cache
from importlib import resources
from typing import Any

import jinja2
from markupsafe import Markup

LOOKS, PICTURES, RECORDS = 1_150_000, 450_000, 2_600_000
"""Bytes of looks in base64, of which worst flips take their part where they have pictures; and of
compressed records. With plotly's 0.7 MB an ordinary page is under 2 MB, and one with very many
records under 6 MB. What is more stays in the run.
"""
_ROOM = "templates"
_CHARTS = ("plotlyjs", "plotly-cartesian.min.js.gz")


def render(name: str, **values: Any) -> Markup:
    """Fill in a template; all values are escaped but those that are :class:`Markup`."""
    return Markup(_environment().get_template(name).render(values))


@cache
def _environment() -> jinja2.Environment:
    """One for the process: it keeps the templates that it has compiled."""
    made = jinja2.Environment(
        loader=jinja2.FunctionLoader(content),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["base64"] = lambda data: base64.b64encode(data).decode()
    return made


def charts() -> bytes:
    """Return plotly.js with the charts that a page has, compressed by gzip."""
    return resources.files("simulator.report").joinpath(*_CHARTS).read_bytes()


def content(name: str) -> str:
    """Return a file of the templates' folder."""
    return resources.files("simulator.report").joinpath(_ROOM, name).read_text(encoding="utf-8")
