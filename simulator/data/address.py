"""What ``--data`` may be: a path, or the address of something that is elsewhere."""

from __future__ import annotations

import posixpath
import re
from pathlib import Path

from simulator.errors import DataError

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+(://|::)")
Root = Path | str
"""A path, or a URL."""


def is_url(text: str | Path) -> bool:
    """Whether this is the address of something elsewhere: ``s3://``, ``https://``, ``memory://``."""
    return isinstance(text, str) and _URL.match(text) is not None


def root_of(data: str | Path) -> Root:
    """Return a path, or a URL as it is."""
    return data if isinstance(data, str) and is_url(data) else Path(data)


def absolute(root: Root) -> str:
    """Return the full path, or a URL as it is."""
    return str(root if isinstance(root, str) else root.resolve())


def safe(name: str, where: str) -> str:
    """Return a path below a folder in its plain form.

    Raises:
        DataError: it leads out of the folder.
    """
    if name.startswith("/") or ".." in name.split("/"):
        raise DataError(f"{where}: {name!r} leads out of the folder; write a path below it")
    return posixpath.normpath(name)
