"""The command that installs an extra of this package, from where the package itself is from."""

from __future__ import annotations

import importlib.metadata
import json
import shlex
from pathlib import Path
from urllib.parse import unquote, urlsplit

NAME = "pipeline-simulator"
"""Of the distribution. On a public index the name is anybody's, so no hint looks for it there."""


def install(extra: str) -> str:
    """Return what to run to install an extra: words where the origin is not known.

    The origin is what pip has noted of it, ``direct_url.json`` (PEP 610).

    Args:
        extra: one of those in ``pyproject.toml``.
    """
    return _command(_origin(), extra) or (
        f"install the extra {extra!r} of {NAME} from where you have {NAME} from"
    )


def _origin() -> dict[str, object]:
    try:
        said = importlib.metadata.distribution(NAME).read_text("direct_url.json")
        found = json.loads(said or "{}")
    except (importlib.metadata.PackageNotFoundError, OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _command(origin: dict[str, object], extra: str) -> str | None:
    url, version = origin.get("url"), origin.get("vcs_info")
    if not isinstance(url, str) or not url or "?" in url:  # a query may be a key
        return None
    if isinstance(version, dict):
        given = f"{NAME}[{extra}] @ {version.get('vcs')}+{url}@{version.get('commit_id')}"
        return f"pip install {shlex.quote(given)}"
    folder = origin.get("dir_info")
    if isinstance(folder, dict):
        place = unquote(urlsplit(url).path)
        if not (Path(place) / "pyproject.toml").is_file():
            return None
        editable = "-e " if folder.get("editable") else ""
        return f"pip install {editable}{shlex.quote(f'{place}[{extra}]')}"
    return f"pip install {shlex.quote(f'{NAME}[{extra}] @ {url}')}"
