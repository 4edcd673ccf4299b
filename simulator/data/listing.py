"""The files of a folder and of the folders below it, here or behind a URL."""

from __future__ import annotations

import os
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path

from simulator.data import remote
from simulator.data.address import Root
from simulator.errors import DataError
from simulator.places import Where


@dataclass(slots=True)
class Listing:
    """What a folder holds.

    Attributes:
        paths: where each file is, by its path below the folder with ``/``.
        hidden: how many files and folders begin with a dot; they are left out.
        odd: how many pipes, devices and the like are left out.
        again: how many links lead to a folder that is there already.
    """

    paths: dict[str, Where] = field(default_factory=dict)
    hidden: int = 0
    odd: int = 0
    again: int = 0


def list_below(root: Root, noun: str = "file") -> Listing:
    """List a folder and those below it; a folder that links reach again is listed once.

    A link that leads nowhere is a file: it is refused when it is read.

    Args:
        root: the folder, or its URL.
        noun: what is looked for in it, in the singular, for messages.

    Raises:
        DataError: it is no folder, cannot be read, or two files have one name.
    """
    found = Listing()
    if isinstance(root, str):
        for name, place in remote.listed(root).items():
            if any(part.startswith(".") for part in name.split("/")):
                found.hidden += 1
            else:
                found.paths[name] = place
    elif not root.exists():
        raise DataError(f"{root}: there is no such folder")
    elif not root.is_dir():
        raise DataError(f"{root}: is a file; give the folder that holds the {noun}s")
    else:
        try:
            _walk(root, found)
        except OSError as error:
            where = error.filename or root
            raise DataError(f"{where}: cannot be read: {error.strerror or error}") from error
    return found


def _walk(root: Path, found: Listing) -> None:
    seen: set[str] = set()
    folders = deque([(str(root), "", os.path.realpath(root))])
    links = deque[tuple[str, str, str]]()
    while folders or links:
        folder, prefix, real = (folders or links).popleft()
        if real in seen:
            found.again += 1
            continue
        seen.add(real)
        with os.scandir(folder) as opened:
            entries = sorted(opened, key=lambda one: one.name)
        for entry in entries:
            name = prefix + os.fsencode(entry.name).decode("utf-8", "backslashreplace")
            link = entry.is_symlink()
            if entry.name.startswith("."):
                found.hidden += 1
            elif os.path.isdir(entry.path) if link else entry.is_dir():
                inside = os.path.realpath(entry.path) if link else os.path.join(real, entry.name)
                (links if link else folders).append((entry.path, f"{name}/", inside))
            elif not link and not entry.is_file():
                found.odd += 1
            elif name in found.paths:
                raise DataError(
                    f"{folder}: two files would be called {name!r}, as a name that is not UTF-8 "
                    "is written with backslashes; rename one"
                )
            else:
                found.paths[name] = Path(entry.path)
