"""Templates, and how many bytes of a page each part may take."""

from __future__ import annotations

import base64
import hashlib
import sys
from contextlib import suppress
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import jinja2
from jinja2.bccache import Bucket
from markupsafe import Markup

from simulator import cache as user_cache
from simulator.contract.library import installed_version
from simulator.errors import RunError
from simulator.report import drawn

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
    made.filters["drawn"] = drawn.shown
    made.filters["base64"] = lambda data: base64.b64encode(data).decode()
    return made


def charts() -> bytes:
    """Return plotly.js with the charts that a page has, compressed by gzip."""
    return resources.files("simulator.report").joinpath(*_CHARTS).read_bytes()


def content(name: str) -> str:
    """Return a file of the templates' folder."""
    return resources.files("simulator.report").joinpath(_ROOM, name).read_text(encoding="utf-8")
