"""Reads runs from disk, and refuses what is not a run, or not a whole one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import BaseModel, ValidationError

from simulator.errors import RunError
from simulator.files import LARGE, TEXT, open_file, read_file
from simulator.results.json_text import check_size, parse_json
from simulator.results.layout import MANIFEST, PLAN, SUMMARY
from simulator.results.manifest import AuditManifest, Plan, RunManifest
from simulator.results.record_file import RecordFile
from simulator.results.shared import Summary
from simulator.results.summaries import first_problem, parse

DAMAGE = (
    ArithmeticError, AttributeError, LookupError, TypeError, ValueError, pa.ArrowException,
)  # fmt: skip
"""What is raised where a run does not hold what runs hold."""


class Head(BaseModel):
    """The part of a manifest that says what kind of run it is.

    Attributes:
        status: see :class:`simulator.results.manifest.RunManifest`.
        command: of an audit or a replay.
    """

    status: Any
    command: Any = None


def read_head(folder: Path) -> Head:
    """Read what kind of run is in a folder, finished or not.

    Raises:
        RunError: the folder is not a run.
    """
    try:
        content = read_file(folder / MANIFEST, TEXT)
        check_size(content)
        return Head.model_validate_json(content)
    except ValidationError:
        return Head.model_validate(read_manifest(folder))  # says what is wrong
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise RunError(f"{folder}: not a run, or a damaged one: {why}") from error


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


def read_plan(folder: Path) -> Plan:
    """Read what the folder of a command is for that leaves no run.

    Raises:
        RunError: the folder does not say so, or is damaged.
    """
    try:
        content = read_file(folder / PLAN, TEXT)
        check_size(content)
        return Plan.model_validate_json(content)
    except (OSError, ValueError) as error:
        problem = first_problem(error) if isinstance(error, ValidationError) else error
        raise RunError(f"{folder}: {PLAN} is damaged: {problem}") from error


def open_run(folder: Path) -> tuple[RunManifest, Summary, RecordFile]:
    """Read a finished run, but for its records, which are read where they are asked for.

    Raises:
        RunError: see :func:`read_run`.
    """
    manifest, summary = read_summary(folder)
    if not isinstance(manifest, RunManifest):
        raise RunError(f"{folder}: an audit or a replay, whose records are in the runs below it")
    return manifest, summary, RecordFile(folder)


def read_run(folder: Path) -> tuple[RunManifest, Summary, pa.Table]:
    """Read a finished run.

    Returns:
        The manifest, the summary and the records.

    Raises:
        RunError: the folder is not a run, or one that did not finish, or of another version.
    """
    manifest, summary, records = open_run(folder)
    return manifest, summary, records.select(records.column_names)


def read_summary(folder: Path) -> tuple[RunManifest | AuditManifest, Summary]:
    """Read the manifest and the summary of a finished run, or of one that lacks but its report.

    Raises:
        RunError: the folder is not a run, or one that did not finish, or of another version.
    """
    status = read_head(folder).status
    if status not in ("reporting", "complete"):
        raise RunError(f"{folder}: the run is {status}, not complete")
    try:
        summary = parse(read_file(folder / SUMMARY, TEXT), str(folder / SUMMARY))
        shape = AuditManifest if summary.of_runs else RunManifest
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
