"""Runs on disk: ``manifest.json``, ``records.parquet``, ``summary.json``.

A folder is a finished run if and only if its manifest says ``"status": "complete"``.
"""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from types import TracebackType
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from simulator.errors import RunError

MANIFEST, RECORDS, SUMMARY = "manifest.json", "records.parquet", "summary.json"
STAGES = ("decode", "color", "resize", "geometry", "normalize", "infer", "postprocess")
ROWS_PER_GROUP = 2048

SCHEMA = pa.schema(
    [
        pa.field("sample", pa.string(), nullable=False),
        pa.field("side", pa.dictionary(pa.int8(), pa.string()), nullable=False),
        pa.field("label", pa.int32()),
        pa.field("prediction", pa.int32()),
        pa.field("correct", pa.bool_()),
        pa.field("score", pa.float64()),
        pa.field("margin", pa.float64()),
        pa.field("digest", pa.string()),
        pa.field("skipped", pa.string()),
        *(pa.field(f"{stage}_ns", pa.int64()) for stage in STAGES),
    ]
)
"""One row per sample and side. ``skipped`` holds the reason, else null; ``*_ns`` are
wall-clock nanoseconds, null where a stack has no such stage."""


class RunWriter:
    """A run that is being written; use it as a context manager.

    Args:
        folder: where the run goes; made if it is not there.
        manifest: what is known before the first sample.
        overwrite: replace a run that is already there.

    Raises:
        RunError: the folder holds a run already, or cannot be written.
    """

    def __init__(self, folder: Path, manifest: dict[str, Any], overwrite: bool) -> None:
        self.folder = folder
        self._manifest = manifest
        self._rows: list[dict[str, Any]] = []
        self._draft = folder / f".{RECORDS}.part"
        try:
            if folder.is_dir() and any(folder.iterdir()) and not overwrite:
                raise RunError(f"{folder} is not empty; choose another --out, or add --overwrite")
            folder.mkdir(parents=True, exist_ok=True)
            for name in (SUMMARY, RECORDS):
                (folder / name).unlink(missing_ok=True)
            self._write_manifest("running")
            self._parquet = pq.ParquetWriter(self._draft, SCHEMA)
        except OSError as error:
            raise _cannot(folder, error) from error

    def add(self, rows: list[dict[str, Any]]) -> None:
        """Append rows of :data:`SCHEMA`; they are written in groups."""
        self._rows += rows
        if len(self._rows) >= ROWS_PER_GROUP:
            self._flush()

    def finish(self, summary: dict[str, Any], manifest: dict[str, Any]) -> None:
        """Write what is left and mark the run complete.

        Args:
            summary: the content of ``summary.json``.
            manifest: what became known during the run, added to the manifest.
        """
        self._flush()
        self._manifest |= manifest
        try:
            self._parquet.close()
            os.replace(self._draft, self.folder / RECORDS)
            write_json(self.folder / SUMMARY, summary)
            self._write_manifest("complete")
        except OSError as error:
            raise _cannot(self.folder, error) from error

    def _flush(self) -> None:
        if not self._rows:
            return
        try:
            self._parquet.write_table(pa.Table.from_pylist(self._rows, SCHEMA))
        except OSError as error:
            raise _cannot(self.folder, error) from error
        self._rows = []

    def _write_manifest(self, status: str) -> None:
        write_json(self.folder / MANIFEST, {"status": status, **self._manifest})

    def __enter__(self) -> RunWriter:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None:
            return
        try:
            self._parquet.close()
            self._draft.unlink(missing_ok=True)
            self._write_manifest("interrupted")
        except OSError:  # the disk that stopped the run is the reason that reaches the user
            pass


def read_run(folder: Path) -> tuple[dict[str, Any], dict[str, Any], pa.Table]:
    """Read a finished run.

    Returns:
        The manifest, the summary and the records.

    Raises:
        RunError: the folder is no run, or one that did not finish.
    """
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        if not isinstance(manifest, dict) or "status" not in manifest:
            raise ValueError(f"{MANIFEST} is not one of ours")
        if manifest["status"] != "complete":
            raise RunError(f"{folder}: the run is {manifest['status']}, not complete")
        summary = json.loads((folder / SUMMARY).read_text(encoding="utf-8"))
        return manifest, summary, pq.read_table(folder / RECORDS)
    except (OSError, ValueError, pa.ArrowException) as error:
        raise RunError(f"{folder}: not a run, or a damaged one: {error}") from error


def write_json(path: Path, value: dict[str, Any]) -> None:
    """Write JSON in one step: readers see the old file or the new one, never half."""
    draft = path.with_name(f".{path.name}.part")
    text = json.dumps(finite(value), indent=2, ensure_ascii=False) + "\n"
    draft.write_text(text, encoding="utf-8")
    os.replace(draft, path)


def finite(value: Any) -> Any:
    """Replace what JSON cannot hold: NaN and infinities become null."""
    if isinstance(value, dict):
        return {str(key): finite(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(inner) for inner in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def _cannot(folder: Path, error: OSError) -> RunError:
    return RunError(f"{folder}: cannot be written: {error.strerror or error}; choose another --out")
