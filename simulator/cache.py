"""The user's cache for things that are slow to make: artifacts and the example model."""

from __future__ import annotations

import json
import logging
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from simulator.errors import RunError
from simulator.files import TEXT, hash_file, make_durable, read_file
from simulator.spent import Work, spending

VARIABLE = "PIPELINE_SIMULATOR_CACHE"
DIGESTS = ".sha256.json"
"""The file of an entry that has the SHA-256 of every other."""
_log = logging.getLogger(__name__)
_checked: dict[Path, tuple[tuple[int, int, int], ...]] = {}
"""The entries that were found whole, with the state of their files."""


def folder() -> Path:
    """Return ``$PIPELINE_SIMULATOR_CACHE`` if it is set, else the XDG cache folder."""
    if chosen := os.environ.get(VARIABLE):
        return Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "pipeline-simulator"


def entry(name: str, make: Callable[[Path], None]) -> Path:
    """Return a cached folder; make it first if it does not exist, and again if it was damaged.

    An unfinished entry is never visible: it is made under another name and then renamed. The
    SHA-256 of its files is in it.

    Args:
        name: the entry: a relative path made of its kind and its digest.
        make: writes the entry's files into the folder that it receives.

    Raises:
        RunError: the cache is not writable.
    """
    place = folder() / name
    if place.is_dir():
        problem = _problem(place)
        if not problem:
            return place
        _log.warning("note: %s is damaged (%s) and is made again", place, problem)
    with _draft(place.parent) as draft:
        _fill(draft, place, make)
        _move(draft, place)
    return place


def by_content(kind: str, make: Callable[[Path], None]) -> Path:
    """Return a cached folder whose name is the digest of what is written into it.

    Args:
        kind: the first part of the name: a relative path.
        make: writes the entry's files into the folder that it receives.

    Raises:
        RunError: the cache is not writable.
    """
    place = folder() / kind
    with _draft(place) as draft:
        _fill(draft, place, make)
        place /= hash_file(draft / DIGESTS)[:20]
        if not place.is_dir() or _problem(place):
            _move(draft, place)
    return place


@contextmanager
def _draft(parent: Path) -> Iterator[Path]:
    """Give a new folder of the cache, which is removed unless it is renamed."""
    try:
        parent.mkdir(parents=True, exist_ok=True)
        draft = Path(tempfile.mkdtemp(prefix=".making-", dir=parent))
    except OSError as error:
        raise RunError(
            f"the cache {folder()} cannot be written: {error.strerror}; set {VARIABLE}"
        ) from error
    try:
        yield draft
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def found(name: str) -> Path | None:
    """Return an entry of the user's cache if it is there and its files are those that were made."""
    place = folder() / name
    return place if place.is_dir() and not _problem(place) else None


def _fill(draft: Path, place: Path, make: Callable[[Path], None]) -> None:
    """Make an entry's files and their checksums, and wait until they are on the disk."""
    try:
        with spending(Work.MAKING, whole=True):
            make(draft)
        digests = {file.relative_to(draft).as_posix(): hash_file(file) for file in _files(draft)}
        (draft / DIGESTS).write_text(json.dumps(digests, indent=2), encoding="utf-8")
        for file in (*_files(draft), draft / DIGESTS, draft):
            make_durable(file)
    except OSError as error:
        raise RunError(
            f"{place} cannot be made: {error.strerror or error}; make room, or set {VARIABLE}"
        ) from error


def _move(draft: Path, place: Path) -> None:
    """Put a finished entry in its place, and what is damaged there out of the way."""
    try:
        if place.is_dir() and _problem(place):
            with suppress(FileNotFoundError):  # another process was faster
                place.rename(draft.with_name(f"{draft.name}-damaged"))
            shutil.rmtree(draft.with_name(f"{draft.name}-damaged"), ignore_errors=True)
        draft.rename(place)
        make_durable(place.parent)
    except OSError as error:
        if not place.is_dir():  # else another process was faster
            raise RunError(f"{place} cannot be written: {error.strerror}") from error


def _problem(place: Path) -> str:
    """What is wrong with an entry; empty: nothing. Files that did not change are read once."""
    try:
        digests = json.loads(read_file(place / DIGESTS, TEXT))
        stamps = tuple(_stamp(place / name) for name in (DIGESTS, *digests))
        if _checked.get(place) == stamps:
            return ""
        for name, digest in digests.items():
            if hash_file(place / name) != digest:
                return f"{name} has changed"
    except OSError as error:
        return f"{error.filename}: {error.strerror}"
    except (AttributeError, TypeError, ValueError, RecursionError):
        return f"{DIGESTS} is no list of checksums"
    _checked[place] = stamps
    return ""


def _stamp(file: Path) -> tuple[int, int, int]:
    found = file.stat()
    return found.st_ino, found.st_size, found.st_mtime_ns


def _files(place: Path) -> list[Path]:
    return sorted(file for file in place.rglob("*") if file.is_file() and file.name != DIGESTS)
