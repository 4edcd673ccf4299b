"""Where the figures come from: versions, hashes, machine, command and records."""

from __future__ import annotations

import base64
import gzip
import io
import json
import shlex
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from simulator.report.cells import spreadsheet
from simulator.report.command import words
from simulator.report.reading import Run
from simulator.report.rendering import RECORDS
from simulator.report.sections.section import Cell, Code, Section, Table, part
from simulator.report.words import SIDES
from simulator.results.manifest import AuditManifest, RunManifest
from simulator.results.record_file import RecordFile

_ROWS = 2**12
"""Records that are packed at a time."""
DIGEST_BYTES = 16
"""Of a digest, which is written in twice as many hexadecimal digits."""


@part(order=230)
def provenance(run: Run) -> Section:
    """Show what another person needs to run it again."""
    manifest = run.manifest
    machine = manifest.machine
    facts: list[list[Cell]] = [
        ["when", str(manifest.created)],
        ["command", Code(command(run))],
        ["machine", f"{machine.cpu.model}, {machine.cores} cores, {machine.platform}"],
        ["Python", machine.python],
        ["seed", str(manifest.seed)],
        *(_of_run(run, manifest) if isinstance(manifest, RunManifest) else _of_audit(manifest)),
    ]
    versions = [[name, version or "not installed"] for name, version in machine.versions.items()]
    notes = ["The hash of every sample is in manifest.json, in the run's folder."]
    if run.records and records(run) is None:
        notes.append("The records are too large for this page; they are in records.parquet.")
    return Section(
        "provenance",
        "Provenance",
        "On what, with which versions, and how is it run again?",
        notes=notes,
        tables=[
            Table(["fact", "value"], facts, "The run"),
            Table(["library", "version"], versions, "Versions"),
        ],
    )


def _of_run(run: Run, manifest: RunManifest) -> list[list[Cell]]:
    model, data = manifest.model, manifest.data
    unit = run.summary.get("sample_unit", "sample")
    unit = run.summary.get("sample_unit", "sample")
    ran: list[list[Cell]] = [
        [side, f"sha256 {stack.artifact.sha256} of the network that ran"]
        for side, stack in manifest.stacks.items()
        if side in SIDES
    ]
    return [
        ["model", f"{model.spec['name']}: sha256 {model.sha256}"],
        ["data", f"{len(data.images):,} {unit}s in {data.root}"],
        *ran,
    ]


def _of_audit(manifest: AuditManifest) -> list[list[Cell]]:
    files = {"document": (manifest.document.path, manifest.document.sha256)}
    files |= {f"model {name}": (one.name, one.sha256) for name, one in manifest.models.items()}
    return [[what, f"{name}: sha256 {digest}"] for what, (name, digest) in files.items()]


@lru_cache(maxsize=1)
def records(run: Run) -> str | None:
    """Return the records as gzipped CSV in base64; None where there are none, or too large ones."""
    if run.records is None or _too_large(run.records):
        return None
    out = io.BytesIO()
    with gzip.GzipFile(fileobj=out, mode="wb", compresslevel=6, mtime=0) as packed:
        for at, rows in enumerate(run.records.batches(_ROWS)):
            plain = pa.table([_flat(column) for column in rows.columns], names=rows.column_names)
            csv.write_csv(plain, packed, csv.WriteOptions(include_header=at == 0))
            if out.tell() > RECORDS:  # known after some of a million
                return None
    found = out.getvalue()
    return base64.b64encode(found).decode() if len(found) <= RECORDS else None


def _too_large(found: RecordFile) -> bool:
    """Whether other digests alone are too many: no packing makes a hash shorter."""
    if "digest" not in found.column_names or found.num_rows * DIGEST_BYTES <= RECORDS:
        return False
    digests = pc.count_distinct(found["digest"].slice(0, 2 * RECORDS // DIGEST_BYTES)).as_py()
    return bool(digests * DIGEST_BYTES > RECORDS)


def _flat(column: pa.ChunkedArray) -> pa.ChunkedArray | pa.Array:
    """A column for CSV: lists become JSON, and names never formulas."""
    if pa.types.is_string(column.type):
        write: Callable[[Any], str] = spreadsheet
    elif pa.types.is_nested(column.type):
        write = json.dumps
    else:
        return column
    values = [None if one is None else write(one) for one in column.to_pylist()]
    return pa.array(values, pa.string())


def command(run: Run) -> str:
    """Return the command line that asks for the same again, for a POSIX shell."""
    arguments = run.manifest.request.arguments if run.manifest.request else {}
    return " \\\n  ".join(map(shlex.join, words(run.command, arguments)))
