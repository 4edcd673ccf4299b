"""What ``--data`` may be: a path, or the address of something that is elsewhere."""

from __future__ import annotations

import re
from pathlib import Path

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
