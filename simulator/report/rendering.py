"""Templates, and how many bytes of a page each part may take."""

from __future__ import annotations

import base64
from functools import cache
from importlib import import_module, resources
from typing import Any

import jinja2
from markupsafe import Markup

from simulator.contract.library import installed_version

LOOKS, PICTURES, RECORDS = 1_150_000, 450_000, 2_600_000
"""Bytes of looks in base64, of which worst flips take their part where they have pictures; and of
compressed records. With plotly's 0.7 MB an ordinary page is under 2 MB, and one with very many
records under 6 MB. What is more stays in the run.
"""
_ROOM = "templates"
_CHARTS = ("plotlyjs", "plotly-cartesian.min.js.gz")


def render(name: str, **values: Any) -> Markup:
    """Fill in a template; all values are escaped but those that are :class:`Markup`."""
    return Markup(_template(name).render(values))


@cache
def _template(name: str) -> jinja2.Template:
    """Return a template as it was compiled by this version of jinja2; else compile it now."""
    module = import_module(f"simulator.report.compiled.{module_name(name)}")
    made = environment()
    if installed_version("jinja2") != module.VERSION:
        return made.get_template(name)
    return jinja2.Template.from_module_dict(made, vars(module), made.make_globals(None))


def module_name(template: str) -> str:
    """Return the module that holds a template compiled."""
    return template.partition(".")[0]


@cache
def environment() -> jinja2.Environment:
    """Return what templates are compiled and filled in with; one for the process."""
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
