"""The user's cache of things that are dear to make: artifacts, the example model."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from simulator.errors import RunError

VARIABLE = "PIPELINE_SIMULATOR_CACHE"


def folder() -> Path:
    """Return ``$PIPELINE_SIMULATOR_CACHE``, else the XDG cache folder."""
    if chosen := os.environ.get(VARIABLE):
        return Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "pipeline-simulator"


def entry(name: str, make: Callable[[Path], None], root: Path | None = None) -> Path:
    """Return a cached folder, making it first where it is not there.

    A half-made entry is never seen: it is made beside its place and renamed into it.

    Args:
        name: the entry, a relative path that says what it is and its digest.
        make: writes the entry's files into the folder that it is given.
        root: a folder to be used in place of the user's cache.

    Raises:
        RunError: the cache cannot be written.
    """
    root = root or folder()
    place = root / name
    if place.is_dir():
        return place
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        draft = Path(tempfile.mkdtemp(prefix=".making-", dir=place.parent))
    except OSError as error:
        raise RunError(
            f"the cache {root} cannot be written: {error.strerror}; set {VARIABLE}"
        ) from error
    try:
        try:
            make(draft)
        except OSError as error:
            raise RunError(
                f"{place} cannot be made: {error.strerror or error}; make room, or set {VARIABLE}"
            ) from error
        try:
            draft.rename(place)
        except OSError as error:
            if not place.is_dir():  # else another process was faster
                raise RunError(f"{place} cannot be written: {error.strerror}") from error
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return place
