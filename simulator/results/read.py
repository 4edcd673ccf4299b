"""Reads runs from disk, and refuses what is not a run, or not a whole one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import ValidationError

from simulator.errors import RunError
from simulator.files import LARGE, TEXT, open_file, read_file
from simulator.results.json_text import parse_json
from simulator.results.layout import MANIFEST, RECORDS, SUMMARY
from simulator.results.manifest import AuditManifest, RunManifest
from simulator.results.shared import Summary
from simulator.results.summaries import first_problem, parse


def read_manifest(folder: Path) -> dict[str, Any]:
    """Read the manifest of a run, finished or not, as it is written.

    Raises:
        RunError: the folder is not a run.
    """
    try:
        manifest = parse_json(read_file(folder / MANIFEST, TEXT))
        if not isinstance(manifest, dict) or "status" not in manifest:
            raise ValueError(f"{MANIFEST} is not one of ours")
    except (OSError, ValueError, RecursionError) as error:
        why = getattr(error, "strerror", None) or error
        raise RunError(f"{folder}: not a run, or a damaged one: {why}") from error
    return manifest


def read_run(folder: Path) -> tuple[RunManifest, Summary, pa.Table]:
    """Read a finished run.

    Returns:
        The manifest, the summary and the records.

    Raises:
        RunError: the folder is not a run, or one that did not finish, or of another version.
    """
    manifest, summary = read_summary(folder)
    if not isinstance(manifest, RunManifest):
        raise RunError(f"{folder}: an audit or a replay, whose records are in the runs below it")
    try:
        return manifest, summary, read_table(folder / RECORDS)
    except (OSError, ValueError, pa.ArrowException) as error:
        raise RunError(f"{folder}: not a run, or a damaged one: {error}") from error


def read_summary(folder: Path) -> tuple[RunManifest | AuditManifest, Summary]:
    """Read the manifest and the summary of a finished run, or of one that lacks but its report.

    Raises:
        RunError: the folder is not a run, or one that did not finish, or of another version.
    """
    found = read_manifest(folder)
    if found["status"] not in ("reporting", "complete"):
        raise RunError(f"{folder}: the run is {found['status']}, not complete")
    try:
        summary = parse(read_file(folder / SUMMARY, TEXT), str(folder / SUMMARY))
        shape = AuditManifest if summary.command in ("audit", "replay") else RunManifest
        content = read_file(folder / MANIFEST, TEXT)
        return shape.model_validate_json(content, strict=True), summary
    except ValidationError as error:
        problem = f"{folder / MANIFEST}: {first_problem(error)}"
        raise RunError(problem) from error
    except OSError as error:
        raise RunError(f"{folder}: not a run, or a damaged one: {error}") from error


def read_table(place: Path, schema: pa.Schema | None = None) -> pa.Table:
    """Read a Parquet file; a name with a colon would be a URI to pyarrow, an open file is not."""
    with open_file(place, LARGE) as file:
        return pq.read_table(file, schema=schema, page_checksum_verification=True)
