"""The user's cache for things that are slow to make: artifacts and the example model."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from simulator.errors import RunError

VARIABLE = "PIPELINE_SIMULATOR_CACHE"


def folder() -> Path:
    """Return ``$PIPELINE_SIMULATOR_CACHE`` if it is set, else the XDG cache folder."""
    if chosen := os.environ.get(VARIABLE):
        return Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "pipeline-simulator"


def entry(name: str, make: Callable[[Path], None], root: Path | None = None) -> Path:
    """Return a cached folder; make it first if it does not exist.

    An unfinished entry is never visible: it is made under another name and then renamed.

    Args:
        name: the entry: a relative path made of its kind and its digest.
        make: writes the entry's files into the folder that it receives.
        root: a folder to use instead of the user's cache.

    Raises:
        RunError: the cache is not writable.
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
