"""Whether a folder may take a run: it is free, may be replaced, or the same run goes on in it."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from simulator.errors import RunError
from simulator.results.json_text import finite
from simulator.results.layout import (
    ALONE,
    AUDIT_FILES,
    AUDIT_FOLDERS,
    CLIPS,
    EVENTS,
    LOGS,
    LOOKS,
    MANIFEST,
    PARTS,
    PICTURES,
    ROUNDS,
    SUMMARY,
)
from simulator.results.lock import LOCK, refuse_held
from simulator.results.manifest import RunManifest
from simulator.results.read import read_manifest
from simulator.typed import ResultModel

_PASSING = (
    "status", "created", "commit", "executor", "isolate", "request", "run", "seconds", "time",
    "workers",
)  # fmt: skip
"""What may differ between a run and its resumption."""


def clear(folder: Path) -> None:
    """Remove what an earlier run has left in a folder, but for its manifest."""
    for kind in ("*.parquet", "*.html", SUMMARY, *AUDIT_FILES):
        for place in folder.glob(kind):
            place.unlink()
    for inner in (PARTS, ALONE, PICTURES, LOOKS, ROUNDS, LOGS, EVENTS, CLIPS, *AUDIT_FOLDERS):
        shutil.rmtree(folder / inner, ignore_errors=True)


def check_free(folder: Path, overwrite: bool) -> None:
    """Refuse a folder that already holds something.

    Args:
        folder: where a run shall go.
        overwrite: another run there may be replaced; nothing else may.

    Raises:
        RunError: another process writes into it; it holds a run and *overwrite* is not set; or it
            holds something else.
    """
    refuse_held(folder)
    check_empty(folder, overwrite)


def check_empty(folder: Path, overwrite: bool) -> None:
    """Refuse what :func:`check_free` refuses, in a folder that we have locked."""
    try:
        filled = folder.is_dir() and any(
            p.name != LOCK and not p.name.endswith(".part") for p in folder.iterdir()
        )
    except OSError as error:
        raise RunError(
            f"{folder}: cannot be written: {error.strerror}; choose another --out"
        ) from error
    if filled and not overwrite:
        raise RunError(f"{folder} is not empty; choose another --out, or add --overwrite")
    if filled and not (folder / MANIFEST).is_file():
        raise RunError(f"{folder} holds files that are not a run; choose another --out")


def check_same(folder: Path, manifest: RunManifest) -> str | None:
    """Return the name of the run that goes on, by which its parts are found.

    Raises:
        RunError: another run is in the folder.
    """
    old = read_manifest(folder)
    known = {*old, *manifest} - {*_PASSING}
    if parts := changed(old, manifest, sorted(known)):
        raise cannot_resume(folder, parts)
    run = old.get("run")
    return run if isinstance(run, str) and run.isalnum() else None


def changed(old: Mapping[str, object], new: ResultModel, keys: Iterable[str]) -> list[str]:
    """Return which parts of a manifest are not as they were.

    Args:
        old: as it was read.
        new: as it would be written now.
        keys: the parts that count.
    """
    now = finite(new)
    return [key for key in keys if old.get(key) != now.get(key)]


def cannot_be_written(folder: Path, error: OSError, samples: int = 0) -> RunError:
    """Return the error of a folder that is full or gone.

    Args:
        folder: of the run.
        error: of the system.
        samples: whose records were written before.
    """
    why = error.strerror or error
    rounds = len(list((folder / ROUNDS).glob("*.parquet")))
    if samples or rounds:
        safe = f"{rounds} rounds are safe" if rounds else f"{samples} samples are safe"
        return RunError(
            f"{folder}: cannot be written: {why}; {safe}: make room, then: simulate resume {folder}"
        )
    return RunError(f"{folder}: cannot be written: {why}; choose another --out")


def cannot_resume(folder: Path, parts: Sequence[str]) -> RunError:
    """Return the error of a run that would go on as another one."""
    return RunError(
        f"{folder}: cannot be resumed: {', '.join(parts)} changed since it was started; start a "
        "new run"
    )
